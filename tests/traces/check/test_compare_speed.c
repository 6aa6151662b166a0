/* test_compare_speed.c - runs whose machine and model deviate by known factors: the split finds both. */
#include "base/rng.h"
#include "tests/support/traces/trace_fixture.h"
#include "traces/check/compare_speed.h"

static char path[256];

static void close_to(double have, double want, double tolerance) {
    if (!(fabs(have - want) <= tolerance * fabs(want)))
        fail_msg("%.9g is not within %g of %.9g", have, tolerance, want);
}

/* --- a run that slows its tasks --- */

enum { TASK_NS = 3000000 };

/* Compute tasks take whole milliseconds on the quiet machine, messages a fiftieth of that,
 * so they stay hidden. */
typedef struct truth {
    double run[FIXTURE_TASKS], predicted[FIXTURE_TASKS]; /* slowdowns */
    double model;                                        /* measured time / the model's */
} truth;

static double quiet_ns(int task) {
    return fixture_tasks[task].compute ? (double)(task + 1) * TASK_NS : (double)(task + 1) * TASK_NS / 50;
}

static int64_t predicted(const void *self, int rank, int task, int iter) {
    const truth *t = self;
    (void)rank, (void)iter;
    return (int64_t)(quiet_ns(task) * t->predicted[task]);
}

static int64_t measured(const void *self, int rank, int task, int iter) {
    const truth *t = self;
    (void)rank;
    return (int64_t)(quiet_ns(task) * t->run[task] * t->model * (iter == 0 ? 3 : 1));
}

static truth random_truth(uint64_t seed) {
    truth t = {.model = 0.7 + 0.6 * hp_rng_uniform(seed, 0, 0)};
    for (int i = 0; i < FIXTURE_TASKS; i++) {
        t.run[i] = 1 + hp_rng_uniform(seed, 1, (uint64_t)i);
        t.predicted[i] = 1 + 0.5 * hp_rng_uniform(seed, 2, (uint64_t)i);
    }
    return t;
}

static void load_pair(hp_arena *arena, const truth *t, hp_trace *a, hp_trace *b, hp_comparison *c) {
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run s = {
        .kind = "sim", .ranks = 2, .span_ranks = 2, .iters = 1, .duration = predicted, .self = t};
    const fixture_run e = {.kind = "exec", .ranks = 2, .iters = 6, .duration = measured, .self = t};
    fixture_add(&db, &s);
    fixture_add(&db, &e);
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
    fixture_ok(hp_compare_load(arena, path, NULL, a, b, &err), &err);
    fixture_ok(hp_compare(arena, a, b, c, &err), &err);
    unlink(path);
}

/* A value per task of the trace, looked up by the task's index. */
static const double *by_task(hp_arena *arena, const hp_trace *t, const double *of) {
    double *v = HP_NEW(arena, double, t->n_task);
    for (int i = 0; i < t->n_task; i++) v[i] = of[t->task[i].task];
    return v;
}

/* Whatever the speed of the run, and the speed that was predicted for, the model's error
 * is the given factor. */
static void the_split_finds_the_model_s_error(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        const truth t = random_truth(seed);
        hp_arena *arena = hp_arena_new();
        hp_trace a, b;
        hp_comparison c;
        load_pair(arena, &t, &a, &b, &c);
        const hp_task_speed speed = {by_task(arena, &a, t.run), by_task(arena, &a, t.predicted), 1, 0};
        const hp_speed_split split = hp_compare_split(arena, &a, &speed, &c);
        double quiet = 0, run = 0, predicted_ns = 0;
        for (int i = 0; i < FIXTURE_TASKS; i++) {
            if (!fixture_tasks[i].compute) continue;
            quiet += quiet_ns(i), run += quiet_ns(i) * t.run[i], predicted_ns += quiet_ns(i) * t.predicted[i];
        }
        assert_true(split.known);
        close_to(split.quiet, run / quiet, 1e-6);
        close_to(split.predicted_for, predicted_ns / quiet, 1e-6);
        close_to(split.usual, run / predicted_ns, 1e-6);
        close_to(1 + split.model_error, 1 / t.model, 1e-6);
        close_to(split.expected_s, 1e-9 * run, 1e-6);
        close_to(split.equal_speed_s, 1e-9 * predicted_ns * t.model, 1e-6);
        close_to(1 + c.step.error, predicted_ns / (run * t.model), 1e-6); /* the error itself is unchanged */
        for (int i = 0; i < c.n_phase; i++)
            if (c.phase[i].phase >= 0) close_to(1 + c.phase[i].model_error, 1 / t.model, 1e-5);
        for (int i = 0; i < c.n_kind; i++) close_to(1 + c.kind[i].model_error, 1 / t.model, 1e-5);
        for (int i = 0; i < c.n_task; i++) close_to(1 + c.task[i].model_error, 1 / t.model, 1e-5);
        hp_arena_free(arena);
    }
}

/* Ranks had a processor for half of the time, so steps take twice as long. In the median, tasks shorter than
 * an absence do not; longer tasks and messages do. */
static void absences_show_in_steps_and_long_tasks(void **state) {
    (void)state;
    const truth t = random_truth(3);
    hp_arena *arena = hp_arena_new();
    hp_trace a, b;
    hp_comparison c;
    load_pair(arena, &t, &a, &b, &c);
    const double slice_s = 2.5e-9 * TASK_NS, whole_s = c.step.predicted_s;
    const hp_task_speed there = {by_task(arena, &a, t.run), by_task(arena, &a, t.predicted), 1, slice_s};
    hp_task_speed half = there;
    half.present = 0.5;
    const hp_speed_split one = hp_compare_split(arena, &a, &there, &c);
    const hp_comparison before = c;
    hp_compare_row *task = HP_NEW(arena, hp_compare_row, c.n_task);
    memcpy(task, before.task, sizeof *task * (size_t)c.n_task);
    const hp_speed_split two = hp_compare_split(arena, &a, &half, &c);
    close_to(two.usual, 2 * one.usual, 1e-9);
    close_to(two.expected_s, 2 * one.expected_s, 1e-9);
    close_to(two.equal_speed_s, one.equal_speed_s / 2, 1e-9);
    close_to(two.predicted_for, one.predicted_for, 1e-9);
    assert_true(c.step.predicted_s == whole_s);
    int same = 0, twice = 0;
    for (int i = 0; i < c.n_task; i++) {
        const bool slow = c.task[i].predicted_s > slice_s || !fixture_tasks[c.task[i].task].compute;
        close_to(c.task[i].expected_s, task[i].expected_s * (slow ? 2 : 1), 1e-9);
        same += !slow, twice += slow;
    }
    assert_true(same > 0 && twice > 0);
    hp_arena_free(arena);
}

static void without_yardsticks_nothing_is_claimed(void **state) {
    (void)state;
    const truth t = random_truth(7);
    hp_arena *arena = hp_arena_new();
    hp_trace a, b;
    hp_comparison c;
    load_pair(arena, &t, &a, &b, &c);
    const hp_task_speed speed = {.present = 1};
    const hp_speed_split split = hp_compare_split(arena, &a, &speed, &c);
    assert_false(split.known);
    assert_true(isnan(split.model_error) && isnan(c.step.model_error) && isnan(c.task[0].expected_s));
    hp_arena_free(arena);
}

/* --- a run's yardsticks --- */

static int64_t any(const void *self, int rank, int task, int iter) {
    (void)self, (void)rank, (void)task, (void)iter;
    return TASK_NS;
}

/* All steps count equally, however often a yardstick was sampled after them; the warm-up, and samples without
 * a step, do not count. */
static void steps_count_alike(void **state) {
    (void)state;
    hp_error err = {0};
    hp_db db;
    hp_trace t;
    hp_run_speed s;
    hp_arena *arena = hp_arena_new();
    const fixture_run r = {.kind = "exec", .ranks = 2, .iters = 5, .duration = any};
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const int64_t run = fixture_add(&db, &r);
    fixture_sample(&db, run, 0, 0, HP_COUNTER_YARD_ARITH, 1, 99); /* after the warm-up */
    for (int k = 0; k < 10; k++) fixture_sample(&db, run, 0, 1, HP_COUNTER_YARD_ARITH, 2 + k, 4e-5);
    fixture_sample(&db, run, 0, 3, HP_COUNTER_YARD_ARITH, 20, 6e-5);
    fixture_sample(&db, run, 1, 3, HP_COUNTER_YARD_ARITH, 20, 10e-5);
    fixture_sample(&db, run, 0, 2, HP_COUNTER_YARD_DRAM, 20, 5e-5);
    fixture_sample(&db, run, 0, -1, HP_COUNTER_YARD_DRAM, 20, 77); /* an evaluation */
    for (int rank = 0; rank < 2; rank++)
        for (int iter = 0; iter < 5; iter++) {
            fixture_sample(&db, run, rank, iter, HP_COUNTER_STEP, 30, 2e-3);
            fixture_sample(&db, run, rank, iter, HP_COUNTER_STEP_CPU, 30,
                           iter == 0 ? 1e-9
                           : rank    ? 1e-3
                                     : 2e-3);
        }
    fixture_ok(hp_trace_load(arena, &db, run, false, &t, &err), &err);
    assert_int_equal(hp_trace_drop_warmup(&t), 1);
    fixture_ok(hp_run_speed_read(arena, &db, &t, &s, &err), &err);
    assert_int_equal(s.n[HP_YARD_ARITH], 2);
    close_to(s.seconds[HP_YARD_ARITH], (4e-5 + 8e-5) / 2, 1e-12);
    close_to(s.error[HP_YARD_ARITH], 2e-5 / 6e-5, 1e-9); /* |4 - 8| / 2, from two values */
    assert_int_equal(s.n[HP_YARD_L2], 0);
    assert_true(isnan(s.seconds[HP_YARD_L2]));
    assert_int_equal(s.n[HP_YARD_DRAM], 1);
    close_to(s.seconds[HP_YARD_DRAM], 5e-5, 1e-12);
    assert_true(isnan(s.error[HP_YARD_DRAM]));
    close_to(s.availability, 0.75, 1e-12);
    hp_db_close(&db);
    unlink(path);
    hp_arena_free(arena);
}

/* 60 samples: some are slowed by a core that two threads share; three come from a machine that stood
 * still. Only those three are left out. If more than a twentieth is far above the median, that is
 * the machine's speed. */
static void pauses_are_no_speed(void **state) {
    (void)state;
    hp_error err = {0};
    hp_db db;
    hp_trace_value *v = NULL;
    int64_t n = 0;
    hp_arena *arena = hp_arena_new();
    const fixture_run r = {.kind = "exec", .ranks = 1, .iters = 5, .duration = any};
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const int64_t run = fixture_add(&db, &r);
    for (int i = 0; i < 60; i++) {
        const double slow = i % 20 == 7 ? 40 : i % 5 < 2 ? 1.9 : 1;
        fixture_sample(&db, run, 0, 1 + i % 4, HP_COUNTER_YARD_L2, i, 1e-5 * slow);
        fixture_sample(&db, run, 0, 1 + i % 4, HP_COUNTER_YARD_DRAM, i, 1e-5 * (i % 3 ? 1 : 4));
    }
    fixture_ok(hp_yardstick_samples(arena, &db, run, HP_YARD_L2, &v, &n, &err), &err);
    assert_int_equal(n, 57);
    int slow = 0;
    for (int64_t i = 0; i < n; i++) {
        assert_true(v[i].value < 2e-5);
        slow += v[i].value > 1.5e-5;
    }
    assert_int_equal(slow, 24); /* two in five of 60; the pauses (7, 27, 47) were among the others */
    fixture_ok(hp_yardstick_samples(arena, &db, run, HP_YARD_DRAM, &v, &n, &err), &err);
    slow = 0;
    for (int64_t i = 0; i < n; i++) slow += v[i].value > 3e-5;
    assert_true(n == 60 && slow == 20);
    fixture_ok(hp_yardstick_samples(arena, &db, run, HP_YARD_ARITH, &v, &n, &err), &err);
    assert_int_equal(n, 0);
    hp_db_close(&db);
    unlink(path);
    hp_arena_free(arena);
}

/* Runs whose speed varies by `spread`, observed with an error: in the mean square, the estimate is nearer to
 * the truth than the observation and than the usual speed. The optimum has s^2 e^2 / (s^2 + e^2). */
static void the_estimate_is_better_than_either(void **state) {
    (void)state;
    enum { RUNS = 4000 };
    const double spread = 0.1, error = 0.08;
    double of_seen = 0, of_usual = 0, of_both = 0;
    for (int i = 0; i < RUNS; i++) {
        const double real = 1 + spread * hp_rng_normal(3, 0, (uint64_t)i),
                     seen = real + error * hp_rng_normal(3, 1, (uint64_t)i),
                     both = hp_speed_shrink(seen, error, 1, spread);
        of_seen += (seen - real) * (seen - real) / RUNS;
        of_usual += (1 - real) * (1 - real) / RUNS;
        of_both += (both - real) * (both - real) / RUNS;
    }
    close_to(of_both, 0.01 * 0.0064 / 0.0164, 0.1);
    assert_true(of_both < 0.7 * of_seen && of_both < 0.7 * of_usual);
    assert_true(hp_speed_shrink(1.3, 0.1, 1, 0) == 1.3);
    close_to(hp_speed_shrink(1.3, NAN, 1.1, 0.2), 1.2, 1e-12);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(path, sizeof path, "compare-speed.db");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_split_finds_the_model_s_error),
        cmocka_unit_test(absences_show_in_steps_and_long_tasks),
        cmocka_unit_test(without_yardsticks_nothing_is_claimed),
        cmocka_unit_test(steps_count_alike),
        cmocka_unit_test(pauses_are_no_speed),
        cmocka_unit_test(the_estimate_is_better_than_either),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
