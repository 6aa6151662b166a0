/* op.h - parameters of a layer of a deployed graph besides its hp_bound: plain data, the
 * same on every device.
 *
 * Quantised numbers follow one arithmetic, float32 without fused multiply-adds, so that every instruction
 * set, device and part gives the same bytes:
 *
 *     real = scale * (float)(q - zero)
 *     q    = sat(rint((float)real * inverse) + zero),  inverse = 1 / scale
 *
 * rint: to nearest, ties to even; sat: to 0 .. 255. Layers from bytes to bytes that are affine per channel
 * (batch norm, scale, a product with a vector, a sum) fold the scales into their factors:
 *
 *     q = sat(rint(act(factor' * (float)(q0 - zero0) + bias')) + zero)
 *
 * with act in units of scale. */
#ifndef HP_OP_H
#define HP_OP_H

#include "plan/program/program.h"

/* How an operand's elements are stored; the numbers apply to U8. */
typedef struct hp_qparams {
    hp_dtype dtype;
    float scale, inverse;
    int32_t zero;
} hp_qparams;

typedef struct hp_infer_op {
    hp_qparams *x; /* per input */
    hp_qparams y;
    int32_t act;                /* hp_act of the layer */
    double act_a, act_b;        /* exec/device/device_act.h */
    double lo, hi;              /* bounds if the activation is a clamp (none: infinite) */
    bool clamps;                /* it is a clamp, or none */
    bool adds;                  /* bn: its second input is added */
    bool vector;                /* mul: the second factor is one vector per sample */
    const float *factor, *bias; /* per channel of the output's box, or NULL */
    const uint8_t **recode;     /* table of the byte that each byte of input k becomes, 256 entries;
                                 * NULL: other elements */
    bool *same;                 /* input k is stored like the output: elements are copied */
} hp_infer_op;

/* Elements handled at a time, and the most channels of a softmax that is not in the program's dtype. */
enum { HP_INFER_ROW = 2048 };

#endif
