/* result.c - the result of a run: means over all ranks, and the spans of each. */
#include "plan/program/traffic.h"
#include "sim/engine/periods.h"
#include "sim/engine/state.h"

#include <math.h>
#include <stdlib.h>

static int compare_spans(const void *a, const void *b) {
    const hp_span *x = a, *y = b;
    if (x->t0_ns != y->t0_ns) return x->t0_ns < y->t0_ns ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static hp_span *spans_of(sim *s, int rank) {
    const rank_state *r = &s->rank[rank];
    const int n_task = sim_role(s, rank)->role->n_task;
    hp_span *span = HP_NEW(s->arena, hp_span, n_task);
    for (int t = 0; t < n_task; t++)
        span[t] = (hp_span){.task = t, .t0_ns = r->t0_ns[t], .t1_ns = r->t1_ns[t]};
    qsort(span, (size_t)n_task, sizeof(hp_span), compare_spans);
    return span;
}

/* Ranks of a class share their spans. */
static void write_spans(sim *s, hp_sim_result *out) {
    hp_span **of = HP_NEW(s->arena, hp_span *, s->n_rank);
    out->n_rank = hp_program_ranks(s->program);
    out->n_span = HP_NEW(s->arena, int64_t, out->n_rank);
    out->span = HP_NEW(s->arena, hp_span *, out->n_rank);
    for (int i = 0; i < s->n_rank; i++) of[i] = spans_of(s, i);
    for (int i = 0; i < out->n_rank; i++) {
        out->n_span[i] = s->program->role[i % s->program->n_role].n_task;
        out->span[i] = of[s->classes->of[i]];
    }
}

void sim_write_result(sim *s, hp_sim_result *out) {
    *out = (hp_sim_result){.makespan_ns = s->now_ns};
    const double all = s->now_ns > 0 ? (double)s->now_ns * hp_program_ranks(s->program) : 1;
    double compute = 0;
    for (int i = 0; i < s->n_rank; i++) {
        const rank_state *r = &s->rank[i];
        const double share = s->classes->size[i] / all;
        compute += (double)r->spent.compute_ns * share;
        out->recompute += (double)r->spent.recompute_ns * share;
        out->packing += (double)r->spent.packing_ns * share;
        out->coding += (double)r->spent.coding_ns * share;
        for (int k = 0; k < HP_SIM_WAITS; k++) out->wait[k] += (double)r->spent.wait_ns[k] * share;
    }
    for (int k = 0; k < HP_SIM_WAITS; k++) out->exposed_comm += out->wait[k];
    out->bubble = s->now_ns > 0 ? fmax(0, 1 - compute - out->exposed_comm) : 0;
    out->comm_bytes = hp_program_sent_bytes(s->program);
    out->simulated = s->n_rank;
    out->passed_over = sim_periods_passed(s->periods);
    if (s->options->want_spans) write_spans(s, out);
}
