/* test_search.c - the search compared with trying everything; memory limits; bounds that never cut off a
 * winner. Estimates before lowering are in test_estimate.c, inference in tests/sim/search/test_infer.c. */
#include "networks/graph/precision.h"
#include "plan/memory/memory_yardstick.h"
#include "sim/memory/eager.h"
#include "sim/search/predict.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/plan/random_net.h"
#include "traces/query.h"
#include "tests/support/plan/law_cases.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/sim/search_world.h"
#include "plan/lower/lower.h"
#include "plan/check/check.h"

/* With and without cutting off: the same winners, in the same order, with the same figures. */
static void bounds_never_cut_off_a_winner(void **state) {
    (void)state;
    static const char *const nets[] = {"cnn", "resnet-v1-8", "mobilenetv2", "resnet-v1-8", "cnn"};
    static const char *const machines[] = {"local", "thesis-a100", "lassen", "thesis-a100", "lassen"};
    static const int devices[] = {4, 2, 2, 2, 4}; /* fewer for larger networks */
    static const int32_t precs[] = {HP_PREC_FP32, HP_PREC_FP32, HP_PREC_TF32, HP_PREC_BF16, HP_PREC_FP16};
    const bool whole = law_all("bounds of three more networks, machines and precisions");
    for (int i = 0; i < 5; i++) {
        if (!whole && i != 1 && i != 3) continue; /* the quickest two */
        world w = make_world(machines[i], nets[i], 32, devices[i]);
        w.setup.graph = w.g = hp_graph_train_in(w.arena, w.g, precs[i]);
        const hp_search_result all = search(&w, devices[i], INT_MAX), few = search(&w, devices[i], 3);
        assert_int_equal(all.cut_off + all.open + few.open, 0);
        assert_true(few.n >= 3 && few.n < all.n && few.simulated < all.simulated);
        for (int k = 0; k < 3; k++) {
            assert_string_equal(few.best[k].figures.strategy, all.best[k].figures.strategy);
            assert_true(few.best[k].figures.step_s == all.best[k].figures.step_s); // NOLINT: same figures
        }
        hp_arena_free(w.arena);
    }
}

/* The oracle: every strategy of the space, lowered and simulated one by one, and some of them proved
 * (test_lowering.c covers any). */
static void the_winner_is_the_exhaustive_optimum(void **state) {
    (void)state;
    const int most = law_all("the optimum of four devices") ? 4 : 3;
    for (int devices = 1; devices <= most; devices++) {
        world w = make_world("local", "cnn", 32, 4);
        w.m.devices_per_node = w.m.cores_per_node = 4;
        const hp_search_result r = search(&w, devices, 1);
        hp_eval *e = hp_eval_new(w.arena, &w.setup);
        double best = INFINITY;
        const hp_space space = space_of(&w, devices);
        hp_point *list;
        const int n = hp_space_list(w.arena, &space, &list);
        for (int i = 0; i < n; i++) {
            hp_error err = {HP_OK, ""};
            hp_evaluation v;
            hp_program *p;
            const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 4, .place = true};
            hp_strategy s = hp_space_strategy(&list[i]);
            if (!hp_strategy_legal(&s, w.g, 4, devices, NULL)) continue;
            hp_eval_complete(e, &s, (hp_cut_kind)list[i].cut);
            hp_arena *own = hp_arena_new();
            assert_int_equal(hp_strategy_devices(&s), devices);
            if (i % 8 == 0) {
                assert_int_equal(hp_lower(own, w.g, &s, &o, &p, &err), HP_OK);
                if (hp_program_check(p, w.g, &err) != HP_OK) fail_msg("%s", err.text);
            }
            if (hp_evaluate(e, own, &s, HP_EVAL_PLACED, &v, &err) != HP_OK) fail_msg("%s", err.text);
            best = fmin(best, v.figures.step_s);
            hp_arena_free(own);
        }
        assert_true(r.n >= 1);
        assert_true(r.best[0].figures.step_s == best); // NOLINT: same figures
        hp_arena_free(w.arena);
    }
}

/* Nothing depends on the clock or on memory addresses, even if the budget ends the search. */
static void searches_repeat_themselves(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet18", 256, 8);
    w.setup.machine = &w.m;
    const hp_space space = space_of(&w, 8);
    hp_search_options o = {.top = 10, .budget = 100000};
    hp_search_result r[2];
    hp_error err;
    for (int i = 0; i < 2; i++, o.threads = 3) /* nor on the number of threads */
        assert_int_equal(hp_search(w.arena, &w.setup, &space, &o, &r[i], &err), HP_OK);
    assert_true(r[0].cut_off > 0 && r[0].n >= 10 && r[1].n == r[0].n && r[0].simulated == r[1].simulated);
    for (int k = 0; k < 10; k++) {
        assert_string_equal(r[0].best[k].figures.strategy, r[1].best[k].figures.strategy);
        for (int before = 0; before < k; before++) /* and no strategy is listed twice */
            assert_string_not_equal(r[0].best[k].figures.strategy, r[0].best[before].figures.strategy);
    }
    hp_arena_free(w.arena);
}

/* Every kind of parallelism is among the points of a space, on all devices; each point once. */
static void the_space_has_every_axis(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet18", 256, 8);
    const hp_space space = space_of(&w, 8);
    hp_point *list;
    const int n = hp_space_list(w.arena, &space, &list);
    int spatial = 0, shared = 0, local = 0, gems = 0, channels = 0, clients = 0, halo = 0, overlap = 0,
        zb = 0, two = 0;
    for (int i = 0; i < n; i++) {
        const hp_strategy s = hp_space_strategy(&list[i]);
        assert_int_equal(hp_strategy_devices(&s), 8);
        spatial += s.sp.n > 0;
        shared += s.sp.tail == HP_TAIL_SHARED;
        local += s.ldp > 1;
        gems += s.gems > 1;
        channels += s.cp > 1;
        clients += s.clients > 1;
        halo += s.sp.halo > 1;
        overlap += s.sp.overlap != HP_OVERLAP_NONE;
        zb += s.sched == HP_SCHED_ZB;
        two += s.sp.n == 2 && s.sp.rows[0] != s.sp.rows[1];
    }
    assert_true(spatial && shared && local && gems && channels && clients && halo && overlap && zb && two);
    hp_arena_free(w.arena);
}

/* What is kept fits; what is rejected for memory does not; the nearest reject's fix was tried and fits. */
static void memory_limits_are_kept(void **state) {
    (void)state;
    const int devices = law_all("memory limits of four devices, not of two") ? 4 : 2;
    world w = make_world("thesis-a100", "cnn", 128, 4);
    w.setup.memory_limit = INT64_C(1) << 60;
    const hp_search_result free = search(&w, devices, INT_MAX);
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < free.n; i++) {
        least = free.best[i].figures.memory_bytes < least ? free.best[i].figures.memory_bytes : least;
        most = free.best[i].figures.memory_bytes > most ? free.best[i].figures.memory_bytes : most;
    }
    w.setup.memory_limit = (least + most) / 2;
    const hp_search_result limited = search(&w, devices, INT_MAX);
    assert_true(limited.n > 0 && limited.n < free.n);
    for (int i = 0; i < limited.n; i++)
        assert_true(limited.best[i].figures.memory_bytes <= w.setup.memory_limit);
    bool found = false;
    for (int i = 0; i < limited.n_rejected; i++) {
        if (limited.rejected[i].code != HP_REJECT_MEM) continue;
        found = true;
        assert_true(limited.rejected[i].count > 0 && *limited.rejected[i].limit && *limited.rejected[i].fix);
    }
    assert_true(found);
    w.setup.memory_limit = 1000;
    assert_int_equal(search(&w, devices, 5).n, 0);
    hp_arena_free(w.arena);
}

/* On CPUs, ranks share the node's memory: two that fit alone may not fit together, each with its
 * yardsticks. */
static void ranks_of_a_node_share_its_memory(void **state) {
    (void)state;
    hp_machine m = {
        .nodes = 2, .devices_per_node = 2, .share_cpu = true, .device = {.memory_bytes = 100 << 20}};
    const hp_memory_limit l = hp_memory_limit_of(&m, 0, 1, false);
    const int64_t y = HP_YARDSTICK_BYTES, one[] = {(60 << 20) - y}, small[] = {(50 << 20) - y},
                  mixed[] = {(70 << 20) - y, (30 << 20) - y}, mixed_more[] = {mixed[0], mixed[1] + 1};
    const struct {
        hp_memory_demand d;
        bool fits;
    } cases[] = {{{one, 1, 1, 1, NULL}, true},
                 {{one, 1, 2, 1, NULL}, false},
                 {{small, 1, 4, 1, NULL}, true},
                 {{small, 1, 6, 1, NULL}, false}, /* more ranks than devices: they wrap around */
                 {{mixed, 2, 2, 1, NULL}, true},
                 {{mixed_more, 2, 2, 1, NULL}, false},
                 {{one, 1, 2, 2, NULL}, false}, /* two on one device, 120 on the node */
                 {{small, 1, 4, 2, NULL}, false}};
    hp_reject why;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(hp_memory_fits(&l, &m, &cases[i].d, &why), cases[i].fits);
        if (!cases[i].fits) assert_int_equal(why.code, HP_REJECT_MEM);
    }
    m.share_cpu = false;
    const hp_memory_limit own = hp_memory_limit_of(&m, 0, 1, false);
    const hp_memory_demand many = {one, 1, 4, 1, NULL};
    assert_true(hp_memory_fits(&own, &m, &many, &why));
}

/* AccDP: k ranks on a device have a k-th of its memory each, less their contexts. */
static void clients_share_their_devices_memory(void **state) {
    (void)state;
    hp_machine m;
    hp_error err;
    assert_int_equal(hp_machine_load("thesis-a100", &m, &err), HP_OK);
    const int64_t one = hp_memory_limit_of(&m, 0, 1, false).rank_bytes;
    assert_int_equal(one, m.device.memory_bytes);
    for (int k = 2; k <= 4; k++) {
        const int64_t context = hp_context_bytes(&m, false);
        assert_true(llabs(k * (hp_memory_limit_of(&m, 0, k, false).rank_bytes + context) - one) < k);
        assert_int_equal(hp_memory_limit_of(&m, 123, k, false).rank_bytes, 123); /* the user's word */
    }
}

/* Two values tie if errors explain their distance: 90 % of a normal distribution. */
static void a_tie_is_within_the_errors(void **state) {
    (void)state;
    for (int k = 1; k <= 200; k++) {
        const double off = 0.001 * k, sd = 0.05;
        hp_evaluation list[2] = {{.figures = {.gpus = 1, .step_s = exp(off)}, .uncertainty.draws = sd * sd},
                                 {.figures = {.gpus = 1, .step_s = 1}}};
        hp_search_rank(list, 2, HP_SORT_TIME);
        assert_false(list[0].figures.tie);
        assert_true(list[0].figures.step_s <= list[1].figures.step_s);
        assert_int_equal(list[1].figures.tie, off <= 1.6449 * sd);
        list[1].figures.gpus = 2;
        assert_false(hp_search_tie(&list[0], &list[1]));
    }
}

/* Separately ranked lists (one per precision), once joined, rank as if found together: by the step, with ties
 * marked anew, and equal ones in their order of arrival. */
static void ranked_lists_join_to_a_ranked_list(void **state) {
    (void)state;
    enum { MOST = 40 };
    int ties = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        dice d = {seed, 1};
        hp_evaluation apart[MOST], together[MOST];
        const int n = roll(&d, 0, MOST), first = roll(&d, 0, n);
        for (int i = 0; i < n; i++) {
            apart[i] = (hp_evaluation){.tasks = i,
                                       .uncertainty.draws = 0.001 * roll(&d, 0, 10),
                                       .figures = {.gpus = 1, .step_s = roll(&d, 10, 30)}};
            together[i] = apart[i];
        }
        hp_search_rank(apart, first, HP_SORT_TIME);
        hp_search_rank(apart + first, n - first, HP_SORT_TIME);
        hp_search_rank(apart, n, HP_SORT_TIME);
        hp_search_rank(together, n, HP_SORT_TIME);
        for (int i = 0; i < n; i++) {
            const hp_candidate *a = &together[i].figures, *b = i ? &together[i - 1].figures : NULL;
            assert_int_equal(apart[i].tasks, together[i].tasks);
            assert_int_equal(apart[i].figures.tie, a->tie);
            if (!b) continue;
            assert_true(b->step_s <= a->step_s);
            assert_int_equal(a->tie, hp_search_tie(&together[i], &together[i - 1]));
            ties += a->tie;
            if (b->step_s >= a->step_s) assert_true(together[i - 1].tasks < together[i].tasks);
        }
    }
    assert_true(ties > 0);
}

/* The stored trace contains every rank of the plan with every task and ends at the predicted step; a rebuilt
 * plan is equal. */
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
                    .device = &hp_devices[HP_DEVICE_CPU]};
    hp_prediction p = {0};
    hp_db db = {0};
    hp_trace t;
    int64_t run;
    assert_int_equal(hp_strategy_parse("dp=2,stages=2,micro=2,sched=1f1b", &plan.strategy, &err), HP_OK);
    if (hp_predict(w.arena, &plan, &w.setup, &p, &err) != HP_OK) fail_msg("%s", err.text);
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
    assert_int_equal(hp_predict(w.arena, &other, &w.setup, &p, &err), HP_OK);
    assert_string_equal(other.hash.hex, plan.hash.hex);
    hp_arena_free(w.arena);
}

/* Strategies left open by a spent budget fit and may be better: simulated, they take at least their stated
 * bound. */
static void what_stays_open_is_named(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet-v1-20", 32, 64);
    const hp_search_options o = {.top = 1, .budget = 3000};
    const hp_space space = space_of(&w, 16);
    hp_search_result r;
    hp_error err = {HP_OK, ""};
    w.setup.machine = &w.m;
    assert_int_equal(hp_search(w.arena, &w.setup, &space, &o, &r, &err), HP_OK);
    assert_true(r.open > HP_OPEN_LISTED && r.n_promising > 0);
    hp_eval *e = hp_eval_new(w.arena, &w.setup);
    for (int i = 0; i < r.n_promising; i++) {
        const hp_open_strategy *p = &r.promising[i];
        hp_evaluation v;
        assert_true(p->bound >= r.open_bound && p->bound < r.best[0].figures.step_s && p->tasks > 0);
        if (hp_evaluate(e, w.arena, &p->strategy, HP_EVAL_PLACED, &v, &err) != HP_OK)
            fail_msg("%s", err.text);
        assert_int_equal(v.reject.code, HP_FEASIBLE);
        assert_true(v.figures.step_s >= p->bound * (1 - 1e-9));
        for (int k = 0; k < r.n; k++) assert_false(hp_strategy_equal(&r.best[k].strategy, &p->strategy));
    }
    hp_arena_free(w.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_never_cut_off_a_winner),
        cmocka_unit_test(the_winner_is_the_exhaustive_optimum),
        cmocka_unit_test(searches_repeat_themselves),
        cmocka_unit_test(the_space_has_every_axis),
        cmocka_unit_test(memory_limits_are_kept),
        cmocka_unit_test(ranks_of_a_node_share_its_memory),
        cmocka_unit_test(clients_share_their_devices_memory),
        cmocka_unit_test(a_tie_is_within_the_errors),
        cmocka_unit_test(ranked_lists_join_to_a_ranked_list),
        cmocka_unit_test(a_written_prediction_reads_back),
        cmocka_unit_test(what_stays_open_is_named),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
