/* infer_loops.h - the loops that run a layer of a deployed graph that is no matrix product, on a processor.
 *
 * The CPU's (exec/device/kernels/kernels_loops.c) are compiled once per instruction set; the reference has plain ones in
 * float32 and float64 (exec/device/ref/ref_loops.inc). The arithmetic is that of op.h. */
#ifndef HP_INFER_LOOPS_H
#define HP_INFER_LOOPS_H

#include "exec/device/device_bind.h"
#include "exec/device/infer/op.h"

typedef void hp_infer_loop(const hp_infer_op *o, const hp_bound *b);

typedef struct hp_infer_loops {
    const char *isa;
    hp_infer_loop *run[HP_LAYER_OPS];
    /* Numbers of the program's type (f64: taken as floats) that are quantised at run time: the least and the
     * greatest of them and 0, NaN where one is not finite; sat(rint(x / scale) + zero). */
    void (*range)(const void *x, int64_t n, float range[2]);
    void (*quantise)(uint8_t *q, const void *x, int64_t n, float scale, int32_t zero);
} hp_infer_loops;

#endif
