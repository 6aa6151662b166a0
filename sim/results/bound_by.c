/* bound_by.c - shares of a step by cause; the largest is named. */
#include "sim/results/bound_by.h"

#include "plan/strategy/layout.h"

#include <stdio.h>

typedef struct cause {
    const char *name;
    double share; /* share of the step, mean over ranks */
} cause;

enum { CAUSES = 9 };

/* Name of what moves between the parts of a stage, or is copied on one. */
static const char *exchanges(const hp_strategy *s) {
    if (s->sp.n > 0) return s->strips.n > 1 ? "halo and strips" : "halo";
    if (s->strips.n > 1) return "strips";
    if (s->tp > 1 || s->seq.ranks > 1) return "tokens and heads";
    return s->cp > 1 ? "channels" : "exchanges between branches";
}

static void list_causes(const hp_strategy *s, const hp_sim_result *r, double host, cause c[CAUSES]) {
    const cause all[CAUSES] = {{exchanges(s), r->wait[HP_SIM_HALO] + r->packing},
                               {"batch-norm statistics", r->wait[HP_SIM_NORM]},
                               {"stage transfers", r->wait[HP_SIM_STAGE]},
                               {"gradient all-reduce", r->wait[HP_SIM_GRADIENT]},
                               {"end of the step", r->wait[HP_SIM_END]},
                               {s->stages > 1 ? "pipeline bubble" : "imbalance", r->bubble},
                               {"compression", r->coding},
                               {"memory", r->recompute},
                               {"host", host}};
    for (int i = 0; i < CAUSES; i++) c[i] = all[i];
}

/* Index of the largest except `but`; ties go to the first. */
static int largest(const cause *c, int but) {
    int best = but == 0 ? 1 : 0;
    for (int i = 0; i < CAUSES; i++)
        if (i != but && c[i].share > c[best].share) best = i;
    return best;
}

const char *hp_bound_by(const hp_strategy *s, const hp_sim_result *r, double host, int busiest, char *note,
                        size_t n) {
    cause c[CAUSES];
    double useful = 1;
    list_causes(s, r, host, c);
    for (int i = 0; i < CAUSES; i++) useful -= c[i].share;
    const int first = largest(c, -1), second = largest(c, first);
    const bool computes = c[first].share < useful / 4;
    const int next = computes ? first : second;
    int used =
        computes ? snprintf(note, n, "bound by compute: %.0f%% of the step", 100 * useful)
                 : snprintf(note, n, "bound by %s: %.0f%% of the step", c[first].name, 100 * c[first].share);
    if (computes && hp_strategy_roles(s) > 1)
        used += snprintf(note + used, n - (size_t)used, ", most on rank %d%s", busiest,
                         s->by[HP_AXIS_N].n ? "" : " of a replica");
    if (c[next].share >= 0.005)
        snprintf(note + used, n - (size_t)used, "; then %s: %.0f%%", c[next].name, 100 * c[next].share);
    return computes ? "compute" : c[first].name;
}
