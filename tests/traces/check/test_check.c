/* test_check.c - the gate's promise: equal runs pass, slower runs fail, in the promised
 * share of the draws. */
#include "base/rng.h"
#include "tests/support/traces/trace_fixture.h"
#include "traces/check/check_times.h"
#include "traces/check/trace_check.h"
#include "traces/check/compare.h"
#include "tests/support/plan/law_cases.h"

static char path_old[256], path_new[256];

/* One compute task (forward) determines the step; 5 % noise (standard deviation), with a longer upper tail,
 * like real timings. */
typedef struct draw {
    uint64_t seed;
    double factor;
    bool only_communication;
    double others; /* factor of all compute tasks but the longest; 0: the same factor */
} draw;

static int64_t noisy(const void *self, int rank, int task, int iter) {
    const draw *d = self;
    const double g = hp_rng_normal(d->seed, (uint64_t)(rank * 10 + task), (uint64_t)iter);
    const double noise = 1 + 0.05 * g + (g > 1.5 ? 0.1 : 0);
    const double base = task == 1 ? 10e6 : 1e6;
    const bool slowed = d->only_communication ? !fixture_tasks[task].compute : true;
    const double factor = d->others > 0 && task != 1 ? d->others : d->factor;
    return (int64_t)(base * noise * (slowed ? factor : 1));
}

typedef struct extra {
    double planned, peak, loss;
    const char *plan_hash;
} extra;

static void write_run(const char *path, const draw *d, int iters, const extra *x) {
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run r = {.kind = "exec",
                           .ranks = 2,
                           .iters = iters,
                           .duration = noisy,
                           .self = d,
                           .plan_hash = x ? x->plan_hash : NULL};
    const int64_t run = fixture_add(&db, &r);
    if (x) {
        fixture_sample(&db, run, 0, 0, HP_COUNTER_PLANNED, 0, x->planned);
        fixture_sample(&db, run, 1, 0, HP_COUNTER_PLANNED, 0, x->planned / 2);
        fixture_sample(&db, run, 0, 0, HP_COUNTER_PEAK, 0, x->peak);
        fixture_sample(&db, run, 0, 0, HP_COUNTER_LOSS, 0, 100);
        fixture_sample(&db, run, 0, iters - 1, HP_COUNTER_LOSS, 0, x->loss);
    }
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
}

static hp_check judge(hp_arena *arena, hp_check_limits limits) {
    hp_error err = {0};
    hp_check c;
    hp_check_side side[2];
    fixture_ok(hp_check_load(arena, (const char *[]){path_old}, 1, &side[0], &err), &err);
    fixture_ok(hp_check_load(arena, (const char *[]){path_new}, 1, &side[1], &err), &err);
    hp_check_run(arena, &side[0], &side[1], &limits, &c);
    return c;
}

static const hp_check_limits usual = {0.05, 0.05, NAN, false, false};

static int regressions(double factor, int draws, int iters, uint64_t seed) {
    int found = 0;
    for (int k = 0; k < draws; k++) {
        const draw old = {seed + (uint64_t)k, 1, false}, new = {seed + 1000 + (uint64_t)k, factor, false};
        hp_arena *arena = hp_arena_new();
        write_run(path_old, &old, iters, NULL);
        write_run(path_new, &new, iters, NULL);
        found += judge(arena, usual).n_regression > 0;
        hp_arena_free(arena);
    }
    return found;
}

static void equal_runs_pass(void **state) {
    (void)state;
    const int draws = (int)law_some(100);
    assert_true(regressions(1, draws, 16, 1) <= draws / 20);
    assert_true(regressions(1, draws, 40, 5000) <= draws / 20);
}

static void ten_percent_slower_is_found(void **state) {
    (void)state;
    const int draws = (int)law_some(100);
    assert_true(regressions(1.10, draws, 21, 10000) >= draws - draws / 20);
}

static void faster_runs_pass(void **state) {
    (void)state;
    assert_int_equal(regressions(0.8, (int)law_some(10), 21, 20000), 0);
}

/* Significant but within the limit: not a regression. */
static void the_limit_is_kept(void **state) {
    (void)state;
    const draw old = {1, 1, false}, new = {1, 1.10, false}; /* the same noise */
    hp_arena *arena = hp_arena_new();
    write_run(path_old, &old, 101, NULL);
    write_run(path_new, &new, 101, NULL);
    assert_true(judge(arena, usual).n_regression > 0);
    assert_int_equal(judge(arena, (hp_check_limits){0.15, 0.05, NAN, false, false}).n_regression, 0);
    hp_arena_free(arena);
}

/* Longer communication that stays hidden does not slow the step down. */
static void hidden_communication_is_shown_only(void **state) {
    (void)state;
    const draw old = {1, 1, false}, new = {1, 2, true};
    hp_arena *arena = hp_arena_new();
    write_run(path_old, &old, 30, NULL);
    write_run(path_new, &new, 30, NULL);
    const hp_check c = judge(arena, usual);
    assert_int_equal(c.n_regression, 0);
    bool seen = false;
    for (int i = 0; i < c.n_row; i++)
        if (strcmp(c.row[i].name, "transfer") == 0) {
            seen = true;
            assert_int_equal(c.row[i].verdict, HP_VERDICT_INFO);
            assert_true(c.row[i].delta > 0.9 && c.row[i].p < 0.001);
        }
    assert_true(seen);
    hp_arena_free(arena);
}

static const hp_check_row *find_row(const hp_check *c, const char *name) {
    for (int i = 0; i < c->n_row; i++)
        if (strcmp(c->row[i].name, name) == 0) return &c->row[i];
    fail_msg("no row %s", name);
    return NULL;
}

/* A phase got slower in a step that got faster: another plan divides its time differently. */
static void a_slower_phase_of_a_faster_step_passes(void **state) {
    (void)state;
    const draw old = {1, 1, false, 0}, new = {2, 0.6, false, 1.5};
    hp_arena *arena = hp_arena_new();
    write_run(path_old, &old, 30, NULL);
    write_run(path_new, &new, 30, NULL);
    const hp_check c = judge(arena, usual);
    const hp_check_row *backward = find_row(&c, "backward");
    assert_true(backward->delta > 0.3 && backward->p < 0.001);
    assert_int_equal(backward->verdict, HP_VERDICT_INFO);
    assert_int_equal(find_row(&c, "step")->verdict, HP_VERDICT_BETTER);
    assert_int_equal(c.n_regression, 0);
    hp_arena_free(arena);
}

/* Two steps against hundreds prove nothing, whatever they show. */
static void few_steps_against_many_claim_nothing(void **state) {
    (void)state;
    const draw old = {1, 1, false, 0}, slower = {2, 2, false, 0}, faster = {3, 0.5, false, 0};
    const draw *const news[] = {&slower, &faster};
    for (int k = 0; k < 2; k++) {
        hp_arena *arena = hp_arena_new();
        write_run(path_old, &old, 300, NULL);
        write_run(path_new, news[k], 3, NULL);
        const hp_check c = judge(arena, usual);
        assert_true(c.too_few);
        assert_int_equal(c.n_needed, 4); /* 2 / C(8, 4) = 0.029 is the first below 0.05 */
        assert_int_equal(find_row(&c, "step")->verdict, HP_VERDICT_UNKNOWN);
        assert_int_equal(c.n_regression, 0);
        hp_arena_free(arena);
    }
}

static void set_status(const char *path, int status) {
    hp_db db;
    hp_error err = {0};
    fixture_ok(hp_db_open_rw(path, &db, &err), &err);
    fixture_ok(hp_db_exec(&db, &err, "UPDATE run SET status = ?", "i", (int64_t)status), &err);
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
}

/* A run that was killed, or never finished, is a regression however fast its steps were. */
static void a_run_that_died_fails(void **state) {
    (void)state;
    static const int bad[] = {137, 124, 1, -1};
    const draw d = {1, 1, false, 0};
    hp_arena *arena = hp_arena_new();
    write_run(path_old, &d, 8, NULL);
    write_run(path_new, &d, 8, NULL);
    assert_int_equal(judge(arena, usual).n_regression, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set_status(path_new, bad[i]);
        const hp_check c = judge(arena, usual);
        assert_int_equal(c.n_regression, 1);
        assert_int_equal(find_row(&c, "exit status")->verdict, HP_VERDICT_REGRESSION);
    }
    set_status(path_new, 0);
    set_status(path_old, 137); /* only shown: the current run is fine */
    assert_int_equal(judge(arena, usual).n_regression, 0);
    hp_arena_free(arena);
}

/* `compare OLD NEW` and `check NEW --baseline OLD` report one number: (new - old) / old. */
static void check_and_compare_agree(void **state) {
    (void)state;
    const draw old = {1, 1, false, 0}, new = {2, 1.08, false, 1.3};
    hp_error err = {0};
    hp_trace a, b;
    hp_comparison m;
    hp_arena *arena = hp_arena_new();
    write_run(path_old, &old, 30, NULL);
    write_run(path_new, &new, 30, NULL);
    const hp_check c = judge(arena, usual);
    fixture_ok(hp_compare_load(arena, path_old, path_new, &a, &b, &err), &err);
    fixture_ok(hp_compare(arena, &a, &b, &m, &err), &err);
    const hp_check_row *step = find_row(&c, "step");
    assert_true(m.step.change == step->delta); // NOLINT: the same figure
    assert_true(m.step.change == m.step.measured_s / m.step.predicted_s - 1);
    assert_true(step->delta > 0.05 && step->delta < 0.2);
    assert_true(isnan(m.step.error));
    for (int i = 0; i < m.n_phase; i++)
        assert_true(m.phase[i].change == find_row(&c, m.phase[i].name)->delta);
    fixture_ok(hp_compare_load(arena, path_new, path_old, &a, &b, &err), &err);
    fixture_ok(hp_compare(arena, &a, &b, &m, &err), &err);
    assert_true(fabs((1 + m.step.change) * (1 + step->delta) - 1) < 1e-12); /* and back again */
    hp_arena_free(arena);
}

static void too_few_steps_are_said(void **state) {
    (void)state;
    /* after the warm-up: 3 and 3 steps, smallest p 2/C(6,3) = 0.1; 4 and 4: 2/C(8,4) = 0.029 */
    const draw d = {1, 1, false};
    hp_arena *arena = hp_arena_new();
    write_run(path_old, &d, 4, NULL);
    write_run(path_new, &d, 4, NULL);
    assert_true(judge(arena, usual).too_few);
    write_run(path_old, &d, 5, NULL);
    write_run(path_new, &d, 5, NULL);
    assert_false(judge(arena, usual).too_few);
    hp_arena_free(arena);
}

static int with_extra(extra old, extra new, hp_check_limits limits) {
    const draw d = {1, 1, false};
    hp_arena *arena = hp_arena_new();
    write_run(path_old, &d, 8, &old);
    write_run(path_new, &d, 8, &new);
    const int n = judge(arena, limits).n_regression;
    hp_arena_free(arena);
    return n;
}

static void memory_and_loss_are_held_to_their_limits(void **state) {
    (void)state;
    const extra base = {1e9, 1e9, 2.0, "p"};
    assert_int_equal(with_extra(base, base, usual), 0);
    assert_int_equal(with_extra(base, (extra){1.04e9, 1.04e9, 2.0, "p"}, usual), 0);
    assert_int_equal(with_extra(base, (extra){1.06e9, 1.04e9, 2.0, "p"}, usual), 1);
    assert_int_equal(with_extra(base, (extra){1.06e9, 1.06e9, 2.0, "p"}, usual), 2);
    assert_int_equal(with_extra(base, (extra){1e9, 1e9, 9.0, "p"}, usual), 0); /* loss is judged on request */
    assert_int_equal(with_extra(base, (extra){1e9, 1e9, (double)NAN, "p"}, usual),
                     1); /* but NaN is a failure */
    assert_int_equal(
        with_extra((extra){1e9, 1e9, (double)NAN, "p"}, (extra){1e9, 1e9, (double)NAN, "p"}, usual), 1);
    const hp_check_limits absolute = {0.05, 0.05, 0.1, false, false},
                          relative = {0.05, 0.05, 0.1, true, false};
    assert_int_equal(with_extra(base, (extra){1e9, 1e9, 2.15, "p"}, absolute), 1);
    assert_int_equal(with_extra(base, (extra){1e9, 1e9, 2.15, "p"}, relative), 0);
    assert_int_equal(with_extra(base, (extra){1e9, 1e9, 1.0, "p"}, absolute), 0);
    assert_int_equal(with_extra(base, (extra){1e9, 1e9, (double)NAN, "p"}, relative), 1);
    assert_int_equal(with_extra(base, (extra){1e9, 1e9, (double)INFINITY, "p"}, relative), 1);
}

/* --- several runs a side --- */

enum { RUNS_MAX = 6 };

static void run_path(char out[256], int side, int i) {
    char name[32];
    snprintf(name, sizeof name, "check-%s-%d.db", side ? "new" : "old", i);
    fixture_path(out, 256, name);
}

/* `n` runs a side of `iters` steps: their factors, and the noise of `seed`. */
static hp_check judge_runs(hp_arena *arena, const double *old, const double *new, int n, int iters,
                           uint64_t seed, hp_check_limits limits) {
    static char path[2][RUNS_MAX][256];
    hp_error err = {0};
    hp_check c;
    hp_check_side side[2];
    for (int k = 0; k < 2; k++) {
        const char *list[RUNS_MAX];
        for (int i = 0; i < n; i++) {
            const draw d = {seed + (uint64_t)(k * RUNS_MAX + i), (k ? new : old)[i], false, 0};
            run_path(path[k][i], k, i);
            write_run(path[k][i], &d, iters, NULL);
            list[i] = path[k][i];
        }
        fixture_ok(hp_check_load(arena, list, n, &side[k], &err), &err);
        for (int i = 0; i < n; i++) unlink(list[i]);
    }
    hp_check_run(arena, &side[0], &side[1], &limits, &c);
    return c;
}

static void runs_are_the_samples(void **state) {
    (void)state;
    static const double old[] = {1, 1.02, 0.98, 1.01}, new[] = {1.5, 1.52, 1.48, 1.51};
    hp_arena *arena = hp_arena_new();
    hp_check c = judge_runs(arena, old, new, 4, 12, 1, usual);
    assert_true(c.by_run && !c.too_few && c.n_old == 4 && c.n_new == 4 && c.n_needed == 4);
    fixture_near(find_row(&c, "step")->p, 2. / 70); /* complete separation: 2 / C(8, 4) */
    assert_int_equal(find_row(&c, "step")->verdict, HP_VERDICT_REGRESSION);
    assert_true(isinf(find_row(&c, "step")->old.half)); /* an interval of 95 % needs six */
    c = judge_runs(arena, old, new, 3, 12, 1, usual);   /* whatever the number of steps */
    assert_true(c.by_run && c.too_few);
    assert_int_equal(find_row(&c, "step")->verdict, HP_VERDICT_UNKNOWN);
    assert_int_equal(c.n_regression, 0);
    hp_arena_free(arena);
}

/* Runs that differ by 10 % each, all of one distribution: any two of them differ significantly by their
 * steps, and no gate may take that for a regression of the program. */
static void what_differs_from_run_to_run_is_no_regression(void **state) {
    (void)state;
    const int draws = (int)law_some(60);
    int by_steps = 0, by_runs = 0;
    for (int k = 0; k < draws; k++) {
        double old[RUNS_MAX], new[RUNS_MAX];
        for (int i = 0; i < RUNS_MAX; i++) {
            old[i] = 1 + 0.1 * hp_rng_normal(77, (uint64_t)k, (uint64_t)i);
            new[i] = 1 + 0.1 * hp_rng_normal(78, (uint64_t)k, (uint64_t)i);
        }
        hp_arena *arena = hp_arena_new();
        const uint64_t seed = 30000 + (uint64_t)k * 100;
        by_steps += judge_runs(arena, old, new, 1, 40, seed, usual).n_regression > 0;
        by_runs += judge_runs(arena, old, new, RUNS_MAX, 10, seed, usual).n_regression > 0;
        hp_arena_free(arena);
    }
    assert_true(by_steps > draws / 5);
    assert_true(by_runs <= draws / 20 + 1);
}

/* On request a phase fails the gate, at a level that all tests share. */
static void phases_are_judged_on_request(void **state) {
    (void)state;
    const draw old = {1, 1, false, 0}, new = {2, 0.6, false, 1.5};
    hp_check_limits asked = usual;
    asked.phases = true;
    hp_arena *arena = hp_arena_new();
    write_run(path_old, &old, 30, NULL);
    write_run(path_new, &new, 30, NULL);
    const hp_check c = judge(arena, asked);
    int judged = 0;
    for (int i = 0; i < c.n_row; i++) judged += c.row[i].unit == HP_CHECK_SECONDS && !isnan(c.row[i].limit);
    assert_true(judged > 2);
    fixture_near(c.alpha * judged, HP_COMPARE_ALPHA);
    assert_true(c.n_needed > 4);
    assert_int_equal(find_row(&c, "backward")->verdict, HP_VERDICT_REGRESSION);
    assert_int_equal(find_row(&c, "step")->verdict, HP_VERDICT_BETTER);
    assert_int_equal(find_row(&c, "waiting")->verdict, HP_VERDICT_INFO);
    hp_arena_free(arena);
}

/* Ranks of the 95 % interval of a median (Conover 1999, table A3; benchstat has the same): n = 6: 1 and 6,
 * n = 10: 2 and 9, n = 20: 6 and 15. */
static void intervals_are_those_of_order_statistics(void **state) {
    (void)state;
    static const int known[][2] = {{6, 6}, {10, 9}, {20, 15}};
    double v[20];
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const int n = known[k][0];
        const double median = 100 + (n + 1) / 2.;
        for (int i = 0; i < n; i++) v[i] = 101 + i;
        fixture_near(hp_check_describe(median, v, n).half, (100 + known[k][1] - median) / median);
    }
    assert_true(isinf(hp_check_describe(103, v, 5).half));
}

static void files_without_runs_are_rejected(void **state) {
    (void)state;
    hp_error err = {0};
    hp_db db;
    hp_check_side side;
    hp_arena *arena = hp_arena_new();
    fixture_ok(hp_db_create(path_old, &db, &err), &err);
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
    assert_int_equal(hp_check_load(arena, (const char *[]){path_old}, 1, &side, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "hplan run"));
    hp_arena_free(arena);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(path_old, sizeof path_old, "check-old.db");
    fixture_path(path_new, sizeof path_new, "check-new.db");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path_old);
    unlink(path_new);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_runs_pass),
        cmocka_unit_test(ten_percent_slower_is_found),
        cmocka_unit_test(faster_runs_pass),
        cmocka_unit_test(the_limit_is_kept),
        cmocka_unit_test(hidden_communication_is_shown_only),
        cmocka_unit_test(a_slower_phase_of_a_faster_step_passes),
        cmocka_unit_test(few_steps_against_many_claim_nothing),
        cmocka_unit_test(a_run_that_died_fails),
        cmocka_unit_test(check_and_compare_agree),
        cmocka_unit_test(too_few_steps_are_said),
        cmocka_unit_test(memory_and_loss_are_held_to_their_limits),
        cmocka_unit_test(runs_are_the_samples),
        cmocka_unit_test(what_differs_from_run_to_run_is_no_regression),
        cmocka_unit_test(phases_are_judged_on_request),
        cmocka_unit_test(intervals_are_those_of_order_statistics),
        cmocka_unit_test(files_without_runs_are_rejected),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
