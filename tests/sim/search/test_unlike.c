/* test_unlike.c - predictions on machines with different devices, compared with machines with equal ones, and
 * with every cut. */
#include "plan/strategy/strategy.h"
#include "networks/nets/nets.h"
#include "sim/search/evaluate.h"
#include "sim/search/mix_cost.h"
#include "sim/search/search.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define FIGURES "memory=40GB, fp32=20TFLOP/s, bandwidth=1500GB/s, launch=5us, like=a100-40"
#define SLOWER  "memory=20GB, fp32=5TFLOP/s, bandwidth=400GB/s, launch=5us, like=a100-40"
static const char two_classes[] =
    "nodes=1; node=1 x foo + 1 x bar; device=foo, " SLOWER "; device=bar, " FIGURES;

typedef struct world {
    hp_arena *arena;
    hp_machine m;
    hp_eval_setup setup;
    hp_eval *eval;
} world;

static hp_machine parsed(const char *text) {
    hp_machine m;
    hp_error err = {0};
    if (hp_machine_parse(text, "text", &m, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return m;
}

/* `w` must not move. */
static void build(world *w, const char *machine, int batch) {
    hp_error err = {0};
    hp_cost_table *t = NULL;
    w->arena = hp_arena_new();
    w->m = parsed(machine);
    if (hp_cost_load(w->arena, NULL, &w->m, &t, &err) != HP_OK) fail_msg("%s", err.text);
    hp_graph *g = NULL;
    if (hp_net_build(w->arena, "resnet18", 128, 128, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    w->setup = (hp_eval_setup){.jitter_cv = -1,
                               .graph = g,
                               .machine = &w->m,
                               .table = t,
                               .mode = HP_MODE_TRAIN,
                               .dtype = HP_F32,
                               .batch = batch,
                               .straggler_rank = -1};
    w->eval = hp_eval_new(w->arena, &w->setup);
}

static hp_evaluation evaluate(world *w, const char *strategy) {
    hp_strategy s;
    hp_evaluation e = {0};
    hp_error err = {0};
    if (hp_strategy_parse(strategy, &s, &err) != HP_OK ||
        hp_evaluate(w->eval, w->arena, &s, HP_EVAL_PLACED, &e, &err) != HP_OK)
        fail_msg("%s: %s", strategy, err.text);
    return e;
}

static double seconds(const char *machine, const char *strategy) {
    world w;
    build(&w, machine, 16);
    const hp_evaluation e = evaluate(&w, strategy);
    if (e.reject.code) fail_msg("%s: %s", strategy, e.reject.limit);
    hp_arena_free(w.arena);
    return e.figures.step_s;
}

static const char *const strategies[] = {"dp=4",
                                         "stages=4,cut=2:3:3:2,micro=4,sched=1f1b",
                                         "sp=2x2",
                                         "dp=2,stages=2,cut=5:5,micro=4",
                                         "stages=2,cut=5:5,sp=3x1,micro=2",
                                         "stages=4,cut=3:2:3:2,sched=gems,gems=2,micro=2"};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

/* Two names for the same device change nothing, wherever they occur. */
static void a_class_is_its_figures(void **state) {
    (void)state;
    for (int i = 0; i < STRATEGIES; i++) {
        const double one = seconds("nodes=2; node=2 x foo; device=foo, " FIGURES, strategies[i]),
                     two = seconds("nodes=2; node=1 x foo + 1 x bar; device=foo, " FIGURES
                                   "; device=bar, " FIGURES,
                                   strategies[i]),
                     kinds = seconds("nodes=1 + 1; node=2 x foo | 2 x bar; device=foo, " FIGURES
                                     "; device=bar, " FIGURES,
                                     strategies[i]);
        if (one != two || one != kinds) fail_msg("%s: %.9g, %.9g, %.9g s", strategies[i], one, two, kinds);
    }
}

/* A rank computes one task after another, so at half the speed it takes twice as long. */
static void half_the_speed_takes_twice_as_long(void **state) {
    (void)state;
    const double full = seconds("nodes=1; node=2 x t4", "dp=1"),
                 half = seconds("nodes=1; node=2 x t4; slow=0.0:50%", "dp=1"),
                 other = seconds("nodes=1; node=2 x t4; slow=0.1:50%", "dp=1");
    if (fabs(half / full - 2) > 1e-5) fail_msg("%.9g s, %.9g s", half, full);
    assert_true(full == other);
}

/* Replicas wait for the slowest: one slow device costs as much as slow devices everywhere. */
static void the_slowest_sets_the_step(void **state) {
    (void)state;
    const double all = seconds("nodes=2; node=2 x t4; slow=0:25%, 1:25%", "dp=4"),
                 one = seconds("nodes=2; node=2 x t4; slow=1.0:25%", "dp=4"),
                 none = seconds("nodes=2; node=2 x t4", "dp=4");
    if (fabs(one / all - 1) > 1e-9) fail_msg("one slow: %.9g s, all slow: %.9g s", one, all);
    if (none > 0.9 * all) fail_msg("%.9g s, %.9g s", none, all);
    const double small =
                     seconds("nodes=4; node=1 x foo; nic=1 x 24GB/s, ib-hdr; device=foo, " SLOWER, "dp=4"),
                 mixed = seconds(
                     "nodes=2 + 2; node=1 x bar | 1 x foo; nic=1 x 24GB/s, ib-hdr; device=bar, " FIGURES
                     "; device=foo, " SLOWER,
                     "dp=4");
    if (fabs(small / mixed - 1) > 0.02)
        fail_msg("mixed %.9g s, all of the slower class %.9g s", mixed, small);
}

/* Bounds hold and folding changes nothing. */
static void folded_or_not_it_is_the_same(void **state) {
    (void)state;
    static const char *const machines[] = {"nodes=4; node=1 x a100-40 + 1 x v100-16",
                                           "nodes=2 + 2; node=2 x a100-40 | 2 x v100-16",
                                           "nodes=4; node=2 x a100-40; slow=1:50%, 2.1:80%"};
    static const char *const wide[] = {"dp=8", "dp=4,stages=2,cut=5:5,micro=2", "dp=2,sp=2x2",
                                       "dp=4,place=cyclic,sp=2x1"};
    for (int m = 0; m < 3; m++)
        for (int i = 0; i < 4; i++) {
            world w;
            hp_estimate bound;
            hp_error err = {0};
            build(&w, machines[m], 16);
            const hp_evaluation folded = evaluate(&w, wide[i]);
            w.setup.no_fold = true;
            w.eval = hp_eval_new(w.arena, &w.setup);
            const hp_evaluation all = evaluate(&w, wide[i]);
            if (fabs(folded.figures.step_s / all.figures.step_s - 1) > 1e-9)
                fail_msg("%s, %s: folded %.9g s, all %.9g s", machines[m], wide[i], folded.figures.step_s,
                         all.figures.step_s);
            assert_int_equal(hp_eval_estimate(w.eval, &all.strategy, &bound, &err), HP_OK);
            if (bound.bound_s > all.figures.step_s * (1 + 1e-9))
                fail_msg("%s, %s: %.9g s, faster than its bound %.9g s", machines[m], wide[i],
                         all.figures.step_s, bound.bound_s);
            hp_arena_free(w.arena);
        }
}

/* Compared with every other cut, simulated: cuts for stages of different speeds are as good as the best, up
 * to what messages and the pipeline's ends add to the slowest stage. */
static void cuts_follow_the_devices(void **state) {
    (void)state;
    static const char *const machines[] = {"nodes=1; node=2 x t4; slow=0.1:50%",
                                           "nodes=1; node=2 x t4; slow=0.0:30%",
                                           "nodes=1; node=1 x a100-40 + 1 x v100-16", two_classes};
    for (int m = 0; m < 4; m++) {
        world w;
        build(&w, machines[m], 16);
        const hp_evaluation chosen = evaluate(&w, "stages=2,micro=16,sched=gpipe");
        const int units = w.setup.graph->n_unit;
        double best = INFINITY, even = 0;
        for (int first = 1; first < units; first++) {
            char text[64];
            snprintf(text, sizeof text, "stages=2,cut=%d:%d,micro=16,sched=gpipe", first, units - first);
            const hp_evaluation e = evaluate(&w, text);
            best = fmin(best, e.figures.step_s);
            if (first == units / 2) even = e.figures.step_s;
        }
        if (chosen.figures.step_s > 1.03 * best)
            fail_msg("%s: %s takes %.4g s, the best cut %.4g s, the even one %.4g s", machines[m],
                     chosen.figures.strategy, chosen.figures.step_s, best, even);
        hp_arena_free(w.arena);
    }
}

/* Best of all proportions of two members, simulated: key=a:b with a + b = total. */
static double best_of_all(world *w, const char *base, const char *key, int total) {
    double best = INFINITY;
    for (int first = 1; first < total; first++) {
        char text[96];
        snprintf(text, sizeof text, "%s,%s=%d:%d", base, key, first, total - first);
        const hp_evaluation e = evaluate(w, text);
        if (!e.reject.code) best = fmin(best, e.figures.step_s);
    }
    return best;
}

/* Shares of the batch, and heights and widths of tiles, compared with all possible ones; nothing changes if
 * devices are equal. */
static void shares_and_tiles_follow_the_devices(void **state) {
    (void)state;
    static const char *const machines[] = {"nodes=1; node=2 x t4", "nodes=1; node=2 x t4; slow=0.1:50%",
                                           "nodes=2; node=1 x t4; slow=0:30%",
                                           "nodes=1; node=1 x a100-40 + 1 x v100-16", two_classes};
    static const struct {
        const char *base, *key;
        int total;
    } rows[] = {
        {"dp=2", "share", 24}, {"dp=2,micro=2", "share", 12}, {"sp=2x1", "rows", 32}, {"sp=1x2", "cols", 32}};
    const bool all = law_all("shares and tiles, each on five machines, not two");
    for (int m = 0; m < 5; m++)
        for (int i = 0; i < 4; i++) {
            world w;
            hp_error err = {0};
            if (!all && i != m % 4 && (m == 0 || i != (m + 1) % 4)) continue;
            build(&w, machines[m], 24);
            hp_evaluation e = evaluate(&w, rows[i].base);
            const double even = e.figures.step_s,
                         best = best_of_all(&w, rows[i].base, rows[i].key, rows[i].total);
            assert_int_equal(hp_search_uneven(w.eval, w.arena, &e, &err), HP_OK);
            if (e.figures.step_s > 1.03 * fmin(best, even))
                fail_msg("%s: %s takes %.4g s, the best of all %.4g s, equal parts %.4g s", machines[m],
                         e.figures.strategy, e.figures.step_s, best, even);
            if (m == 0) assert_true(e.figures.step_s == even);
            hp_arena_free(w.arena);
        }
}

/* A rank's memory is that of its device. */
static void each_rank_fits_its_own_device(void **state) {
    (void)state;
    const hp_machine m = parsed("nodes=1; node=1 x a100-40 + 1 x v100-16");
    const hp_memory_limit l = hp_memory_limit_of(&m, 0, 1, false);
    assert_true(l.rank_bytes == 40000000000 && l.class_bytes[0] == 40000000000 &&
                l.class_bytes[1] == 16000000000);
    static const int32_t turned[] = {1, 0};
    const int64_t large[] = {40000000000, 16000000000}, over[] = {40000000000, 16000000001},
                  back[] = {16000000000, 40000000000};
    const struct {
        hp_memory_demand d;
        const char *says; /* NULL: it fits */
    } cases[] = {{{large, 2, 1, 1, NULL}, NULL},
                 {{over, 2, 1, 1, NULL}, "rank 1, on a v100-16"},
                 {{back, 2, 1, 1, NULL}, "rank 1, on a v100-16"},
                 {{back, 2, 1, 1, turned}, NULL},
                 {{large, 2, 1, 1, turned}, "rank 0, on a v100-16"},
                 {{over + 1, 1, 1, 1, NULL}, NULL},
                 {{over + 1, 1, 2, 1, NULL}, "rank 1, on a v100-16"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_reject why;
        const bool fits = hp_memory_fits(&l, &m, &cases[i].d, &why);
        assert_int_equal(fits, cases[i].says == NULL);
        if (!fits && cases[i].says && !strstr(why.limit, cases[i].says))
            fail_msg("case %zu: %s", i, why.limit);
        if (!fits) assert_int_equal(why.code, HP_REJECT_MEM);
    }
}

/* The cost of the mix is the difference from the same strategy on equal devices. */
static void a_mix_costs_what_equal_devices_gain(void **state) {
    (void)state;
    world w;
    hp_mix_cost c;
    hp_error err = {0};
    char text[400];
    build(&w, "nodes=1; node=1 x v100-16 + 1 x a100-40, nvlink", 16);
    const hp_evaluation e = evaluate(&w, "stages=2,micro=4");
    assert_int_equal(hp_mix_cost_of(w.arena, &w.setup, &e.strategy, &c, &err), HP_OK);
    assert_int_equal(c.class, 1);
    const double alike = seconds("nodes=1; node=2 x a100-40, nvlink=25GB/s", "stages=2,micro=4");
    assert_true(fabs(c.alike_s / alike - 1) < 0.05); /* other links */
    assert_true(c.even_s >= e.figures.step_s * (1 - 1e-9));
    assert_non_null(strstr(c.even_cut, "cut="));
    hp_mix_cost_text(&c, &w.m, e.figures.step_s, text, sizeof text);
    assert_non_null(strstr(text, "all devices a100-40"));
    hp_arena_free(w.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_is_its_figures),
        cmocka_unit_test(half_the_speed_takes_twice_as_long),
        cmocka_unit_test(the_slowest_sets_the_step),
        cmocka_unit_test(folded_or_not_it_is_the_same),
        cmocka_unit_test(cuts_follow_the_devices),
        cmocka_unit_test(shares_and_tiles_follow_the_devices),
        cmocka_unit_test(each_rank_fits_its_own_device),
        cmocka_unit_test(a_mix_costs_what_equal_devices_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
