/* test_conditions.c - the conditions of a prediction are stored with it: the same strategy is predicted again
 * to the last digit, whatever tables the machine has by then. */
#include "costmodels/cost_rows.h"
#include "costmodels/cost_stored.h"
#include "sim/search/conditions.h"
#include "sim/search/predict.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/sim/search_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Numbers whose text needs 17 digits. */
static hp_cost_table *odd_table(hp_arena *arena, const hp_cost_table *base) {
    hp_cost_table *t = hp_rows_new(arena, "thesis-a100", "2026-01-02");
    double x[] = {0, 1}, y[] = {1.0 / 3, 2.0 / 7};
    hp_rows_add(t, &(hp_row){.kind = HP_ROW_EFFICIENCY,
                             .class = "a100-40",
                             .key = "*",
                             .source = HP_SOURCE_PAPER,
                             .residual = 1.0 / 7,
                             .samples = 3,
                             .where = "made up",
                             .n = 2,
                             .x = x,
                             .y = y});
    hp_rows_sort(t);
    t->origin = "odd.cost of 2026-01-02";
    t->base = base;
    return t;
}

static const hp_eval_setup setups[] = {
    {.straggler_rank = -1},
    {.straggler_rank = -1, .jitter_cv = 0.1234567890123456789, .seed = 7},
    {.straggler_rank = 1, .straggler_factor = 1.0 / 0.7, .jitter_cv = -1},
    {.straggler_rank = -1, .eager = true, .memory_limit = 12345678901},
    {.straggler_rank = -1, .rules = HP_RULES_MPI4DL, .no_fold = true},
};

static hp_plan plan_of(const world *w, const char *strategy, uint64_t seed) {
    hp_error err;
    hp_plan plan = {.net = "cnn",
                    .image_h = 28,
                    .image_w = 28,
                    .classes = 10,
                    .batch = 8,
                    .seed = seed,
                    .machine = w->m,
                    .device = &hp_devices[HP_DEVICE_CUDA]};
    assert_int_equal(hp_strategy_parse(strategy, &plan.strategy, &err), HP_OK);
    return plan;
}

static void store(const char *path, const hp_plan *plan, const hp_prediction *p) {
    hp_error err;
    hp_db db;
    if (hp_db_create(path, &db, &err) != HP_OK || hp_predict_write(&db, plan, p, &err) != HP_OK ||
        hp_db_commit(&db, &err) != HP_OK)
        fail_msg("%s", err.text);
    hp_db_close(&db);
}

static void a_stored_plan_is_predicted_as_it_was(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        world w = make_world("thesis-a100", "cnn", 28, 8);
        hp_error err;
        hp_db db;
        hp_plan plan = plan_of(&w, "dp=2,stages=2,micro=2", setups[i].seed), again;
        hp_prediction p = {0}, q = {0};
        hp_eval_setup setup = setups[i], read;
        setup.table = odd_table(w.arena, w.t);
        if (hp_predict(w.arena, &plan, &setup, &p, &err) != HP_OK) fail_msg("%s", err.text);
        const char *path = scratch_path("conditions.db");
        store(path, &plan, &p);
        assert_int_equal(hp_db_open(path, &db, &err), HP_OK);
        if (hp_plan_read(w.arena, &db, &again, &err) != HP_OK) fail_msg("%s", err.text);
        if (hp_conditions_read(w.arena, &db, &again, &read, &err) != HP_OK) fail_msg("%s", err.text);
        hp_db_close(&db);
        assert_string_equal(hp_cost_origin(read.table), "odd.cost of 2026-01-02");
        assert_int_equal(read.memory_limit, setup.memory_limit);
        assert_int_equal(read.rules, setup.rules);
        assert_int_equal(read.no_fold, setup.no_fold);
        if (hp_predict(w.arena, &again, &read, &q, &err) != HP_OK) fail_msg("%s", err.text);
        hp_candidate *f = &p.evaluation.figures, *g = &q.evaluation.figures;
        memset(f->strategy, 0, sizeof f->strategy); /* the stored one has its cut written out */
        memset(g->strategy, 0, sizeof g->strategy);
        assert_memory_equal(f, g, sizeof *f);
        hp_arena_free(w.arena);
    }
}

/* The conditions affect the figure; forgetting any of them would show above. */
static void conditions_shape_the_figure(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "cnn", 28, 8);
    hp_error err;
    double step_s[4];
    for (int i = 0; i < 4; i++) {
        hp_plan plan = plan_of(&w, "dp=2,stages=2,micro=2", setups[i % 3].seed);
        hp_prediction p = {0};
        hp_eval_setup setup = setups[i % 3];
        setup.table = i == 3 ? w.t : odd_table(w.arena, w.t);
        if (hp_predict(w.arena, &plan, &setup, &p, &err) != HP_OK) fail_msg("%s", err.text);
        step_s[i] = plan.step_s;
        for (int j = 0; j < i; j++) assert_true(step_s[i] < step_s[j] || step_s[i] > step_s[j]);
    }
    hp_arena_free(w.arena);
}

static void exec_sql(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, 0, 0, 0), SQLITE_OK);
    sqlite3_exec(db, "UPDATE meta SET value = 'none' WHERE key = 'content'", 0, 0,
                 0); /* passes the first check */
    sqlite3_close(db);
}

/* A changed digit, another order of the tables, or none: rejected, naming the file. */
static void damaged_costs_are_refused(void **state) {
    (void)state;
    static const char *const harm[] = {"UPDATE cost SET body = replace(body, '0.33', '0.34')",
                                       "UPDATE cost SET body = 'hplan-cost 2' WHERE part = 1",
                                       "DELETE FROM cost",
                                       "UPDATE meta SET value = 'rules 7' WHERE key = 'conditions'",
                                       "DELETE FROM meta WHERE key = 'conditions'"};
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        world w = make_world("thesis-a100", "cnn", 28, 8);
        hp_error err;
        hp_db db;
        hp_plan plan = plan_of(&w, "dp=2", 1);
        hp_prediction p = {0};
        hp_eval_setup setup = setups[0];
        setup.table = odd_table(w.arena, w.t);
        if (hp_predict(w.arena, &plan, &setup, &p, &err) != HP_OK) fail_msg("%s", err.text);
        const char *path = scratch_path("damaged.db");
        store(path, &plan, &p);
        exec_sql(path, harm[i]);
        assert_int_equal(hp_db_open(path, &db, &err), HP_OK);
        assert_int_equal(hp_conditions_read(w.arena, &db, &plan, &setup, &err), HP_EDATA);
        assert_non_null(strstr(err.text, path));
        hp_db_close(&db);
        hp_arena_free(w.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stored_plan_is_predicted_as_it_was),
        cmocka_unit_test(conditions_shape_the_figure),
        cmocka_unit_test(damaged_costs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
