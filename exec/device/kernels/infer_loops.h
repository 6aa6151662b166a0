/* infer_loops.h - layers of a deployed graph that are no matrix product: what a prepared task knows beside
 * its hp_bound, and the loops that run it.
 *
 * infer_loops.c is compiled once per instruction set in float32, and once in float64 for tasks with a float64
 * operand. Quantised numbers follow one arithmetic, float32 without fused multiply-adds, so that every
 * instruction set, device and part gives the same bytes:
 *
 *     real = scale * (float)(q - zero)            q = sat(rint((float)real * inverse) + zero), inverse = 1 /
 * scale
 *
 * rint to nearest, halves to even; sat to 0 .. 255. Layers from bytes to bytes that are affine per channel
 * (batch norm, scale, a product with a vector, a sum) fold the scales into their factors:
 * q = sat(rint(act(factor' * (float)(q0 - zero0) + bias')) + zero), act in units of scale. */
#ifndef HP_INFER_LOOPS_H
#define HP_INFER_LOOPS_H

#include "exec/device/bind.h"

/* How the elements of an operand are stored; the numbers are of U8. */
typedef struct hp_qparams {
    hp_dtype dtype;
    float scale, inverse;
    int32_t zero;
} hp_qparams;

typedef struct hp_infer_op {
    hp_qparams *x; /* per input */
    hp_qparams y;
    int32_t act;                /* of the layer */
    double act_a, act_b;        /* likewise */
    double lo, hi;              /* the activation where it is a clamp (none: no bounds) */
    bool clamps;                /* it is one, or none */
    bool adds;                  /* bn: its second input is added */
    bool vector;                /* mul: the second factor is one vector per sample */
    const float *factor, *bias; /* per channel of the output's box, or NULL */
    const uint8_t **recode;     /* what a byte of input k becomes, 256 entries; NULL: other elements */
    bool *same;                 /* input k is stored as the output is: elements are copied */
} hp_infer_op;

typedef void hp_infer_loop(const hp_infer_op *o, const hp_bound *b);

typedef struct hp_infer_loops {
    const char *isa;
    hp_infer_loop *run[HP_LAYER_OPS];
    /* Numbers of the program's type (f64: taken as floats) that are quantised at run time: the least and the
     * greatest of them and 0, NaN where one is not finite; sat(rint(x / scale) + zero). */
    void (*range)(const void *x, int64_t n, float range[2]);
    void (*quantise)(uint8_t *q, const void *x, int64_t n, float scale, int32_t zero);
    /* What bytes of input k become after the activation: fills a table for hp_infer_op.recode. */
    void (*tabulate)(const hp_infer_op *o, int k, uint8_t table[256]);
} hp_infer_loops;

extern const hp_infer_loops hp_infer_loops_base, hp_infer_loops_avx2, hp_infer_loops_avx512,
    hp_infer_loops_f64;

/* Those of this processor; f64: of tasks with a float64 operand. */
const hp_infer_loops *hp_infer_loops_pick(bool f64);

/* Elements that are in hand at a time, and the most channels of a softmax that is not in the program's dtype.
 */
enum { HP_INFER_ROW = 2048 };

#endif
