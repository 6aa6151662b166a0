/* weight_walk.h - tells which input and output channel a weight of a conv, convt or linear layer connects.
 *
 * Weights come in runs that connect the same two channels: the kernel's window; in linear layers, which read
 * (C, H, W), the pixels of a channel. */
#ifndef HP_WEIGHT_WALK_H
#define HP_WEIGHT_WALK_H

#include "networks/graph/graph.h"

typedef struct hp_weight_walk {
    int64_t runs, length; /* weights of run r: [r * length, (r + 1) * length) */
    int64_t d0, d1;       /* leading dimensions, counted in runs */
    int64_t groups;
    bool transposed;
} hp_weight_walk;

typedef struct hp_weight_ends {
    int64_t in, out; /* channels */
} hp_weight_ends;

static inline hp_weight_walk hp_weight_walk_of(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    const hp_param *w = &g->param[l->param[0]];
    hp_weight_walk walk = {.d0 = w->dim[0], .d1 = w->dim[1], .groups = 1, .transposed = l->op == HP_CONVT};
    if (l->op == HP_LINEAR) walk.d1 = g->tensor[l->in[0]].c;
    if (l->op != HP_LINEAR && l->groups > 1) walk.groups = l->groups;
    walk.runs = walk.d0 * walk.d1;
    walk.length = w->count / walk.runs;
    return walk;
}

static inline hp_weight_ends hp_weight_ends_of(const hp_weight_walk *w, int64_t run) {
    const int64_t major = run / w->d1, minor = run % w->d1, group = major / (w->d0 / w->groups);
    const int64_t other = group * w->d1 + minor;
    return w->transposed ? (hp_weight_ends){major, other} : (hp_weight_ends){other, major};
}

#endif
