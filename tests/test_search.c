/* test_search.c - the search against trying everything; memory limits; bounds that never cut off a winner. */
#include "sim/bounds.h"
#include "sim/memory_fit.h"
#include "sim/predict.h"
#include "sim/search.h"
#include "tests/data_files.h"
#include "tests/random_net.h"
#include "traces/query.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct world {
    hp_arena *arena;
    hp_graph *g;
    hp_machine m;
    hp_cost_table *t;
    hp_eval_setup setup;
} world;

static world make_world(const char *machine, const char *net, int image, int64_t batch) {
    world w = {.arena = hp_arena_new()};
    hp_error err = {HP_OK, ""};
    if (hp_machine_load(machine, &w.m, &err) != HP_OK ||
        hp_cost_load(w.arena, NULL, &w.m, &w.t, &err) != HP_OK ||
        hp_net_build(w.arena, net, image, image, 10, &w.g, &err) != HP_OK)
        fail_msg("%s", err.text);
    w.setup = (hp_eval_setup){.graph = w.g,
                              .table = w.t,
                              .mode = HP_MODE_TRAIN,
                              .dtype = HP_F32,
                              .batch = batch,
                              .straggler_rank = -1};
    return w;
}

static hp_search_result search(world *w, int devices, int top) {
    hp_error err = {HP_OK, ""};
    hp_search_result r;
    w->setup.machine = &w->m;
    const hp_space space = {w->g, w->setup.mode, w->setup.batch, devices, false};
    const hp_search_options o = {.top = top};
    if (hp_search(w->arena, hp_eval_new(w->arena, &w->setup), &space, &o, &r, &err) != HP_OK)
        fail_msg("%s", err.text);
    return r;
}

/* With and without cutting off: the same winners, in the same order, with the same figures. */
static void bounds_never_cut_off_a_winner(void **state) {
    (void)state;
    static const char *const nets[] = {"cnn", "resnet18", "mobilenetv2"};
    static const char *const machines[] = {"local", "thesis-a100", "lassen"};
    for (int i = 0; i < 9; i++) {
        world w = make_world(machines[i % 3], nets[i / 3], 64, 16);
        const hp_search_result all = search(&w, 8, INT_MAX), few = search(&w, 8, 3);
        assert_int_equal(all.cut_off, 0);
        assert_int_equal(all.valid, few.valid);
        assert_true(few.n == 3 && all.n == all.valid);
        for (int k = 0; k < few.n; k++) {
            assert_string_equal(few.best[k].figures.strategy, all.best[k].figures.strategy);
            assert_true(few.best[k].figures.step_high_s ==
                        all.best[k].figures.step_high_s); // NOLINT: same figures
        }
        hp_arena_free(w.arena);
    }
}

/* The oracle: every strategy of the space, lowered, proved and simulated one by one. */
static void the_winner_is_the_exhaustive_optimum(void **state) {
    (void)state;
    for (int devices = 1; devices <= 6; devices++) {
        world w = make_world("local", "resnet18", 64, 12);
        w.m.devices_per_node = w.m.cores_per_node = 4;
        const hp_search_result r = search(&w, devices, 1);
        hp_eval *e = hp_eval_new(w.arena, &w.setup);
        double best = INFINITY;
        const hp_space space = {w.g, HP_MODE_TRAIN, 12, devices, false};
        hp_strategy *list;
        const int n = hp_space_list(w.arena, &space, &list);
        for (int i = 0; i < n; i++) {
            hp_error err = {HP_OK, ""};
            hp_evaluation v;
            hp_program *p;
            const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 12, .place = true};
            if (!hp_strategy_legal(&list[i], w.g, 12, devices, NULL)) continue;
            assert_int_equal(hp_lower(w.arena, w.g, &list[i], &o, &p, &err), HP_OK);
            assert_int_equal(hp_program_check(p, w.g, &err), HP_OK);
            assert_int_equal(hp_evaluate(e, w.arena, &list[i], true, &v, &err), HP_OK);
            best = fmin(best, v.figures.step_high_s);
        }
        assert_int_equal(r.n, 1);
        assert_true(r.best[0].figures.step_high_s == best); // NOLINT: same figures
        hp_arena_free(w.arena);
    }
}

/* Splitting a batch on one stage changes what batch norm sees: only where the whole batch does not fit. */
static void small_batch_norm_groups_only_for_memory(void **state) {
    (void)state;
    world w = make_world("local", "resnet18", 64, 12);
    const hp_search_result roomy = search(&w, 2, INT_MAX);
    int64_t whole = INT64_MAX;
    for (int k = 0; k < roomy.n; k++) {
        const hp_evaluation *e = &roomy.best[k];
        assert_false(e->strategy.stages == 1 && e->strategy.micro > 1);
        if (e->strategy.stages == 1 && e->figures.memory_bytes < whole) whole = e->figures.memory_bytes;
    }
    w.setup.memory_limit = whole - 1;
    const hp_search_result tight = search(&w, 2, INT_MAX);
    int split = 0;
    for (int k = 0; k < tight.n; k++) split += tight.best[k].strategy.stages == 1 && tight.best[k].strategy.micro > 1;
    assert_true(split > 0);
    hp_arena_free(w.arena);
}

/* No simulation is faster than the closed-form bound that prunes. */
static void bounds_are_below_simulations(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        dice d = {seed, 500};
        world w = make_world(coin(&d) ? "local" : "thesis-a100", "resnet18", 64, 12);
        w.setup.machine = &w.m;
        hp_eval *e = hp_eval_new(w.arena, &w.setup);
        const hp_strategy s = random_strategy(&d, w.g, 12, 12);
        hp_error err = {HP_OK, ""};
        hp_evaluation v;
        double bound;
        assert_int_equal(hp_eval_bound(e, &s, &bound, &err), HP_OK);
        if (hp_evaluate(e, w.arena, &s, false, &v, &err) != HP_OK) fail_msg("%s", err.text);
        assert_true(bound > 0 &&
                    bound <= v.figures.step_high_s * (1 + 1e-6)); /* rounding of each task to ns */
        hp_arena_free(w.arena);
    }
}

/* What is kept fits; what is rejected for memory does not; the fix of the nearest reject was tried and fits.
 */
static void memory_limits_are_kept(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet18", 128, 8);
    w.setup.memory_limit = INT64_C(1) << 60;
    const hp_search_result free = search(&w, 4, INT_MAX);
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < free.n; i++) {
        least = free.best[i].figures.memory_bytes < least ? free.best[i].figures.memory_bytes : least;
        most = free.best[i].figures.memory_bytes > most ? free.best[i].figures.memory_bytes : most;
    }
    w.setup.memory_limit = (least + most) / 2;
    const hp_search_result limited = search(&w, 4, INT_MAX);
    assert_true(limited.n > 0 && limited.n < free.n);
    for (int i = 0; i < limited.n; i++)
        assert_true(limited.best[i].figures.memory_bytes <= w.setup.memory_limit);
    bool found = false;
    for (int i = 0; i < limited.n_rejected; i++) {
        if (strcmp(limited.rejected[i].code, "E-MEM") != 0) continue;
        found = true;
        assert_true(limited.rejected[i].count > 0 && *limited.rejected[i].limit && *limited.rejected[i].fix);
    }
    assert_true(found);
    w.setup.memory_limit = 1000;
    assert_int_equal(search(&w, 4, 5).n, 0);
    hp_arena_free(w.arena);
}

/* On CPUs the node's memory is one: two ranks that fit alone may not fit together. */
static void ranks_of_a_node_share_its_memory(void **state) {
    (void)state;
    hp_machine m = {.nodes = 2, .devices_per_node = 2, .share_cpu = true, .device = {.memory_bytes = 100}};
    const hp_memory_limit l = hp_memory_limit_of(&m, 0);
    const int64_t one[] = {60}, small[] = {50}, mixed[] = {70, 30};
    hp_reject why;
    assert_true(hp_memory_fits(&l, &m, one, 1, 1, &why));
    assert_false(hp_memory_fits(&l, &m, one, 1, 2, &why));
    assert_string_equal(why.code, "E-MEM");
    assert_true(hp_memory_fits(&l, &m, small, 1, 4, &why));
    assert_false(hp_memory_fits(&l, &m, small, 1, 6, &why)); /* more ranks than devices: they wrap around */
    assert_true(hp_memory_fits(&l, &m, mixed, 2, 2, &why));
    m.share_cpu = false;
    const hp_memory_limit own = hp_memory_limit_of(&m, 0);
    assert_true(hp_memory_fits(&own, &m, one, 1, 4, &why));
}

static void equal_intervals_are_ties(void **state) {
    (void)state;
    hp_evaluation list[3] = {{.figures = {.gpus = 1, .step_low_s = 9, .step_s = 10, .step_high_s = 11}},
                             {.figures = {.gpus = 1, .step_low_s = 1, .step_s = 2, .step_high_s = 3}},
                             {.figures = {.gpus = 1, .step_low_s = 2.5, .step_s = 3, .step_high_s = 4}}};
    hp_search_rank(list, 3, HP_SORT_TIME);
    assert_true(list[0].figures.step_s == 2 && list[2].figures.step_s == 10); // NOLINT
    assert_false(list[0].figures.tie);
    assert_true(list[1].figures.tie);
    assert_false(list[2].figures.tie);
}

/* Every rank of the plan is in the stored trace with every task, ending at the predicted step; a rebuilt plan
 * is equal. */
static void a_written_prediction_reads_back(void **state) {
    (void)state;
    world w = make_world("local", "cnn", 28, 8);
    hp_error err = {HP_OK, ""};
    hp_plan plan = {.net = "cnn",
                    .image_h = 28,
                    .image_w = 28,
                    .classes = 10,
                    .batch = 8,
                    .seed = 1,
                    .machine = w.m,
                    .device = "cpu"};
    hp_prediction p = {0};
    hp_db db = {0};
    hp_trace t;
    int64_t run;
    assert_int_equal(hp_strategy_parse("dp=2,stages=2,micro=2,sched=1f1b", &plan.strategy, &err), HP_OK);
    if (hp_predict(w.arena, &plan, w.t, NULL, &p, &err) != HP_OK) fail_msg("%s", err.text);
    const char *path = scratch_path("p.db");
    assert_int_equal(hp_db_create(path, &db, &err), HP_OK);
    if (hp_predict_write(&db, &plan, &p, &err) != HP_OK || hp_db_commit(&db, &err) != HP_OK)
        fail_msg("%s", err.text);
    hp_db_close(&db);
    assert_int_equal(hp_db_open(path, &db, &err), HP_OK);
    hp_plan again;
    if (hp_plan_read(w.arena, &db, &again, &err) != HP_OK) fail_msg("%s", err.text);
    assert_string_equal(again.hash.hex, plan.hash.hex);
    assert_int_equal(hp_trace_find(&db, "sim", &run, &err), HP_OK);
    if (hp_trace_load(w.arena, &db, run, false, &t, &err) != HP_OK) fail_msg("%s", err.text);
    assert_int_equal(t.n_rank, 4);
    assert_int_equal(t.n_iter, 1);
    if (fabs(t.iter[0].step_s - plan.step_s) > 1e-6) fail_msg("%.9g %.9g", t.iter[0].step_s, plan.step_s);
    hp_db_close(&db);
    hp_plan other = plan; /* the same strategy with its cut, rebuilt: the same plan */
    assert_int_equal(hp_predict(w.arena, &other, w.t, NULL, &p, &err), HP_OK);
    assert_string_equal(other.hash.hex, plan.hash.hex);
    hp_arena_free(w.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_never_cut_off_a_winner),
        cmocka_unit_test(the_winner_is_the_exhaustive_optimum),
        cmocka_unit_test(small_batch_norm_groups_only_for_memory),
        cmocka_unit_test(bounds_are_below_simulations),
        cmocka_unit_test(memory_limits_are_kept),
        cmocka_unit_test(ranks_of_a_node_share_its_memory),
        cmocka_unit_test(equal_intervals_are_ties),
        cmocka_unit_test(a_written_prediction_reads_back),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
