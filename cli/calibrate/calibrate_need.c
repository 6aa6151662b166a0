/* calibrate_need.c - from a search to the tasks that its predictions rest on. */
#include "cli/commands/simulate_search.h"
#include "cli/calibrate/calibrate_need.h"

#include <string.h>

enum { CANDIDATES = 10 };

int calibrate_need_compare(const void *a, const void *b) {
    const calibrate_need *x = a, *y = b;
    const int key = strcmp(x->work.key, y->work.key);
    return key ? key : (x->work.size > y->work.size) - (x->work.size < y->work.size);
}

/* Sorts, and merges equal entries. */
static void merge(calibrate_needs *needs) {
    int kept = 0;
    qsort(needs->need, (size_t)needs->n, sizeof *needs->need, calibrate_need_compare);
    for (int i = 0; i < needs->n; i++) {
        calibrate_need *last = kept ? &needs->need[kept - 1] : NULL;
        if (last && calibrate_need_compare(last, &needs->need[i]) == 0)
            last->weight += needs->need[i].weight;
        else
            needs->need[kept++] = needs->need[i];
    }
    needs->n = kept;
}

static int64_t count_tasks(const hp_program *p) {
    int64_t n = 0;
    for (int r = 0; r < p->n_role; r++) n += p->role[r].n_task;
    return n;
}

static void add_task(calibrate_needs *out, const hp_plan *plan, const hp_cost_table *t, const hp_role *r,
                     int task) {
    const hp_task *k = &r->task[task];
    const int64_t bytes = hp_task_bytes(k);
    if (k->queue != 0) {
        if (bytes > out->most_bytes) out->most_bytes = bytes;
        return;
    }
    calibrate_need *n = &out->need[out->n++];
    *n = (calibrate_need){.work = hp_task_work(plan->program, plan->graph, r, task)};
    n->weight = hp_cost_compute(t, &plan->machine, &n->work).seconds;
}

hp_status calibrate_needs_of(hp_arena *arena, const hp_plan *plan, const hp_cost_table *t,
                             calibrate_needs *out, hp_error *err) {
    const hp_program *p = plan->program;
    const int64_t most = count_tasks(p);
    *out = (calibrate_needs){.n = 0};
    if (most > INT32_MAX / 2)
        return hp_fail(err, HP_EPLAN, "a program of %lld tasks is too large", (long long)most);
    out->need = HP_NEW(arena, calibrate_need, most);
    for (int r = 0; r < p->n_role; r++)
        for (int task = 0; task < p->role[r].n_task; task++) add_task(out, plan, t, &p->role[r], task);
    merge(out);
    return HP_OK;
}

/* Adds a candidate's needs as fractions of its compute time. */
static hp_status add_candidate(hp_arena *arena, const simulate_setup *s, const hp_evaluation *e,
                               calibrate_needs *needs, hp_error *err) {
    hp_plan plan = simulate_plan(s, &e->strategy, e->figures.batch);
    calibrate_needs own;
    HP_TRY(hp_plan_build(arena, &plan, NULL, err)); /* its cut is written out */
    HP_TRY(calibrate_needs_of(arena, &plan, s->costs.table, &own, err));
    double sum = 0;
    for (int i = 0; i < own.n; i++) sum += own.need[i].weight;
    if (own.most_bytes > needs->most_bytes) needs->most_bytes = own.most_bytes;
    calibrate_need *all = HP_NEW(arena, calibrate_need, needs->n + own.n);
    if (needs->n) memcpy(all, needs->need, sizeof *all * (size_t)needs->n);
    for (int i = 0; i < own.n; i++) {
        all[needs->n + i] = own.need[i];
        all[needs->n + i].weight /= sum > 0 ? sum : 1;
    }
    needs->need = all;
    needs->n += own.n;
    merge(needs);
    needs->candidate[needs->n_candidate++] =
        (calibrate_candidate){plan.strategy, plan.program->micro_batch, plan.batch};
    return HP_OK;
}

/* Adds the best candidates of one batch. */
static hp_status add_batch(hp_arena *arena, simulate_setup *s, calibrate_needs *needs, hp_error *err) {
    simulate_found f = {0};
    HP_TRY(simulate_search(arena, s, &f, err));
    if (f.tally.stopped)
        return hp_fail(err, (hp_status)(128 + SIGINT), "stopped while it searched for what to measure");
    calibrate_candidate *all = HP_NEW(arena, calibrate_candidate, needs->n_candidate + f.n);
    if (needs->n_candidate) memcpy(all, needs->candidate, sizeof *all * (size_t)needs->n_candidate);
    needs->candidate = all;
    for (int i = 0; i < f.n; i++) HP_TRY(add_candidate(arena, s, &f.list[i], needs, err));
    return HP_OK;
}

hp_status calibrate_needs_find(hp_arena *arena, simulate_setup *s, calibrate_needs *needs, hp_error *err) {
    static const int64_t PER_DEVICE[] = {1, 4,
                                         16}; /* where the batch is left open: sizes between lie on lines */
    const bool open = s->step.batch == 0;
    *needs = (calibrate_needs){.n = 0};
    s->search.top = open ? CANDIDATES / 2 : CANDIDATES;
    for (size_t i = 0; i < (open ? sizeof PER_DEVICE / sizeof *PER_DEVICE : 1); i++) {
        if (open) s->step.batch = PER_DEVICE[i] * s->curves.count[0];
        const hp_status status = add_batch(arena, s, needs, err);
        if (open) s->step.batch = 0;
        HP_TRY(status);
    }
    if (needs->n_candidate == 0)
        return hp_fail(err, HP_EPLAN, "no strategy fits, so there is nothing to measure: see hplan simulate");
    for (int i = 0; i < needs->n; i++) needs->need[i].weight /= needs->n_candidate;
    calibrate_needs_update(needs, s->costs.table, &s->machine);
    return HP_OK;
}

double calibrate_needs_update(calibrate_needs *needs, const hp_cost_table *t, const hp_machine *m) {
    double sum = 0;
    for (int i = 0; i < needs->n; i++) {
        calibrate_need *n = &needs->need[i];
        const hp_cost c = hp_cost_compute(t, m, &n->work);
        n->error = c.seconds > 0 ? (c.high - c.seconds) / c.seconds : 0;
        sum += n->weight * n->error;
    }
    return sum;
}
