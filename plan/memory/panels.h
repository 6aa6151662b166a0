/* panels.h - packed constants of inference's convolutions and linear layers: the layout that plans count and
 * the kernels of exec/device/kernels/panel.h read.
 *
 * Weights lie in panels of up to 64 outputs of a group, in the order in which a pixel's sum uses them:
 * (group, panel, row of taps, step, output, inputs of a step). A step is what one instruction multiplies: 4
 * bytes of a quantised input, 2 bf16 values, or one float. If a group's inputs fill whole steps, or the taps
 * of a row are adjacent in the map, a row's inputs form one sequence, padded at its end. Otherwise every
 * tap's inputs are padded. Depthwise: (block of 64 channels, column of taps, 4 rows of taps) if quantised,
 * otherwise (tap, channel).
 *
 * Behind the weights, per output (padded to whole vectors): for a quantised input, the scale, the shift, and
 * each tap's sum of weights, which accounts for the input's zero point; otherwise the bias. On ref, which
 * computes in float64, weights keep their canonical order. */
#ifndef HP_PANELS_H
#define HP_PANELS_H

#include "plan/program/program.h"

enum { HP_PANEL_LANES = 16, HP_PANEL_OUTS = 64, HP_PANEL_ROWS = 6 };
enum { HP_DEPTHWISE_COLUMNS = 128 }; /* columns of 4 rows; larger filters run as ordinary groups */

typedef struct hp_panels {
    hp_dtype x;                   /* elements of the input */
    bool transposed, depthwise;   /* depthwise: the channels count as outputs of one group */
    int32_t groups, outs, ins;    /* per group */
    int32_t kh, kw, sums;         /* kernel size; number of taps whose weight sums are kept */
    int32_t elem, weight, dot;    /* bytes of an input element and of a weight; inputs per step */
    bool merged;                  /* a row of taps is one sequence */
    int32_t tap_steps, row_steps; /* steps per tap, if not merged; steps per row */
    int32_t padded;               /* outputs per group, padded to whole vectors */
    int64_t map;                  /* bytes of a sample of input quantised at run time; 0: none */
} hp_panels;

/* Panels of a conv, convt or linear layer whose slice has shape `s`. */
hp_panels hp_panels_of(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);

/* Byte offsets in the pack; weights start at 0. */
typedef struct hp_panels_places {
    int64_t scale, shift, sums; /* quantised inputs only */
    int64_t bias;               /* else */
    int64_t bytes;              /* in all */
} hp_panels_places;
hp_panels_places hp_panels_place(const hp_panels *p);

/* Byte offsets in scratch. The needs of a class of pixels start at 0. For inputs quantised at run time, a
 * scale per output (padded) and a sample's bytes follow. */
typedef struct hp_panels_scratch {
    int64_t scale, map, bytes;
} hp_panels_scratch;
hp_panels_scratch hp_panels_scratch_of(const hp_panels *p);

static inline bool hp_panels_quantised(const hp_panels *p) {
    return p->x == HP_U8;
}

/* Are a pixel's inputs stored in memory as its steps read them? If not, they are copied with zero padding. */
static inline bool hp_panels_whole_steps(const hp_panels *p) {
    return p->ins % p->dot == 0;
}

#endif
