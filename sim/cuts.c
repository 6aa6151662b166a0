/* cuts.c - a bottleneck is possible when stages that take as many units as it allows, one after the other, reach the
 * end (Pinar and Aykanat, JPDC 2004: probe and bisect); stages may differ in what a unit costs on them. */
#include "sim/cuts.h"

#include <math.h>

enum { BISECTIONS = 60 }; /* beyond the precision of the costs */

typedef struct cutter {
    const hp_strategy *s;
    const hp_part_sums *on[HP_MAX_STAGES]; /* per virtual stage */
    double held[HP_MAX_STAGES];            /* micro-batches in flight */
    hp_cut_kind kind;
    bool eager;
} cutter;

bool hp_cut_is_plain(const hp_strategy *s) {
    const int first = hp_stage_parts(s, 0);
    for (int stage = 1; stage < s->stages; stage++)
        if (hp_stage_parts(s, stage) != first) return false;
    return true;
}

int hp_in_flight(const hp_strategy *s, int position) {
    const int positions = hp_positions(s), left = positions - position;
    if (positions == 1) return 1;
    switch ((hp_sched)s->sched) {
    case HP_SCHED_1F1B:
    case HP_SCHED_ZB:
        return left < s->micro ? left : s->micro;
    case HP_SCHED_INTERLEAVED:
        return 1;
    default:
        return s->micro;
    }
}

static double cost(const cutter *c, int stage, int first, int end) {
    const hp_part_sums *p = c->on[stage];
    if (c->kind != HP_CUT_MEMORY)
        return p->forward[end] - p->forward[first] + p->backward[end] - p->backward[first];
    const double *kept = c->eager ? p->eager_bytes : p->kept_bytes;
    return c->held[stage] * (kept[end] - kept[first]) + 12 * (p->params[end] - p->params[first]);
}

/* Cuts units first .. end-1 over stages from .. to-1 so that none costs more than `most`; false: not possible. */
static bool probe(const cutter *c, int from, int to, int first, int end, double most, int32_t *counts) {
    for (int v = from; v < to; v++) {
        const int others = to - v - 1;
        int n = others ? 1 : end - first;
        while (others && first + n + others < end && cost(c, v, first, first + n + 1) <= most) n++;
        if (cost(c, v, first, first + n) > most) return false;
        counts[v] = n;
        first += n;
    }
    return true;
}

static void balance(const cutter *c, int from, int to, int first, int end, int32_t *counts) {
    double low = 0, high = 0;
    for (int v = from; v < to; v++) high = fmax(high, cost(c, v, first, end));
    for (int i = 0; i < BISECTIONS; i++) {
        const double middle = (low + high) / 2;
        if (probe(c, from, to, first, end, middle, counts))
            high = middle;
        else
            low = middle;
    }
    const bool possible = probe(c, from, to, first, end, high, counts);
    HP_ASSERT(possible);
}

void hp_cut_stages(hp_parts *parts, const hp_graph *g, const hp_strategy *s, int64_t micro_batch, hp_cut_kind kind,
                   bool eager, int32_t *counts) {
    cutter c = {.s = s, .kind = kind, .eager = eager};
    const int n = s->stages * s->chunks;
    for (int v = 0; v < n; v++) {
        const hp_layout layout = hp_stage_layout(s, v % s->stages);
        c.on[v] = hp_parts_of(parts, &layout, micro_batch);
        c.held[v] = hp_in_flight(s, hp_position_of(s, v % s->stages));
    }
    const int tail = s->stages - s->n_sp;
    if (kind != HP_CUT_SEAM || s->n_sp == 0 || tail == 0) {
        balance(&c, 0, n, 0, g->n_unit, counts);
        return;
    }
    balance(&c, 0, s->n_sp, 0, g->n_unit - tail, counts);
    for (int v = s->n_sp; v < n; v++) counts[v] = 1;
}
