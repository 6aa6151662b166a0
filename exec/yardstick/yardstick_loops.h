/* yardstick_loops.h - the inner loops of the yardsticks, compiled once per instruction set like the kernels
 * that they stand for. So they use the same units of the processor at the same frequency. */
#ifndef HP_YARDSTICK_LOOPS_H
#define HP_YARDSTICK_LOOPS_H

#include <stdint.h>

enum {
    HP_YARD_CHAINS = 12
}; /* independent: two units of four cycles each need eight; registers hold fourteen */

typedef struct hp_yard_loops {
    const char *isa;
    int32_t lanes; /* floats per vector */
    /* HP_YARD_CHAINS * rounds vector multiply-adds, in registers. */
    float (*multiply_add)(int64_t rounds);
    /* Reads `bytes`, a multiple of 1 KiB aligned to 64 bytes, once and in order. */
    uint32_t (*read)(const void *data, int64_t bytes);
} hp_yard_loops;

extern const hp_yard_loops hp_yard_loops_base, hp_yard_loops_avx2, hp_yard_loops_avx512;

/* The loops of the instruction set that the network's kernels use here. */
const hp_yard_loops *hp_yard_loops_pick(void);

#endif
