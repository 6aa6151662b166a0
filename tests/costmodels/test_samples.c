/* test_samples.c - stored samples: a calibration that stops and resumes gives the same table as an
 * uninterrupted one. Damaged samples, or another processor's, are reported and never crash. */
#include "costmodels/sample_store.h"
#include "costmodels/cost_samples.h"
#include "costmodels/cost_yardstick.h"
#include "tests/support/sim/made_up_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const JOBS[] = {"dp=1", "micro=2", "dp=2", "sp=2x1", "dp=1", "stages=2,micro=2"};
enum { N_JOBS = sizeof JOBS / sizeof *JOBS };
static const char OURS[] = "this processor";

static void ok(hp_status s, const hp_error *err) {
    if (s != HP_OK) fail_msg("%s", err->text);
}

/* Runs job `i`, and adds its samples. */
static void run_job(hp_arena *arena, const hp_machine *m, hp_calibration *c, int i) {
    hp_error err = {HP_OK, ""};
    hp_db db = {0};
    const hp_plan plan = make_plan(arena, m, HP_MODE_TRAIN, JOBS[i], 2);
    const drifting d = {(uint64_t)i + 1, 10, true, 1};
    const char *path = scratch_path("job.db");
    execute_drifting(arena, &plan, &d, path);
    ok(hp_db_open(path, &db, &err), &err);
    ok(hp_calibration_add(c, JOBS[i], 100 + i, &db, &err), &err);
    hp_db_close(&db);
}

static char *table_text(hp_arena *arena, hp_calibration *c) {
    hp_error err = {HP_OK, ""};
    hp_cost_table *t = NULL;
    ok(hp_calibration_table(c, NULL, "2026-01-01", &t, &err), &err);
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    ok(hp_rows_print(f, t, true, &err), &err);
    fclose(f);
    char *copy = hp_arena_strdup(arena, text);
    free(text);
    return copy;
}

/* Ends after each run, like a killed process. */
static void a_calibration_that_stops_goes_on(void **state) {
    (void)state;
    hp_error err = {HP_OK, ""};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    char path[4096];
    snprintf(path, sizeof path, "%s", scratch_path("on.samples.db"));
    unlink(path);
    hp_calibration *whole = hp_calibration_new(arena, &m);
    bool other = true;
    for (int i = 0; i < N_JOBS; i++) {
        run_job(arena, &m, whole, i);
        hp_calibration *part = hp_calibration_new(arena, &m);
        ok(hp_sample_store_read(path, OURS, part, &other, &err), &err);
        assert_false(other);
        assert_int_equal(hp_calibration_samples(part)->n_run, i);
        run_job(arena, &m, part, i);
        ok(hp_sample_store_append(path, OURS, part, &err), &err);
        assert_string_equal(table_text(arena, part), table_text(arena, whole));
    }
    hp_calibration *again = hp_calibration_new(arena, &m);
    ok(hp_sample_store_read(path, OURS, again, &other, &err), &err);
    assert_string_equal(table_text(arena, again), table_text(arena, whole));
    assert_string_equal(table_text(arena, again), table_text(arena, again)); /* reading changes nothing */
    hp_arena_free(arena);
}

static void jobs_since_the_calibration_began_need_no_repetition(void **state) {
    (void)state;
    hp_error err = {HP_OK, ""};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    char path[4096];
    int64_t since_s = 0;
    snprintf(path, sizeof path, "%s", scratch_path("since.samples.db"));
    unlink(path);
    ok(hp_sample_store_begin(path, OURS, "all", 100, &since_s, &err), &err);
    assert_int_equal(since_s, 100);
    hp_calibration *c = hp_calibration_new(arena, &m);
    run_job(arena, &m, c, 1); /* at 101 */
    ok(hp_sample_store_append(path, OURS, c, &err), &err);
    ok(hp_sample_store_begin(path, OURS, "all", 150, &since_s, &err), &err);
    assert_int_equal(since_s, 100); /* it was not ended */
    assert_true(hp_calibration_has(c, JOBS[1], since_s) && !hp_calibration_has(c, JOBS[2], since_s));
    ok(hp_sample_store_end(path, &err), &err);
    ok(hp_sample_store_begin(path, OURS, "all", 200, &since_s, &err), &err);
    assert_int_equal(since_s, 200);
    assert_false(hp_calibration_has(c, JOBS[1], since_s));
    ok(hp_sample_store_begin(path, OURS, "others", 250, &since_s, &err), &err);
    assert_int_equal(since_s, 250);
    hp_arena_free(arena);
}

static void old_runs_of_a_job_make_room(void **state) {
    (void)state;
    hp_error err = {HP_OK, ""};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    char path[4096];
    bool other;
    snprintf(path, sizeof path, "%s", scratch_path("room.samples.db"));
    unlink(path);
    hp_calibration *c = hp_calibration_new(arena, &m), *kept = hp_calibration_new(arena, &m);
    for (int i = 0; i < HP_SAMPLE_STORE_KEPT + 3; i++) {
        run_job(arena, &m, c, i % 2 ? 2 : 0);
        hp_sample_list *l = hp_calibration_samples(c);
        l->run[l->n_run - 1].time_s = i;
        ok(hp_sample_store_append(path, OURS, c, &err), &err);
    }
    for (int i = 0; i < 3; i++) {
        run_job(arena, &m, c, 0);
        hp_calibration_samples(c)->run[hp_calibration_samples(c)->n_run - 1].time_s = 90 + i;
        ok(hp_sample_store_append(path, OURS, c, &err), &err);
    }
    ok(hp_sample_store_read(path, OURS, kept, &other, &err), &err);
    int of_first = 0, oldest = 1000;
    const hp_sample_list *l = hp_calibration_samples(kept);
    for (int i = 0; i < l->n_run; i++) {
        if (strcmp(l->run[i].job, JOBS[0]) != 0) continue;
        of_first++;
        oldest = l->run[i].time_s < oldest ? (int)l->run[i].time_s : oldest;
    }
    assert_int_equal(of_first, HP_SAMPLE_STORE_KEPT);
    assert_int_equal(oldest, 6); /* out of 0 2 4 6 90 91 92 */
    hp_arena_free(arena);
}

static void another_processors_samples_are_left_out(void **state) {
    (void)state;
    hp_error err = {HP_OK, ""};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    char path[4096];
    bool other = false;
    snprintf(path, sizeof path, "%s", scratch_path("other.samples.db"));
    unlink(path);
    hp_calibration *c = hp_calibration_new(arena, &m), *mine = hp_calibration_new(arena, &m);
    run_job(arena, &m, c, 0);
    ok(hp_sample_store_append(path, "another", c, &err), &err);
    ok(hp_sample_store_read(path, OURS, mine, &other, &err), &err);
    assert_true(other);
    assert_int_equal(hp_calibration_samples(mine)->n, 0);
    run_job(arena, &m, mine, 1);
    ok(hp_sample_store_append(path, OURS, mine, &err), &err);
    hp_calibration *now = hp_calibration_new(arena, &m);
    ok(hp_sample_store_read(path, OURS, now, &other, &err), &err);
    assert_false(other);
    assert_int_equal(hp_calibration_samples(now)->n_run, 1);
    assert_string_equal(hp_calibration_samples(now)->run[0].job, JOBS[1]);
    hp_arena_free(arena);
}

static void write_bytes(const char *path, const unsigned char *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Bytes changed, truncated, or foreign: an error that names the file, or a table. */
static void damaged_samples_are_survived(void **state) {
    (void)state;
    hp_error err = {HP_OK, ""};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    char path[4096], bad[4096];
    bool other;
    int refused = 0;
    snprintf(path, sizeof path, "%s", scratch_path("sound.samples.db"));
    snprintf(bad, sizeof bad, "%s", scratch_path("bad.samples.db"));
    unlink(path);
    hp_calibration *c = hp_calibration_new(arena, &m);
    run_job(arena, &m, c, 0);
    ok(hp_sample_store_append(path, OURS, c, &err), &err);
    size_t n;
    unsigned char *bytes = scratch_read(path, &n);
    for (uint64_t i = 0; i < 200; i++) {
        hp_arena *mine = hp_arena_new();
        unsigned char *copy = hp_arena_alloc(mine, n);
        memcpy(copy, bytes, n);
        for (uint64_t k = 0; k < 20; k++)
            copy[hp_rng_below(1, 1, 20 * i + k, n)] = (unsigned char)hp_rng_below(1, 2, 20 * i + k, 256);
        write_bytes(bad, copy, i % 4 == 0 ? hp_rng_below(1, 3, i, n) : n);
        hp_calibration *got = hp_calibration_new(mine, &m);
        if (hp_sample_store_read(bad, OURS, got, &other, &err) != HP_OK) {
            refused++;
            if (!strstr(err.text, "bad.samples.db")) fail_msg("it does not name the file: %s", err.text);
        } else if (hp_calibration_samples(got)->n > 0) {
            table_text(mine, got);
        }
        hp_arena_free(mine);
    }
    assert_true(refused > 50);
    write_bytes(bad, (const unsigned char *)"no database at all, but a text", 30);
    assert_int_equal(hp_sample_store_read(bad, OURS, c, &other, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "remove it"));
    assert_int_not_equal(hp_sample_store_append(bad, OURS, c, &err), HP_OK);
    free(bytes);
    hp_arena_free(arena);
}

/* The errors of runs that fed no row become the model's error; a few of them move it little. */
static void errors_of_held_runs_are_kept(void **state) {
    (void)state;
    static const hp_held off[] = {{0.1, 0.01}, {-0.2, 0.003}};
    hp_error err = {HP_OK, ""};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    char path[4096];
    bool other;
    snprintf(path, sizeof path, "%s", scratch_path("held.samples.db"));
    unlink(path);
    hp_calibration *c = hp_calibration_new(arena, &m), *again = hp_calibration_new(arena, &m);
    run_job(arena, &m, c, 0);
    ok(hp_sample_store_append(path, OURS, c, &err), &err);
    hp_cost_table *t = NULL;
    ok(hp_calibration_table(c, NULL, "d", &t, &err), &err);
    assert_null(hp_rows_find(t, HP_ROW_ERROR, "cpu", "step"));
    for (int i = 0; i < 2; i++) {
        hp_calibration_hold(c, off[i]);
        ok(hp_sample_store_hold(path, OURS, "held", i, off[i], &err), &err);
    }
    ok(hp_sample_store_read(path, OURS, again, &other, &err), &err);
    assert_string_equal(table_text(arena, again), table_text(arena, c));
    ok(hp_calibration_table(again, NULL, "d", &t, &err), &err);
    const hp_row *row = hp_rows_find(t, HP_ROW_ERROR, "cpu", "step");
    assert_non_null(row);
    assert_int_equal(row->samples, 2);
    const hp_step_error fit = hp_error_fit(off, 2);
    assert_true(near(row->y[0], fit.relative, 1e-12) && near(row->y[1], fit.seconds, 1e-12));
    for (int i = 0; i < 2 * HP_SAMPLE_STORE_HELD; i++)
        ok(hp_sample_store_hold(path, OURS, "held", i, off[0], &err), &err);
    hp_calibration *newest = hp_calibration_new(arena, &m);
    ok(hp_sample_store_read(path, OURS, newest, &other, &err), &err);
    assert_int_equal(hp_calibration_samples(newest)->n_held, HP_SAMPLE_STORE_HELD);
    hp_arena_free(arena);
}

/* The step of a run divided by the speed read from it is that of the quiet machine. */
static void a_runs_speed_is_read_without_adding_it(void **state) {
    (void)state;
    hp_error err = {HP_OK, ""};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    hp_cost_table *t = NULL;
    hp_calibration *c = hp_calibration_new(arena, &m);
    for (int i = 0; i < N_JOBS; i++) run_job(arena, &m, c, i);
    ok(hp_calibration_table(c, NULL, "d", &t, &err), &err);
    const hp_plan plan = make_plan(arena, &m, HP_MODE_TRAIN, "dp=2,micro=2", 4);
    int slower = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const drifting d = {seed, 40, true, seed == 5 ? 0.7 : 1};
        hp_db db = {0};
        hp_speed speed;
        double step_s;
        bool undisturbed;
        const double true_s = execute_drifting(arena, &plan, &d, scratch_path("speed.db"));
        ok(hp_db_open(scratch_path("speed.db"), &db, &err), &err);
        ok(hp_calibration_speed(c, t, &db, &speed, &step_s, &undisturbed, &err), &err);
        hp_db_close(&db);
        const double quiet_s = step_s / speed.slowdown[HP_YARD_ARITH];
        if (!near(quiet_s, true_s, 0.12)) fail_msg("seed %d: %g, true %g", (int)seed, quiet_s, true_s);
        slower += !near(step_s, true_s, 0.2);
        assert_int_equal(undisturbed, seed != 5);
    }
    assert_true(slower > 0);
    assert_int_equal(hp_calibration_samples(c)->n_run, N_JOBS);
    hp_arena_free(arena);
}

static void the_file_lies_beside_the_table(void **state) {
    (void)state;
    char out[64];
    assert_string_equal(hp_sample_store_path("a/local.cost", out, sizeof out), "a/local.samples.db");
    assert_string_equal(hp_sample_store_path("odd", out, sizeof out), "odd.samples.db");
}

/* Number of tasks of the run's ranks that are known to be on that class. */
static int tasks_on(hp_arena *arena, const hp_machine *on, const char *class) {
    hp_calibration *c = hp_calibration_new(arena, on);
    int n = 0;
    run_job(arena, on, c, 2); /* dp=2 */
    const hp_sample_list *l = hp_calibration_samples(c);
    for (int i = 0; i < l->n; i++)
        n += l->row[i].kind == HP_ROW_COMPUTE && strcmp(l->row[i].class, class) == 0;
    return n;
}

/* Each rank's tasks belong to the class of its device; those of a slow device say nothing about its class. */
static void tasks_are_of_their_ranks_class(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    static const char figures[] = "device=cpu, memory=8GB, fp32=50GFLOP/s, bandwidth=10GB/s";
    static const char *const nodes[] = {"2 x cpu", "1 x cpu + 1 x t4", "2 x cpu; slow=0.1:50%"};
    hp_machine m[3];
    for (int i = 0; i < 3; i++) {
        hp_error err = {HP_OK, ""};
        char text[160];
        snprintf(text, sizeof text, "nodes=1; node=%s; %s", nodes[i], figures);
        ok(hp_machine_parse(text, "text", &m[i], &err), &err);
    }
    const int all = tasks_on(arena, &m[0], "cpu");
    assert_true(all > 0 && all % 2 == 0);
    assert_int_equal(tasks_on(arena, &m[1], "cpu"), all / 2);
    assert_int_equal(tasks_on(arena, &m[1], "t4"), all / 2);
    assert_int_equal(tasks_on(arena, &m[2], "cpu"), all / 2);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_of_their_ranks_class),
        cmocka_unit_test(a_calibration_that_stops_goes_on),
        cmocka_unit_test(jobs_since_the_calibration_began_need_no_repetition),
        cmocka_unit_test(old_runs_of_a_job_make_room),
        cmocka_unit_test(another_processors_samples_are_left_out),
        cmocka_unit_test(damaged_samples_are_survived),
        cmocka_unit_test(errors_of_held_runs_are_kept),
        cmocka_unit_test(a_runs_speed_is_read_without_adding_it),
        cmocka_unit_test(the_file_lies_beside_the_table),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
