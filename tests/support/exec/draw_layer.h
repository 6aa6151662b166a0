/* draw_layer.h - layers with drawn shapes, run on a device, and compared within a bound. */
#ifndef HP_TESTS_DRAW_LAYER_H
#define HP_TESTS_DRAW_LAYER_H

#include "tests/support/exec/one_layer.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

typedef struct draw {
    hp_layer layer;
    hp_tensor in[HP_MAX_IN], out;
    int64_t samples;
    bool bias;
    int flags;
} draw;

int pick(uint64_t round, uint64_t *counter, int low, int high);
void finish_window(draw *d);
draw draw_conv(uint64_t round);

/* Shapes for which the rule of plan/memory/memory_device.h chooses Winograd, with odd sizes and
 * every legal padding. */
draw draw_winograd(uint64_t round);

/* Windows that overlap, touch or leave gaps; every other one is U-Net's, kernel and stride 2. */
draw draw_convt(uint64_t round);

/* Zeros on any side. */
draw draw_pad(uint64_t round);
draw draw_linear(uint64_t round);
draw draw_bn(uint64_t round);

/* Pools, and padding. */
draw draw_pool(uint64_t round);
draw draw_point(uint64_t round);

/* Channels with any two steps, blocks, borders up to the maximum width; the input may be a single pixel, or
 * the output one element many times. */
draw draw_gather(uint64_t round);

/* Mean and maximum of few channels or many. */
draw draw_reduce(uint64_t round);

/* Products, parametric ReLU, interpolation, gathers, reductions of channels. */
draw draw_map(uint64_t round);
/* Number of terms of such a layer's longest sum, each up to 1. */
double terms_of_map(const draw *d);

/* Groups of one channel, of all, of some; with and without beta. */
draw draw_groupnorm(uint64_t round);
/* Effect of rounding to float32 on its elements: xhat is at most 2 / deviation for numbers up to 1. */
double bound_of_groupnorm(const draw *d);
rig *build(const hp_device_ops *ops, const draw *d);
void fill(rig *r, double low, double high);
void run_all(rig *r);

/* |fast - exact| <= factor * scale per element; scale NULL: 1. */
void compare(const rig *fast, const rig *exact, int32_t buffer, int32_t other, double factor,
             const rig *scale, const char *what);
double eps(void);
int64_t larger(int64_t a, int64_t b);

/* Lets the backward task's gradient of input `gradient` overwrite dy and (`forward`) the output
 * overwrite the input. */
void rig_make_in_place(rig *r, bool forward, int gradient);

/* Two runs of the layer give the same bits, whatever the scratch memory held. */
void runs_twice_alike(const hp_device_ops *ops, const draw *d);

#endif
