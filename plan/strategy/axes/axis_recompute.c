/* axis_recompute.c - `recompute`: what is not kept for the backward pass and computed again. */
#include "plan/strategy/axis_kinds.h"
#include "plan/strategy/sched_kind.h"

static const char *const words[] = {[HP_RECOMPUTE_NONE] = "none",
                                    [HP_RECOMPUTE_BOUNDARY] = "boundary",
                                    [HP_RECOMPUTE_FULL] = "full",
                                    [HP_RECOMPUTE_EXCEPT_LAST] = "except-last",
                                    NULL};

/* Orders that keep all until later give way. */
static int spares(const hp_strategy *s, const hp_axis_facts *f, hp_strategy *out) {
    static const hp_recompute STRONGER[] = {HP_RECOMPUTE_BOUNDARY, HP_RECOMPUTE_FULL};
    int n = 0;
    for (size_t i = 0; i < sizeof STRONGER / sizeof *STRONGER && !f->g->deployed; i++) {
        if (s->recompute == (int32_t)STRONGER[i]) continue;
        out[n] = *s;
        if (hp_sched_of(s)->splits_backward) out[n].sched = hp_sched_sparing(s->micro);
        out[n++].recompute = (int32_t)STRONGER[i];
    }
    return n;
}

const hp_axis hp_axis_recompute = {
    .name = "recompute",
    .example = "recompute=full",
    .usual = "none",
    .means = "which activations are kept for the backward pass, which recomputes the others: boundary the "
             "inputs of units, full the inputs of stages, except-last as full, but everything of the last "
             "micro-batch",
    HP_WORD(recompute, words),
    .spare = HP_SPARE_KEPT,
    .spares = spares};
