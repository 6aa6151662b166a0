/* yardstick_arith.c - the yardstick of arithmetic: chains of vector multiply-adds in registers. About 70 us
 * at one vector per cycle and 3.5 GHz, half of that at two. */
#include "exec/yardstick/yardstick_kernel.h"

enum { ROUNDS = 20000 };

static void run(hp_yard_buffers *b) {
    b->kept = b->kept + (uint32_t)b->loops->multiply_add(ROUNDS);
}

/* A multiply-add counts as two. */
static double work(const hp_yard_buffers *b) {
    return 2.0 * ROUNDS * HP_YARD_CHAINS * b->loops->lanes;
}

const hp_yard_kernel hp_yard_arith = {.unit = "flops", .passes = 1, .run = run, .work = work};
