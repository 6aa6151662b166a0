/* infer_loops.h - loops for layers of a deployed graph other than matrix products, on a processor.
 *
 * The CPU's (exec/device/kernels/kernels_loops.c) are compiled once per instruction set; the reference has
 * plain ones in float32 and float64 (exec/device/ref/ref_loops.inc). The arithmetic is that of op.h. */
#ifndef HP_INFER_LOOPS_H
#define HP_INFER_LOOPS_H

#include "exec/device/device_bind.h"
#include "exec/device/infer/op.h"

typedef void hp_infer_loop(const hp_infer_op *o, const hp_bound *b);

typedef struct hp_infer_loops {
    const char *isa;
    hp_infer_loop *run[HP_LAYER_OPS];
    /* Quantisation at run time, of numbers of the program's type (f64: taken as floats). range: the least and
     * the greatest of them and 0, NaN if one is not finite. quantise: sat(rint(x / scale) + zero). */
    void (*range)(const void *x, int64_t n, float range[2]);
    void (*quantise)(uint8_t *q, const void *x, int64_t n, float scale, int32_t zero);
} hp_infer_loops;

#endif
