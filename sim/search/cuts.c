/* cuts.c - the chains-on-chains problem of plan/strategy/cut.c with stages on which units cost differently:
 * dynamic programming over suffixes. */
#include "sim/search/cuts.h"

#include "plan/strategy/schedule.h"

#include <math.h>

/* Cost of units on devices of a class, and the factor for the slowest of these; memory: relative to the first
 * class. */
typedef struct ground {
    const hp_part_sums *on;
    double slower, tighter;
} ground;

typedef struct cutter {
    ground at[HP_MAX_STAGES][1 + HP_MORE_CLASSES]; /* per virtual stage, the classes that its ranks are on */
    int grounds[HP_MAX_STAGES];
    double held[HP_MAX_STAGES]; /* micro-batches in flight */
    hp_cut_kind kind;
    bool eager;
} cutter;

bool hp_cut_is_plain(const hp_strategy *s, const hp_machine *m) {
    const int first = hp_stage_parts(s, 0);
    if (hp_machine_mixed(m)) return s->stages == 1;
    for (int stage = 1; stage < s->stages; stage++)
        if (hp_stage_parts(s, stage) != first) return false;
    return true;
}

/* Inference keeps its constants and the live activations. */
static double inference_bytes(const hp_part_sums *p, int first, int end) {
    double most = 0;
    for (int u = first; u < end; u++) most = fmax(most, p->peak[u]);
    return p->constants[end] - p->constants[first] + most;
}

static double cost_on(const cutter *c, int stage, const ground *at, int first, int end) {
    const hp_part_sums *p = at->on;
    if (c->kind != HP_CUT_MEMORY)
        return at->slower * (p->forward[end] - p->forward[first] + p->backward[end] - p->backward[first]);
    if (p->peak) return at->tighter * inference_bytes(p, first, end);
    const double *kept = c->eager ? p->eager_bytes : p->kept_bytes;
    return at->tighter *
           (c->held[stage] * (kept[end] - kept[first]) + 12 * (p->params[end] - p->params[first]));
}

/* The slowest, or fullest, ranks decide. */
static double cost(const cutter *c, int stage, int first, int end) {
    double most = 0;
    for (int k = 0; k < c->grounds[stage]; k++)
        most = fmax(most, cost_on(c, stage, &c->at[stage][k], first, end));
    return most;
}

/* Best end of a stage that begins at `first`. rest[end] is the cost of the later stages from there, which may
 * grow with `end` if each must take a unit. A longer stage costs more. */
static int best_end(const cutter *c, int stage, const double *rest, int first, int last_end) {
    double least = INFINITY;
    int best = first + 1;
    for (int end = first + 1; end <= last_end; end++) {
        const double own = cost(c, stage, first, end);
        if (own >= least) break;
        if (fmax(own, rest[end]) >= least) continue;
        least = fmax(own, rest[end]);
        best = end;
    }
    return best;
}

/* Cuts units first .. end-1 over stages from .. to-1, minimising the most expensive one. */
static void balance(const cutter *c, int from, int to, int first, int end, int32_t *counts) {
    hp_arena *scratch = hp_arena_new();
    const int row = end + 1, n = to - from;
    double *best = HP_NEW(scratch, double, (size_t)n *(size_t)row);
    int32_t *stop = HP_NEW(scratch, int32_t, (size_t)n * (size_t)row);
    for (int u = first; u < end; u++) {
        best[(n - 1) * row + u] = cost(c, to - 1, u, end);
        stop[(n - 1) * row + u] = end;
    }
    for (int k = n - 2; k >= 0; k--)
        for (int u = first; u + n - k <= end; u++) {
            const double *rest = &best[(k + 1) * row];
            const int at = best_end(c, from + k, rest, u, end - (n - k - 1));
            stop[k * row + u] = at;
            best[k * row + u] = fmax(cost(c, from + k, u, at), rest[at]);
        }
    for (int k = 0, u = first; k < n; u += counts[from + k++]) counts[from + k] = stop[k * row + u] - u;
    hp_arena_free(scratch);
}

/* Returns how many they are. */
static int list_grounds(const hp_cut_costs *costs, const hp_layout *layout, const hp_unlike_place *place,
                        int64_t micro_batch, ground *at) {
    const hp_machine *m = costs->machine;
    int n = 0;
    for (int k = 0; k < hp_machine_classes(m); k++) {
        if (place->speed[k] == 0) continue;
        const double tighter = (double)m->device.memory_bytes / (double)hp_machine_class(m, k)->memory_bytes;
        at[n++] =
            (ground){hp_parts_of(costs->of_class[k], layout, micro_batch), 1 / place->speed[k], tighter};
    }
    return n;
}

void hp_cut_stages(const hp_cut_costs *costs, const hp_graph *g, const hp_strategy *s, int64_t micro_batch,
                   hp_cut_kind kind, bool eager, int32_t *counts) {
    cutter c = {.kind = kind, .eager = eager};
    hp_unlike_place place[HP_MAX_STAGES];
    const int n = s->stages * s->chunks;
    hp_unlike_places(s, costs->machine, place);
    for (int v = 0; v < n; v++) {
        const hp_layout layout = hp_stage_layout(s, v % s->stages);
        const int position = hp_position_of(s, v % s->stages);
        c.held[v] = hp_schedule_in_flight(s, position);
        c.grounds[v] = list_grounds(costs, &layout, &place[position], micro_batch, c.at[v]);
    }
    const int tail = s->stages - s->sp.n;
    if (kind != HP_CUT_SEAM || s->sp.n == 0 || tail == 0) {
        balance(&c, 0, n, 0, g->n_unit, counts);
        return;
    }
    balance(&c, 0, s->sp.n, 0, g->n_unit - tail, counts);
    for (int v = s->sp.n; v < n; v++) counts[v] = 1;
}
