/* panels.h - packed constants of inference's convolutions and linear layers: the layout that plans count and
 * the kernels of exec/device/kernels/panel.h read.
 *
 * Weights lie in panels of up to 64 outputs of a group, in the order in which a pixel's sum takes them:
 * (group, panel, row of taps, step, output, inputs of a step). A step is what one instruction multiplies: 4
 * bytes of a quantised input, 2 of bf16, one float. Where a group's inputs fill whole steps, or the taps of a
 * row lie side by side in the map, a row's inputs are one sequence, filled up at its end; else every tap's
 * are. Depthwise: (block of 64 channels, column of taps, 4 rows of taps) quantised, (tap, channel) else.
 *
 * Behind them, per output (padded to whole vectors): of a quantised input scale, shift, and the sum of
 * weights of every tap, which stands for the input's zero point; else the bias. On ref, which computes in
 * float64, weights keep their canonical order. */
#ifndef HP_PANELS_H
#define HP_PANELS_H

#include "plan/program/program.h"

enum { HP_PANEL_LANES = 16, HP_PANEL_OUTS = 64, HP_PANEL_ROWS = 6 };
enum { HP_DEPTHWISE_COLUMNS = 128 }; /* of 4 rows; larger filters are groups like any */

typedef struct hp_panels {
    hp_dtype x;                   /* elements of the input */
    bool transposed, depthwise;   /* of a depthwise one the channels count as outputs of one group */
    int32_t groups, outs, ins;    /* per group */
    int32_t kh, kw, sums;         /* taps of which sums are kept */
    int32_t elem, weight, dot;    /* bytes of an input element and of a weight; inputs of a step */
    bool merged;                  /* a row of taps is one sequence */
    int32_t tap_steps, row_steps; /* of a tap where not merged; of a row */
    int32_t padded;               /* outputs of a group, up to whole vectors */
    int64_t map;                  /* bytes of a sample's input that is quantised at run time, or 0 */
} hp_panels;

/* Of a conv, convt or linear layer whose slice has shape `s`. */
hp_panels hp_panels_of(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);

/* Bytes from the start of the pack: weights lie at 0. */
typedef struct hp_panels_places {
    int64_t scale, shift, sums; /* of a quantised input */
    int64_t bias;               /* else */
    int64_t bytes;              /* in all */
} hp_panels_places;
hp_panels_places hp_panels_place(const hp_panels *p);

/* Scratch: what a class of pixels needs at 0, and of inputs that are quantised at run time a scale per output
 * (padded), and a sample's bytes. */
typedef struct hp_panels_scratch {
    int64_t scale, map, bytes;
} hp_panels_scratch;
hp_panels_scratch hp_panels_scratch_of(const hp_panels *p);

static inline bool hp_panels_quantised(const hp_panels *p) {
    return p->x == HP_U8;
}

/* Do a pixel's inputs lie in memory as its steps take them? Else they are copied, filled up with zeros. */
static inline bool hp_panels_whole_steps(const hp_panels *p) {
    return p->ins % p->dot == 0;
}

#endif
