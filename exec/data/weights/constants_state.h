/* constants_state.h - the internals of hp_constants, shared by constants.c, constants_fold.c and
 * constants_stored.c. */
#ifndef HP_CONSTANTS_STATE_H
#define HP_CONSTANTS_STATE_H

#include "exec/data/weights/constants.h"
#include "exec/data/weights/safetensors.h"

/* Scratch memory that only grows. */
typedef struct constants_scratch {
    void *at;
    size_t bytes;
} constants_scratch;

/* Changes to a layer's weights; NULL: none. */
typedef struct constants_change {
    const float *in, *out, *delta;
} constants_change;

struct hp_constants {
    hp_constants_options o;
    const hp_graph *graph;
    hp_arena *arena;
    hp_safetensors *st; /* NULL: drawn */
    bool stored;        /* st is a quantised file */
    hp_qparam *qparam;  /* per tensor, with */
    bool *known;
    bool *foreign;            /* per parameter: has another size in the file; drawn */
    constants_change *change; /* per layer */
    double pixel_scale[4], pixel_zero[4];
    constants_scratch weight, weight8, scale, bias, row;
};

/* Returns memory of at least that many bytes; earlier contents are lost. */
void *constants_reserve(constants_scratch *room, size_t bytes);

/* A weight array as (lead, outs, per): conv, linear, bn, scale: lead = 1; convt: lead = input channels. Each
 * group has its own part of the leading axis. */
typedef struct constants_shape {
    int64_t lead, outs, per, groups;
    int64_t channels; /* output channels: outs * groups */
} constants_shape;

/* Shape of the weights of a whole layer. */
constants_shape constants_shape_of(const hp_graph *g, int layer);

/* Position of one output channel: rows first .. end-1 of the leading axis, column `out`. */
typedef struct constants_channel {
    int64_t first, end, out;
} constants_channel;

static inline constants_channel constants_channel_at(const constants_shape *s, int64_t channel) {
    const int64_t group = channel / s->outs, rows = s->lead / s->groups;
    return (constants_channel){group * rows, (group + 1) * rows, channel % s->outs};
}

/* Shape of the weights of a range of channels; grouped transposed convolutions always have all of them. */
constants_shape constants_slice_shape(const constants_shape *whole, int64_t first, int64_t outs);

/* Index of row `i` of that channel within the weights of a range that begins with channel `first`. */
static inline int64_t constants_place(const constants_shape *part, const constants_channel *at, int64_t i,
                                      int64_t first) {
    return (i * part->outs + at->out - (part->groups == 1 ? first : 0)) * part->per;
}

/* constants_fold.c: from the network's own parameters. */
/* Elements first .. first+count-1 of a parameter of the source. */
void constants_read_param(const hp_constants *c, int param, int64_t first, int64_t count, double *out);
hp_status constants_fold(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised,
                         hp_filter *f, hp_error *err);

/* constants_stored.c: a quantised file. */
hp_status constants_stored_open(hp_constants *c, hp_error *err); /* checks the file, reads its qparams */
hp_status constants_stored(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised,
                           hp_filter *f, hp_error *err);

#endif
