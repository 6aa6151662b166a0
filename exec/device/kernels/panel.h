/* panel.h - the innermost loops of convolutions and linear layers in inference. They multiply up to
 * HP_PANEL_ROWS pixels by a panel of up to 64 outputs, with sums in registers, and finish these sums.
 * Depthwise convolutions likewise, a row of pixels at a time.
 *
 * kernels_panel.c is compiled once per instruction set and type of input. Sums of bytes are exact in 32 bits.
 * Sums of floats take the taps in order, one chain of fused multiply-adds per output, so they have the same
 * bits whatever else is computed. Quantised outputs follow one formula on every device:
 *
 *     v = fma(scale[o], (float)sum, shift[o])    sum of (q - zero) * weight over the taps inside the map
 *     v = fma(add_scale, (float)added, v)        if a map is added
 *     q = min(max(rint(v) saturated to 0 .. 255, lo), hi)
 *
 * with everything in units of the output, zero points in shift, and a clamp in lo and hi. For other
 * activations all this is in real units, and act(v) is quantised as exec/device/infer/op.h says. Real
 * outputs are act(v + added), where v is fma(scale, sum, shift) in real units, or the sum of floats that
 * began with the bias. */
#ifndef HP_PANEL_H
#define HP_PANEL_H

#include "exec/device/device_bind.h"
#include "exec/device/infer/op.h"
#include "plan/memory/panels.h"

/* Contiguous inputs, and the weights that they meet. */
typedef struct hp_panel_run {
    int64_t x; /* offset in bytes from the pixel's address */
    int64_t w; /* steps from the panel's first weight */
    int64_t steps;
} hp_panel_run;

typedef struct hp_panel_out {
    hp_infer_op op;   /* y, and the activation */
    bool adds;        /* y holds the addend */
    bool units;       /* the formula above: bytes from bytes, with a clamp */
    bool fast;        /* units, and no sum can exceed 32 bits; or float32 with a clamp, from float32, or from
                       * bytes (not depthwise) */
    float add_scale;  /* bytes */
    uint8_t lo8, hi8; /* the clamp */
} hp_panel_out;

typedef struct hp_panel_tile {
    int32_t tiles;                 /* number of tiles, each of as many pixels as the function takes */
    const unsigned char *const *x; /* pixels of all tiles */
    unsigned char *const *y;
    int64_t ahead;      /* bytes between tiles of pixels */
    int64_t x_at, y_at; /* offsets in bytes of the group's first input, and of the panel's first output */
    const hp_panel_run *run;
    int32_t n_run;
    int32_t outs;               /* number of the panel's outputs that exist */
    const void *weights;        /* the panel's */
    const void *init;           /* initial values of the sums: int32_t or float, per output */
    const float *scale, *shift; /* bytes: per output of the panel */
    const hp_panel_out *out;
} hp_panel_tile;

typedef void hp_panel_fn(const hp_panel_tile *t);

/* A row of adjacent output pixels of a class in a depthwise convolution of floats, all channels. */
typedef struct hp_depthwise_row {
    const unsigned char *x; /* input under the first pixel's first inside tap */
    unsigned char *y;
    int32_t pixels, channels;
    int32_t kw; /* width of the layer's kernel: locates weights */
    int32_t tap_y, taps_y, tap_x, taps_x;
    int64_t pixel_step, x_step,
        y_step; /* strides in bytes of x: between pixels, between taps along a row and down a column */
    const void *weights;
    const float *init;
    const hp_panel_out *out;
} hp_depthwise_row;

typedef void hp_depthwise_fn(const hp_depthwise_row *r);

/* A depthwise convolution of bytes: a whole map. Padding reads as the zero point, so every
 * pixel has all taps. */
typedef struct hp_depthwise_map {
    const uint8_t *x;
    unsigned char *y;
    const hp_shape *shape;
    uint8_t zero;
    const int8_t *weights;
    const int32_t *init; /* per channel, padded like scale and shift */
    const float *scale, *shift;
    const hp_panel_out *out;
} hp_depthwise_map;

/* Functions indexed by vectors - 1, rows - 1. */
typedef hp_panel_fn *hp_panel_tiles[HP_PANEL_OUTS / HP_PANEL_LANES][HP_PANEL_ROWS];

/* The functions of one instruction set for one type of input. */
typedef struct hp_panel_family {
    hp_panel_tiles tile;
    hp_panel_tiles fast;        /* for fast outputs; whole panels or narrow ones, from bytes and float32 */
    hp_depthwise_fn *depthwise; /* for all types except bytes */
    void (*depthwise_bytes)(const hp_depthwise_map *m);
    /* Packs weights of a depthwise layer (channel, row, column) as depthwise_bytes reads them. */
    void (*pack_depthwise)(int8_t *to, const int8_t *w, int channels, int kh, int kw);
    /* converts to bf16 or f16, in those two families */
    void (*narrow)(uint16_t *to, const float *from, int64_t n);
} hp_panel_family;

/* An instruction set without own functions for a type uses those of the next smaller set. */
typedef struct hp_panel_kernels {
    const char *isa;
    const hp_panel_family *of[HP_DTYPES]; /* by input */
} hp_panel_kernels;

#endif
