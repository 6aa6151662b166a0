/* mma.h - products on tensor cores: one warp multiplies a 16 x K tile by a K x 8 tile and adds the result
 * to 16 x 8 sums. u8 by s8 (K = 32) is exact in 32 bits, which wrap as int32_t does; 16-bit floats (K =
 * 16) sum in float32.
 *
 * Layout of the tiles in the 32 lanes (PTX ISA, "Matrix fragments for mma.m16n8k32", "mma.m16n8k16"), with g
 * = lane / 4 and t = lane % 4. A register holds four bytes, or two floats, adjacent in k, the first one
 * lowest. k of bytes (floats):
 *
 *     a[0]: row g,     k 4t .. 4t+3   (2t, 2t+1)      b[0]: k 4t .. 4t+3   (2t, 2t+1),   column g
 *     a[1]: row g + 8, k 4t .. 4t+3   (2t, 2t+1)      b[1]: k 4t+16 ..     (2t+8, 2t+9), column g
 *     a[2]: row g,     k 4t+16 ..     (2t+8, 2t+9)    d[0], d[1]: row g,     columns 2t, 2t+1
 *     a[3]: row g + 8, k 4t+16 ..     (2t+8, 2t+9)    d[2], d[3]: row g + 8, columns 2t, 2t+1
 *
 * All 32 lanes must call these functions together. */
#ifndef HP_MMA_H
#define HP_MMA_H

#include "exec/cuda/runtime/cuda_runtime_kernel.h"

#if defined(HP_CUDA_STANDIN)

__device__ void hp_mma_u8s8_16x8x32(int32_t d[4], const uint32_t a[4], const uint32_t b[2]);
__device__ void hp_mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2], __nv_bfloat16);
__device__ void hp_mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2], __half);
__device__ void hp_load_8x8(uint32_t r[4], const void *row);
__device__ void hp_load_8x8_transposed(uint32_t r[4], const void *row);

#else

__device__ __forceinline__ void hp_mma_u8s8_16x8x32(int32_t d[4], const uint32_t a[4], const uint32_t b[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* The last argument selects the type of the factors. */
__device__ __forceinline__ void hp_mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2],
                                               __nv_bfloat16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void hp_mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2], __half) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Loads four 8 x 8 matrices of 16-bit elements from shared memory. Lane l passes the start of row l % 8 of
 * matrix l / 8, 16 bytes aligned to 16. r[m] receives elements 2t and 2t + 1 of row g of matrix m;
 * transposed: rows 2t and 2t + 1 of column g. */
__device__ __forceinline__ void hp_load_8x8(uint32_t r[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}

__device__ __forceinline__ void hp_load_8x8_transposed(uint32_t r[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}

#endif

#endif
