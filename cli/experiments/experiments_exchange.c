/* experiments_exchange.c - time in which ranks exchange the halos of a map, without the layers beside it. */
#include "cli/experiments/experiments.h"

#include <math.h>

static bool moves_halo(const hp_role *r, const hp_task *t) {
    const int32_t channel = r->queue[t->queue].channel;
    return (t->op == HP_TASK_SEND || t->op == HP_TASK_RECV) && channel & HP_CHANNEL_WITHIN &&
           !(channel & HP_CHANNEL_GRADIENTS);
}

static bool is_message(const hp_role *r, const hp_task *t, int operand) {
    return t->op == HP_TASK_COPY && r->buffer[r->operand[t->operand + operand]].kind == HP_BUF_MESSAGE;
}

/* Tasks first <= t < end: copies into messages, messages, and copies out of them; also the copy of the rank's
 * own map, if it gets room for halos. */
typedef struct exchange {
    int first, end;
} exchange;

static exchange first_exchange(const hp_role *r) {
    exchange x = {0, 0};
    while (x.first < r->n_task && !moves_halo(r, &r->task[x.first])) x.first++;
    if (x.first == r->n_task) return x;
    x.end = x.first;
    while (x.first > 0 && is_message(r, &r->task[x.first - 1], 0)) x.first--;
    while (x.end < r->n_task && (moves_halo(r, &r->task[x.end]) || r->task[x.end].op == HP_TASK_COPY))
        x.end++;
    return x;
}

/* The layer's part: its kernels, and the time to start them. */
static double own_copy_s(hp_cost_cache *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                         int task) {
    const hp_task *t = &r->task[task];
    if (t->op != HP_TASK_COPY || is_message(r, t, 0) || is_message(r, t, 1)) return 0;
    const hp_task_cost cost = hp_costs_task(c, p, g, r, task);
    const hp_framework *f = hp_costs_framework(c);
    return cost.cost.seconds + (f ? f->host.dispatch_s * cost.kernels : 0);
}

static double of_rank(hp_cost_cache *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                      const hp_span *span, int64_t n_span) {
    const exchange x = first_exchange(r);
    int64_t from_ns = INT64_MAX, to_ns = 0;
    double beside_s = 0;
    for (int64_t i = 0; i < n_span; i++) {
        if (span[i].task < x.first || span[i].task >= x.end) continue;
        if (r->task[span[i].task].op != HP_TASK_RECV) /* waiting counts from when they may start */
            from_ns = span[i].t0_ns < from_ns ? span[i].t0_ns : from_ns;
        to_ns = span[i].t1_ns > to_ns ? span[i].t1_ns : to_ns;
        beside_s += own_copy_s(c, p, g, r, span[i].task);
    }
    return to_ns > 0 ? 1e-9 * (double)(to_ns - from_ns) - beside_s : 0;
}

hp_status experiment_exchange(hp_arena *arena, hp_eval *e, const hp_evaluation *v, double *seconds,
                              hp_error *err) {
    const hp_eval_setup *setup = hp_eval_get(e);
    hp_program *p;
    hp_sim_result run;
    hp_cost_cache *c = hp_cost_cache_new(arena, setup->table, setup->machine, setup->framework);
    *seconds = NAN;
    HP_TRY(hp_eval_lower(e, arena, &v->strategy, &p, err));
    HP_TRY(hp_eval_trace(e, arena, p, v->draw, &run, err));
    for (int i = 0; i < run.n_rank; i++) {
        const double s = of_rank(c, p, setup->graph, &p->role[i % p->n_role], run.span[i], run.n_span[i]);
        if (s > 0) *seconds = fmax(s, *seconds); /* which may be NAN */
    }
    return HP_OK;
}
