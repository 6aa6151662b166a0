/* sched_kind.h - an order of forward and backward passes, and all that the planner asks about it: one file
 * of plan/strategy/schedules/, one row of plan/strategy/sched.def. plan/strategy/schedule.c makes the passes
 * of all orders by one rule. */
#ifndef HP_SCHED_KIND_H
#define HP_SCHED_KIND_H

#include "plan/strategy/legal.h"

typedef struct hp_sched_kind {
    const char *name; /* "1f1b" */
    /* Forward passes, of all model chunks, that a position of several has run as its first backward pass
     * begins; NULL: all of them. More than there are mean all. */
    int (*warm_up)(int positions, int position, int chunks);
    bool splits_backward; /* the gradients of weights come apart from those of data, later */
    bool interleaves;     /* a rank has several model chunks (chunks=) */
    bool mirrors;         /* every second pass over the pipeline is mirrored (gems=) */
    bool pipelines;       /* the search tries it when it trains pipelines of several micro-batches */
    /* Does a text that names no order mean this one? NULL: never, or as hp_sched_plain says. */
    bool (*implied)(const hp_strategy *s);
    bool (*legal)(const hp_legal_case *c,
                  hp_reject *why); /* conditions on strategies with this order; NULL: none */
} hp_sched_kind;

#define SCHED(ID, id) extern const hp_sched_kind hp_sched_##id;
#include "plan/strategy/sched.def"
extern const hp_sched_kind *const hp_sched_kinds[HP_SCHEDS];

static inline const hp_sched_kind *hp_sched_of(const hp_strategy *s) {
    return hp_sched_kinds[s->sched];
}

/* The default order: one batch after the other, or all forward passes first. */
static inline int32_t hp_sched_plain(int micro) {
    return micro > 1 ? HP_SCHED_GPIPE : HP_SCHED_LP;
}
/* The order with the fewest micro-batches in flight, where memory is short. */
static inline int32_t hp_sched_sparing(int micro) {
    return micro > 1 ? HP_SCHED_1F1B : HP_SCHED_LP;
}

#endif
