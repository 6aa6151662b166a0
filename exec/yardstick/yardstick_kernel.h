/* yardstick_kernel.h - the yardsticks that one rank runs alone: fixed work, bound by one part of the machine,
 * timed in processor time. To add one: a row of traces/yardsticks.def, a file beside yardstick_arith.c, and
 * its line in yardstick.c. */
#ifndef HP_YARDSTICK_KERNEL_H
#define HP_YARDSTICK_KERNEL_H

#include "exec/yardstick/yardstick_loops.h"
#include "plan/memory/memory_yardstick.h"

typedef struct hp_yard_buffers {
    const hp_yard_loops *loops;
    unsigned char *near, *far; /* buffers that l2 and dram read, aligned to 4 KiB */
    int64_t near_bytes;        /* at most half of the second-level cache */
    int64_t far_bytes, slice;  /* dram reads one slice per pass; offset of the next slice */
    volatile uint32_t kept;    /* receives results, so that the compiler keeps the work */
} hp_yard_buffers;

typedef struct hp_yard_kernel {
    const char *unit;                         /* unit of work */
    int passes;                               /* timed one by one; `prepare` runs before each, untimed */
    void (*prepare)(hp_yard_buffers *b);      /* NULL: nothing */
    void (*run)(hp_yard_buffers *b);          /* one pass */
    double (*work)(const hp_yard_buffers *b); /* work of one sample, all passes, in units */
} hp_yard_kernel;

extern const hp_yard_kernel hp_yard_arith, hp_yard_l2, hp_yard_dram;

#endif
