/* panel.h - the innermost loops of convolutions and linear layers in inference: up to HP_PANEL_ROWS pixels
 * times a panel of up to 64 outputs, the sums held in registers, and what becomes of the sums. Depthwise
 * convolutions likewise, a row of pixels at a time.
 *
 * kernels_panel.c is compiled once per instruction set and type of input. Sums of bytes are exact in 32 bits. Sums of floats
 * run through the taps in order, one chain of fused multiply-adds per output, so that they have the same bits
 * whatever is computed beside them. Quantised outputs follow one formula on every device:
 *
 *     v = fma(scale[o], (float)sum, shift[o])    sum of (q - zero) * weight over the taps inside the map
 *     v = fma(add_scale, (float)added, v)        where a map is added
 *     q = min(max(rint(v) saturated to 0 .. 255, lo), hi)
 *
 * with everything in units of the output, zero points in shift, and a clamp in lo and hi. Other activations
 * take all this in real units, and quantise act(v) as exec/device/infer/op.h says. Real outputs are
 * act(v + added), where v is fma(scale, sum, shift) in real units, or the sum of floats that began with the
 * bias. */
#ifndef HP_PANEL_H
#define HP_PANEL_H

#include "exec/device/device_bind.h"
#include "exec/device/infer/op.h"
#include "plan/memory/panels.h"

/* Inputs that lie side by side and the weights that they meet. */
typedef struct hp_panel_run {
    int64_t x; /* bytes from the pixel's address */
    int64_t w; /* steps from the panel's first weight */
    int64_t steps;
} hp_panel_run;

typedef struct hp_panel_out {
    hp_infer_op op; /* y, and the activation */
    bool adds;      /* y holds what is added */
    bool units;     /* the formula above: bytes from bytes, and a clamp */
    bool fast; /* that, and no sum can leave the range of 32 bits; or float32 and a clamp, from float32, or
                  from bytes (no depthwise) */
    float add_scale;  /* bytes */
    uint8_t lo8, hi8; /* the clamp */
} hp_panel_out;

typedef struct hp_panel_tile {
    int32_t tiles;                 /* of as many pixels as the function takes at a time */
    const unsigned char *const *x; /* the pixels of all */
    unsigned char *const *y;
    int64_t ahead;      /* bytes from a tile of pixels to the next */
    int64_t x_at, y_at; /* bytes to the group's first input, to the panel's first output */
    const hp_panel_run *run;
    int32_t n_run;
    int32_t outs;               /* of the panel that exist */
    const void *weights;        /* the panel's */
    const void *init;           /* what sums begin with: int32_t or float, per output */
    const float *scale, *shift; /* bytes: per output of the panel */
    const hp_panel_out *out;
} hp_panel_tile;

typedef void hp_panel_fn(const hp_panel_tile *t);

/* A depthwise convolution of floats: a row of neighbouring output pixels of a class, all channels. */
typedef struct hp_depthwise_row {
    const unsigned char *x; /* under the first pixel's first tap that is inside */
    unsigned char *y;
    int32_t pixels, channels;
    int32_t kw; /* of the layer: where weights lie */
    int32_t tap_y, taps_y, tap_x, taps_x;
    int64_t pixel_step, x_step,
        y_step; /* bytes of x from pixel to pixel, from tap to tap along a row, down a column */
    const void *weights;
    const float *init;
    const hp_panel_out *out;
} hp_depthwise_row;

typedef void hp_depthwise_fn(const hp_depthwise_row *r);

/* Of bytes: a whole map; padding reads as the zero point, so that every pixel has all taps. */
typedef struct hp_depthwise_map {
    const uint8_t *x;
    unsigned char *y;
    const hp_shape *shape;
    uint8_t zero;
    const int8_t *weights;
    const int32_t *init; /* per channel, padded as scale and shift are */
    const float *scale, *shift;
    const hp_panel_out *out;
} hp_depthwise_map;

/* A function by vectors - 1, rows - 1. */
typedef hp_panel_fn *hp_panel_tiles[HP_PANEL_OUTS / HP_PANEL_LANES][HP_PANEL_ROWS];

/* What one instruction set does with one type of input. */
typedef struct hp_panel_family {
    hp_panel_tiles tile;
    hp_panel_tiles fast;        /* of fast outputs; whole panels, or narrow ones: from bytes and float32 */
    hp_depthwise_fn *depthwise; /* of all but bytes */
    void (*depthwise_bytes)(const hp_depthwise_map *m);
    /* Weights of a depthwise layer (channel, row, column) as depthwise_bytes reads them. */
    void (*pack_depthwise)(int8_t *to, const int8_t *w, int channels, int kh, int kw);
    void (*narrow)(uint16_t *to, const float *from, int64_t n); /* to bf16, f16: of those two */
} hp_panel_family;

/* An instruction set that has nothing of its own for a type uses what the next smaller set does. */
typedef struct hp_panel_kernels {
    const char *isa;
    const hp_panel_family *of[HP_DTYPES]; /* by input */
} hp_panel_kernels;

#endif
