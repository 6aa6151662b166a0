/* test_trace.c - from rings to SQLite and back: nothing is lost, and nothing is accepted that the
 * program does not have. */
#include "tests/support/traces/trace_fixture.h"
#include "traces/query.h"
#include "traces/trace_text.h"
#include "plan/lower/lower.h"
#include "plan/program/print.h"

#include <sys/stat.h>

static char path[256], dir[256];

static int64_t plain_duration(const void *self, int rank, int task, int iter) {
    (void)self;
    return 1000 * (1 + rank + 10 * task) + iter;
}

static void write_rings(int ranks, int64_t spans) {
    hp_error err = {0};
    mkdir(dir, 0700);
    for (int rank = 0; rank < ranks; rank++) {
        char ring[300];
        hp_ring *r = NULL;
        snprintf(ring, sizeof ring, "%s/rank-%d.ring", dir, rank);
        fixture_ok(hp_ring_create(ring, rank, rank % 2, spans, 4, &r, &err), &err);
        for (int64_t i = 0; i < spans; i++)
            hp_ring_span(r, (hp_span){(int32_t)(i % FIXTURE_TASKS), (int32_t)(i / FIXTURE_TASKS), i, i + 1});
        hp_ring_sample(r, (hp_sample){HP_COUNTER_LOSS, 0, 5, rank ? 2.5 : (double)NAN});
        hp_ring_close(r);
    }
}

static int64_t count(hp_db *db, const char *sql) {
    hp_error err = {0};
    sqlite3_stmt *st = NULL;
    bool row = false;
    fixture_ok(hp_db_prepare(db, sql, &st, &err), &err);
    fixture_ok(hp_db_next(db, st, &row, &err), &err);
    const int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

static void merge_keeps_every_row_and_counts_the_missing(void **state) {
    (void)state;
    hp_error err = {0};
    hp_db db;
    char ring[300];
    write_rings(4, 7 * FIXTURE_TASKS);
    snprintf(ring, sizeof ring, "%s/rank-1.ring", dir);
    assert_int_equal(truncate(ring, 5000), 0);
    snprintf(ring, sizeof ring, "%s/rank-2.ring", dir);
    unlink(ring);
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run r = {.kind = "exec", .ranks = 4, .duration = plain_duration};
    const int64_t run = fixture_add(&db, &r);
    const int64_t before = count(&db, "SELECT count(*) FROM span");
    int missing = 0;
    fixture_ok(hp_trace_merge(&db, run, dir, 4, &missing, &err), &err);
    assert_int_equal(missing, 2);
    assert_int_equal(count(&db, "SELECT count(*) FROM span") - before, 2 * 7 * FIXTURE_TASKS);
    assert_int_equal(count(&db, "SELECT count(*) FROM counter"), 2);
    assert_int_equal(count(&db, "SELECT count(*) FROM counter WHERE value IS NULL"), 1); /* the NaN loss */
    fixture_ok(hp_trace_end(&db, run, 137, &err), &err);
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);

    hp_arena *arena = hp_arena_new();
    hp_trace t;
    fixture_ok(hp_db_open(path, &db, &err), &err);
    fixture_ok(hp_trace_load(arena, &db, run, false, &t, &err), &err);
    assert_int_equal(t.status, 137);
    assert_int_equal(t.n_rank, 2);
    assert_int_equal(t.n_iter, 7);
    hp_trace_value *v = NULL;
    int64_t n = 0;
    fixture_ok(hp_trace_counter(arena, &db, run, "loss", &v, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_true(isnan(v[0].value));
    assert_true(v[1].value == 2.5);
    hp_db_close(&db);
    hp_arena_free(arena);
}

static void cut_iterations_are_left_out(void **state) {
    (void)state;
    hp_error err = {0};
    hp_db db;
    hp_trace t;
    hp_arena *arena = hp_arena_new();
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run r = {.kind = "exec", .ranks = 2, .iters = 5, .duration = plain_duration};
    const int64_t run = fixture_add(&db, &r);
    fixture_ok(hp_db_exec(&db, &err, "DELETE FROM span WHERE iter = 0 AND rank = 1 AND task < 3", ""), &err);
    fixture_ok(hp_db_exec(&db, &err, "DELETE FROM span WHERE iter = 4 AND rank = 0 AND task > 3", ""), &err);
    fixture_ok(hp_db_exec(&db, &err, "INSERT INTO span VALUES(?, 0, 0, 99, -1, 0, 1)", "i", run),
               &err); /* evaluation */
    fixture_ok(hp_trace_load(arena, &db, run, true, &t, &err), &err);
    assert_int_equal(t.n_iter, 3);
    assert_int_equal(t.n_partial, 2);
    assert_int_equal(t.iter[0].iter, 1);
    assert_int_equal(t.span[0].task, -1);
    assert_int_equal(hp_trace_drop_warmup(&t), 0); /* step 0 is not loaded */
    assert_int_equal(t.n_iter, 3);
    hp_db_close(&db);
    hp_arena_free(arena);
}

static void medians_totals_and_waiting_are_those_of_the_layout(void **state) {
    (void)state;
    hp_error err = {0};
    hp_db db;
    hp_trace t;
    hp_arena *arena = hp_arena_new();
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run r = {.kind = "exec", .ranks = 2, .iters = 3, .duration = plain_duration};
    const int64_t run = fixture_add(&db, &r);
    fixture_ok(hp_trace_load(arena, &db, run, false, &t, &err), &err);
    int64_t n = 0;
    const hp_trace_median *m = hp_trace_medians(arena, &t, &n);
    assert_int_equal(n, 2 * FIXTURE_TASKS);
    for (int64_t i = 0; i < n; i++) {
        const int rank = (int)(i / FIXTURE_TASKS), task = (int)(i % FIXTURE_TASKS);
        assert_int_equal(m[i].rank, rank);
        assert_int_equal(m[i].task, rank * FIXTURE_TASKS + task);
        fixture_near(m[i].seconds, 1e-9 * (double)plain_duration(NULL, rank, task, 1));
    }
    /* Compute tasks 0..3 of rank k in iteration i take 4 (1 + k) + 60 us and 4 i ns in total; the all-reduce
     * (task 6) of rank 1 takes 62 us and i ns. So rank 1's 68 us of compute end last and determine the step;
     * rank 0 waits 4 us. */
    const double *waiting = hp_trace_waiting(arena, &t);
    for (int i = 0; i < 3; i++) {
        fixture_near(t.iter[i].step_s, 68e-6 + 4e-9 * i);
        fixture_near(waiting[i], 2e-6);
    }
    fixture_sample(&db, run, 0, 1, HP_COUNTER_STEP, 0, 0.25);
    fixture_ok(hp_trace_load(arena, &db, run, false, &t, &err), &err);
    assert_true(t.iter[1].step_s == 0.25);
    hp_db_close(&db);
    hp_arena_free(arena);
}

/* Load reads what begin writes: every task of every role, its kind, phase and queue. */
static void a_real_program_survives_the_tables(void **state) {
    (void)state;
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    hp_program *p = NULL;
    hp_strategy s = hp_strategy_default();
    s.dp = s.stages = s.micro = 2;
    s.sched = HP_SCHED_GPIPE;
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 8, .place = true};
    fixture_ok(hp_net_build(arena, "cnn", 28, 28, 10, &g, &err), &err);
    fixture_ok(hp_lower(arena, g, &s, &o, &p, &err), &err);
    hp_db db;
    hp_trace t;
    int64_t run = -1, found = -1;
    const hp_run_info info = {"sim", "hash", "dp=2", "local", "cpu", 7, 4};
    fixture_ok(hp_db_create(path, &db, &err), &err);
    fixture_ok(hp_trace_begin(&db, &info, p, g, &run, &err), &err);
    fixture_ok(hp_trace_find(&db, "exec", &found, &err), &err);
    assert_int_equal(found, -1);
    fixture_ok(hp_trace_find(&db, "sim", &found, &err), &err);
    assert_int_equal(found, run);
    fixture_ok(hp_trace_load(arena, &db, run, true, &t, &err), &err);
    assert_int_equal(t.n_role, p->n_role);
    int i = 0;
    for (int r = 0; r < p->n_role; r++)
        for (int k = 0; k < p->role[r].n_task; k++, i++) {
            const hp_task *task = &p->role[r].task[k];
            char label[256];
            assert_int_equal(t.task[i].op, task->op);
            assert_int_equal(t.task[i].queue, hp_task_infos[task->op].queue);
            assert_string_equal(t.task[i].label, hp_task_label(p, g, &p->role[r], k, label, sizeof label));
            const bool of_layer = task->layer >= 0 && t.task[i].queue == HP_QUEUE_COMPUTE;
            assert_int_equal(strchr(t.task[i].kind, '.') != NULL, of_layer);
        }
    assert_int_equal(t.n_task, i);
    assert_int_equal(count(&db, "SELECT count(*) FROM run WHERE started = ''"),
                     1); /* simulations have no date */
    hp_db_close(&db);
    hp_arena_free(arena);
}

static void impossible_rows_are_rejected(void **state) {
    (void)state;
    static const char *const bad[] = {
        "INSERT INTO span VALUES(1, 2, 0, 0, 0, 0, 1)", /* rank */
        "INSERT INTO span VALUES(1, 0, 2, 0, 0, 0, 1)", /* role */
        "INSERT INTO span VALUES(1, 0, 0, 7, 0, 0, 1)", /* task */
        "INSERT INTO span VALUES(1, 0, 1, 0, 0, 0, 1)", /* rank with two roles */
        "INSERT INTO span VALUES(1, 0, 0, 0, 0, 2, 1)", /* ends before it starts */
        "INSERT INTO span VALUES(1, 0, 0, 0, 0, -9223372036854775808, 9223372036854775807)",
        "UPDATE task SET op = 'rm -rf' WHERE task = 2",
        "UPDATE task SET op = 'fwd.nothing' WHERE task = 2",
        "UPDATE task SET task = 50 WHERE task = 2",
        "UPDATE run SET ranks = 0",
        "UPDATE run SET ranks = 9223372036854775807",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hp_error err = {0};
        hp_db db;
        hp_trace t;
        hp_arena *arena = hp_arena_new();
        fixture_ok(hp_db_create(path, &db, &err), &err);
        const fixture_run r = {.kind = "exec", .ranks = 2, .iters = 2, .duration = plain_duration};
        const int64_t run = fixture_add(&db, &r);
        fixture_ok(hp_trace_load(arena, &db, run, true, &t, &err), &err);
        fixture_ok(hp_db_exec(&db, &err, bad[i], ""), &err);
        assert_int_equal(hp_trace_load(arena, &db, run, true, &t, &err), HP_EDATA);
        assert_non_null(strstr(err.text, path));
        hp_db_close(&db);
        hp_arena_free(arena);
    }
}

static void cleaned_text_is_printable_utf8(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    assert_string_equal(hp_text_clean(arena, "layer1.0 m2 \xc3\xa4 \xe2\x82\xac"),
                        "layer1.0 m2 \xc3\xa4 \xe2\x82\xac");
    assert_string_equal(hp_text_clean(arena, "a\x1b[31m\n\t\x7f"), "a?[31m???");
    assert_string_equal(hp_text_clean(arena, "\xc2\x9b"
                                             "1m"),
                        "?1m");                                                   /* C1: CSI */
    assert_string_equal(hp_text_clean(arena, "\xc0\xaf\xff"), "???");             /* overlong, never valid */
    assert_string_equal(hp_text_clean(arena, "\xed\xa0\x80"), "???");             /* surrogate */
    assert_string_equal(hp_text_clean(arena, "\xe2\x80\xaegpj.exe"), "?gpj.exe"); /* right-to-left override */
    assert_string_equal(hp_text_clean(arena, "cut \xe2\x82"), "cut ??");
    char longer[3000];
    memset(longer, 'x', sizeof longer);
    longer[2999] = '\0';
    assert_int_equal(strlen(hp_text_clean(arena, longer)), 500);
    hp_arena_free(arena);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(path, sizeof path, "trace.db");
    fixture_path(dir, sizeof dir, "rings");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path);
    for (int rank = 0; rank < 4; rank++) {
        char ring[300];
        snprintf(ring, sizeof ring, "%s/rank-%d.ring", dir, rank);
        unlink(ring);
    }
    rmdir(dir);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_keeps_every_row_and_counts_the_missing),
        cmocka_unit_test(cut_iterations_are_left_out),
        cmocka_unit_test(medians_totals_and_waiting_are_those_of_the_layout),
        cmocka_unit_test(a_real_program_survives_the_tables),
        cmocka_unit_test(impossible_rows_are_rejected),
        cmocka_unit_test(cleaned_text_is_printable_utf8),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
