/* onnx_int8_model.h - drawn quantised networks: their integers by the operators' definitions, in float64, and
 * the same in ONNX, in either form. */
#ifndef HP_TESTS_ONNX_INT8_MODEL_H
#define HP_TESTS_ONNX_INT8_MODEL_H

#include "base/rng.h"
#include "tests/support/onnx/onnx_write.h"

#include <math.h>

/* The image has more channels than raw pixels may have, so it is real. */
enum { H = 6, W = 7, IMAGE_C = 5, MOST = 512, MOST_CONVS = 5, UINT8 = 2, INT8 = 3, INT32 = 6, BY_TENSOR = 1 };

typedef struct map { /* (c, H, W) of integers: real = scale (q - zero) */
    int c, type, zero;
    float scale;
    int q[MOST];
} map;

typedef struct conv {
    int in, out, k, groups, weights, type, w_zero;
    int8_t w[MOST]; /* the stored integer minus w_zero */
    float w_scale[8];
    int32_t bias[8];
} conv;

typedef struct world {
    uint64_t seed, drawn;
    bool qdq;
    onnx_writer w;
    int n_conv, n_map;
    bool near_half; /* a number that rounding may take either way */
} world;

const char *text(world *s, const char *fmt, int n);

/* A value of the model and its map. */
typedef struct value {
    const char *name, *quant; /* quant: "scale zero" */
    map m;
} value;

/* Draws the quantisation of `v`, whose channels are known. */
void name_value(world *s, value *v, int zero, float scale);
void write_conv(world *s, const conv *c, const value *x, const value *y);
conv draw_int8_conv(world *s, int in, int out, int k, int groups);

/* zero 0: saturation acts as a ReLU. */
void step_conv(world *s, const value *x, int out, int k, int groups, value *y);
void step_image(world *s, value *x, double *image);

/* A residual block after a pool, with every operator, and a convolution whose output is rounded
 * before it is added. */
value draw_model(world *s, double *image);

#endif
