/* test_both_interpreters.c - the simulator and the executor run the same program: the same (task, iteration)
 * set on every rank, each in an order that the program allows, so the simulated order is one the executor
 * could have taken. */
#include "tests/support/sim/critical_path.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/exec/run_ranks.h"
#include "plan/lower/lower.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { STEPS = 2 };

static double seconds(void *self, const hp_program *p, const hp_graph *g, int role, int task) {
    (void)self, (void)p, (void)g;
    return 1e-6 * (1 + (task * 7 + role * 3) % 5); /* arbitrary costs: the law is about order */
}

static double share(void *self, const hp_program *p, const hp_graph *g, int role, int task) {
    (void)self, (void)p, (void)g, (void)role, (void)task;
    return 0;
}

/* Every task of the role runs once; nothing starts before its dependencies have ended; the compute queue runs
 * in list order. */
static void allowed(const hp_role *r, const hp_span *span, int64_t n, const char *who) {
    int64_t *t0 = calloc((size_t)r->n_task, sizeof *t0), *t1 = calloc((size_t)r->n_task, sizeof *t1);
    int *times = calloc((size_t)r->n_task, sizeof *times);
    for (int64_t i = 0; i < n; i++) {
        assert_in_range(span[i].task, 0, r->n_task - 1);
        times[span[i].task]++;
        t0[span[i].task] = span[i].t0_ns;
        t1[span[i].task] = span[i].t1_ns;
        assert_true(span[i].t0_ns <= span[i].t1_ns);
    }
    int before = -1;
    for (int t = 0; t < r->n_task; t++) {
        if (times[t] != 1) fail_msg("%s: task %d of stage %d ran %d times", who, t, r->stage, times[t]);
        for (int k = r->dep_first[t]; k < r->dep_first[t + 1]; k++)
            if (t0[t] < t1[r->dep[k]])
                fail_msg("%s: stage %d task %d started before task %d ended", who, r->stage, t, r->dep[k]);
        if (r->task[t].queue != 0) continue;
        if (before >= 0 && t0[t] < t1[before])
            fail_msg("%s: stage %d: compute tasks %d and %d overlap", who, r->stage, before, t);
        before = t;
    }
    free(t0);
    free(t1);
    free(times);
}

static void check_executed(const char *dir, const hp_program *p) {
    for (int rank = 0; rank < hp_program_ranks(p); rank++) {
        char path[512];
        hp_ring_data data;
        hp_error err;
        snprintf(path, sizeof path, "%s/rank-%d.ring", dir, rank);
        if (hp_ring_read(path, &data, &err) != HP_OK) fail_msg("%s", err.text);
        const hp_role *r = &p->role[rank % p->n_role];
        assert_int_equal(data.dropped, 0);
        assert_int_equal(data.n_span, (int64_t)r->n_task * STEPS);
        for (int step = 0; step < STEPS; step++) {
            hp_span *of_step = calloc((size_t)r->n_task, sizeof *of_step);
            int n = 0;
            for (int64_t i = 0; i < data.n_span; i++)
                if (data.span[i].iter == step && n < r->n_task) of_step[n++] = data.span[i];
            allowed(r, of_step, n, "executor");
            free(of_step);
        }
        hp_ring_free(&data);
        remove(path);
    }
}

static void check_simulated(hp_arena *arena, const hp_program *p, const hp_graph *g) {
    const hp_sim_costs costs = {seconds, share, NULL};
    const hp_sim_options o = {.want_spans = true, .straggler_rank = -1};
    hp_machine m;
    hp_sim_result result;
    hp_error err;
    if (hp_machine_load("thesis-a100", &m, &err) != HP_OK ||
        hp_sim_run(arena, p, g, &m, &costs, &o, &result, &err) != HP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(result.n_rank, hp_program_ranks(p));
    for (int rank = 0; rank < result.n_rank; rank++)
        allowed(&p->role[rank % p->n_role], result.span[rank], result.n_span[rank], "simulator");
    assert_true(result.makespan_ns >= critical_path_ns(arena, p, g, &costs));
}

static void both_interpreters_run_the_same_tasks_in_allowed_orders(void **state) {
    (void)state;
    char dir[] = "both-XXXXXX";
    assert_non_null(mkdtemp(dir));
    for (uint64_t seed = 1; seed <= 40; seed++) {
        dice d = {seed, 6000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 7));
        const int groups = roll(&d, 1, 6);
        const hp_strategy s = random_strategy_of(&d, g, groups, 12, DRAW_ALL);
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F64, .batch = hp_strategy_batch(&s, groups), .place = true};
        hp_program *p = NULL;
        hp_error err;
        assert_int_equal(hp_lower(arena, g, &s, &o, &p, &err), HP_OK);
        double loss[STEPS];
        ranks_job job = {.g = g,
                         .p = p,
                         .ops = &hp_device_ref,
                         .steps = STEPS,
                         .lr = 0.01,
                         .seed = seed,
                         .loss = loss,
                         .weights = HP_NEW(arena, double, ranks_param_elems(g)),
                         .ring_dir = dir};
        if (run_ranks(&job) != HP_OK) fail_msg("%s", job.err.text);
        check_executed(dir, p);
        check_simulated(arena, p, g);
        hp_arena_free(arena);
    }
    remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_interpreters_run_the_same_tasks_in_allowed_orders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
