/* bench_candidate.c - times the parts of evaluating a strategy: lowering, costs, one simulation, folded and
 * of all ranks and micro-batches. Best of five, processor time. usage: bench_candidate MACHINE NET IMAGE
 * STRATEGY... */
#include "plan/lower/lower.h"
#include "sim/costs/costs.h"

#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 5 };

/* Other processes on the machine disturb it least. */
static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void need(hp_status status, const hp_error *err) {
    if (status == HP_OK) return;
    fprintf(stderr, "bench_candidate: %s\n", err->text);
    exit((int)status);
}

typedef struct bench {
    hp_machine machine;
    hp_graph *graph;
    hp_cost_cache *cache;
} bench;

typedef struct times {
    double lower_s, costs_s, folded_s, all_s;
    int64_t tasks, step_ns[2];
} times;

static double simulate(const bench *b, const hp_program *p, const hp_sim_costs *costs, bool fold,
                       int64_t *step_ns) {
    const hp_sim_options o = {.fold = fold, .straggler_rank = -1};
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_sim_result r;
    const double t0 = now_s();
    need(hp_sim_run(arena, p, b->graph, &b->machine, costs, &o, &r, &err), &err);
    *step_ns = r.makespan_ns;
    hp_arena_free(arena);
    return now_s() - t0;
}

static times evaluate(const bench *b, const hp_strategy *s) {
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(s, 1)};
    hp_arena *arena = hp_arena_new();
    hp_program *p;
    hp_error err;
    times t = {0};
    const double t0 = now_s();
    need(hp_lower(arena, b->graph, s, &o, &p, &err), &err);
    const double t1 = now_s();
    const hp_sim_costs costs = hp_costs_of_program(arena, b->cache, p, b->graph);
    t.lower_s = t1 - t0;
    t.costs_s = now_s() - t1;
    for (int r = 0; r < p->n_role; r++) t.tasks += p->role[r].n_task;
    t.folded_s = simulate(b, p, &costs, true, &t.step_ns[0]);
    t.all_s = simulate(b, p, &costs, false, &t.step_ns[1]);
    hp_arena_free(arena);
    return t;
}

static void measure(const bench *b, const char *strategy) {
    hp_strategy s;
    hp_error err;
    need(hp_strategy_parse(strategy, &s, &err), &err);
    times best = evaluate(b, &s);
    for (int i = 1; i < RUNS; i++) {
        const times t = evaluate(b, &s);
        best.lower_s = fmin(best.lower_s, t.lower_s);
        best.costs_s = fmin(best.costs_s, t.costs_s);
        best.folded_s = fmin(best.folded_s, t.folded_s);
        best.all_s = fmin(best.all_s, t.all_s);
    }
    printf("%-34s %9lld tasks: lower %.1f ms, costs %.1f ms, simulate %.1f ms (all: %.1f ms)%s\n", strategy,
           (long long)best.tasks, 1e3 * best.lower_s, 1e3 * best.costs_s, 1e3 * best.folded_s,
           1e3 * best.all_s, best.step_ns[0] == best.step_ns[1] ? "" : "  DIFFERENT STEPS");
}

int main(int argc, char **argv) {
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_cost_table *table;
    bench b;
    if (argc < 5) {
        fprintf(stderr, "usage: bench_candidate MACHINE NET IMAGE STRATEGY...\n");
        return HP_EUSAGE;
    }
    mallopt(M_TRIM_THRESHOLD, INT_MAX); /* as hplan does */
    const int image = atoi(argv[3]);
    need(hp_machine_load(argv[1], &b.machine, &err), &err);
    need(hp_net_build(arena, argv[2], image, image, hp_net_default_classes(argv[2]), &b.graph, &err), &err);
    need(hp_cost_load(arena, NULL, &b.machine, &table, &err), &err);
    b.cache = hp_cost_cache_new(arena, table, &b.machine, NULL);
    for (int i = 4; i < argc; i++) measure(&b, argv[i]);
    hp_arena_free(arena);
    return 0;
}
