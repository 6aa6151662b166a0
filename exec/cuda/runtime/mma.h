/* mma.h - the tensor cores' product of bytes: one warp multiplies a 16 x 32 tile of u8 by a 32 x 8 tile of s8
 * and adds it to 16 x 8 sums of 32 bits, exactly (they wrap as int32_t does).
 *
 * How the tiles lie in the 32 lanes (PTX ISA, "Matrix fragments for mma.m16n8k32"), with g = lane / 4 and
 * t = lane % 4; the lowest byte of a register is the first of four neighbours in k:
 *
 *     a[0]: row g,     k 4t .. 4t+3         b[0]: k 4t .. 4t+3,       column g
 *     a[1]: row g + 8, k 4t .. 4t+3         b[1]: k 4t+16 .. 4t+19,   column g
 *     a[2]: row g,     k 4t+16 .. 4t+19     d[0], d[1]: row g,     columns 2t, 2t+1
 *     a[3]: row g + 8, k 4t+16 .. 4t+19     d[2], d[3]: row g + 8, columns 2t, 2t+1
 *
 * All 32 lanes call it together. */
#ifndef HP_MMA_H
#define HP_MMA_H

#include "exec/cuda/runtime/kernel.h"

#if defined(HP_CUDA_STANDIN)
__device__ void hp_mma_u8s8_16x8x32(int32_t d[4], const uint32_t a[4], const uint32_t b[2]);
#else
__device__ __forceinline__ void hp_mma_u8s8_16x8x32(int32_t d[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

#endif
