/* legal.h - what a rule of a key (plan/strategy/strategy_axis.h) sees, and how it says no.
 *
 * A rule returns true, or names its code and the limiting number (hp_refuse) and the smallest change of the
 * strategy that meets it (hp_fix). Following the fixes one after the other ends in a legal strategy. */
#ifndef HP_LEGAL_H
#define HP_LEGAL_H

#include "plan/strategy/layout.h"

typedef struct hp_legal_case {
    const hp_strategy *s; /* canonical */
    const hp_graph *g;
    int64_t batch;
    int n_devices; /* 0 = no cap */
} hp_legal_case;

/* Stages * chunks at most: one unit each, and no more than a strategy can hold. */
static inline int hp_most_stages(const hp_graph *g) {
    return g->n_unit < HP_MAX_STAGES ? g->n_unit : HP_MAX_STAGES;
}

/* Room for so many stages? */
static inline bool hp_legal_fits_stages(const hp_legal_case *c, int stages) {
    return stages * c->s->chunks <= hp_most_stages(c->g);
}

enum { HP_MAX_GROUPS = 65536 }; /* micro-batches of a step: a program lists the tasks of each */

/* legal_training.c: layers that share a parameter. */
bool hp_legal_tied(const hp_legal_case *c, hp_reject *why);

#endif
