/* test_infer.c - the search in inference: strips of the image if memory is short, compared with trying
 * everything. */
#include "networks/deploy/deploy.h"
#include "networks/graph/depths.h"
#include "sim/search/fix.h"
#include "sim/search/search.h"
#include "tests/support/plan/law_cases.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/sim/search_world.h"

/* The same network for inference. */
static world infer_world(const char *machine, const char *net, int image, int64_t batch, int prec) {
    world w = make_world(machine, net, image, batch);
    hp_error err = {HP_OK, ""};
    const hp_deploy_options o = {.prec = prec};
    if (hp_graph_deploy(w.arena, w.g, &o, &w.g, &err) != HP_OK) fail_msg("%s", err.text);
    w.setup.graph = w.g;
    w.setup.mode = HP_MODE_INFER;
    return w;
}

/* Fewest bytes of a strategy without strips; INT64_MAX if there is none. */
static int64_t least_whole(const hp_search_result *r) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < r->n; i++)
        if (r->best[i].strategy.strips.n == 1 && r->best[i].figures.memory_bytes < least)
            least = r->best[i].figures.memory_bytes;
    return least;
}

/* With enough memory, there are no strips; otherwise whatever fits is in strips and respects the limit. */
static void strips_come_where_memory_is_short(void **state) {
    (void)state;
    static const char *const nets[] = {"resnet18", "unet:4", "mobilenetv2"};
    const bool all = law_all("strips of each of three networks in float32 and in 8 bits");
    for (int i = 0; i < 3; i++)
        for (int prec = HP_PREC_FP32; prec <= HP_PREC_INT8; prec += HP_PREC_INT8) {
            if (!all && i != (prec == HP_PREC_INT8)) continue;
            world w = infer_world("thesis-a100", nets[i], 256, 1, prec);
            const hp_search_result roomy = search(&w, 1, INT_MAX);
            for (int k = 0; k < roomy.n; k++) assert_int_equal(roomy.best[k].strategy.strips.n, 1);
            w.setup.memory_limit = least_whole(&roomy) - 1;
            const hp_search_result tight = search(&w, 1, INT_MAX);
            assert_true(tight.n > 0 && tight.best[0].strategy.strips.n > 1);
            for (int k = 0; k < tight.n; k++)
                assert_true(tight.best[k].figures.memory_bytes <= w.setup.memory_limit);
            assert_non_null(strstr(tight.best[0].figures.note, "whole maps need"));
            hp_arena_free(w.arena);
        }
}

static void try_list(const world *w, hp_space space, bool strips, double *best) {
    hp_eval *e = hp_eval_new(w->arena, &w->setup);
    hp_point *list;
    space.strips = strips;
    const int n = hp_space_list(w->arena, &space, &list);
    for (int i = 0; i < n; i++) {
        hp_error err = {HP_OK, ""};
        hp_evaluation v;
        const hp_strategy s = hp_space_strategy(&list[i]);
        assert_int_equal(s.strips.n > 1, strips);
        if (!hp_strategy_legal(&s, w->g, w->setup.batch, space.n_devices, NULL)) continue;
        if (hp_evaluate(e, w->arena, &s, HP_EVAL_PLACED, &v, &err) != HP_OK) fail_msg("%s", err.text);
        if (!v.reject.code) *best = fmin(*best, v.figures.step_s);
    }
}

/* The oracle: every strategy, whole and in strips, one by one. */
static void the_fastest_that_fits_is_found(void **state) {
    (void)state;
    const int most = law_all("the fastest that fits on two devices") ? 2 : 1;
    for (int devices = 1; devices <= most; devices++) {
        world w = infer_world("thesis-a100", "unet:8", 256, devices, HP_PREC_INT8);
        const hp_search_result roomy = search(&w, devices, INT_MAX);
        w.setup.memory_limit = least_whole(&roomy) * 7 / 8;
        const hp_search_result r = search(&w, devices, 1);
        double best = INFINITY;
        try_list(&w, space_of(&w, devices), false, &best);
        try_list(&w, space_of(&w, devices), true, &best);
        assert_int_equal(r.n, 1);
        assert_true(r.best[0].figures.step_s == best); // NOLINT: same figures
        hp_arena_free(w.arena);
    }
}

/* A strategy that is too large is told how many strips suffice, and they do. */
static void strips_are_a_fix(void **state) {
    (void)state;
    world w = infer_world("thesis-a100", "unet:8", 256, 1, HP_PREC_FP32);
    hp_error err = {HP_OK, ""};
    const hp_search_result roomy = search(&w, 1, INT_MAX);
    w.setup.memory_limit = least_whole(&roomy) * 3 / 4;
    hp_eval *e = hp_eval_new(w.arena, &w.setup);
    hp_evaluation v;
    hp_strategy s = hp_strategy_default();
    assert_int_equal(hp_evaluate(e, w.arena, &s, HP_EVAL_PLACED, &v, &err), HP_OK);
    assert_int_equal(v.reject.code, HP_REJECT_MEM);
    const hp_question q = hp_eval_question(e, &s, 1);
    assert_int_equal(hp_search_fix(e, &q, HP_FIX_THOROUGH, &v.reject, &err), HP_OK);
    assert_int_equal(strncmp(v.reject.fix, "strips=", 7), 0);
    s.strips.n = atoi(v.reject.fix + 7);
    assert_int_equal(hp_evaluate(e, w.arena, &s, HP_EVAL_PLACED, &v, &err), HP_OK);
    assert_int_equal(v.reject.code, HP_FEASIBLE);
    hp_arena_free(w.arena);
}

/* Fewest bytes, placed, over all powers of two of strips and all depths, on one device. */
static int64_t least_placed(const world *w) {
    hp_eval *e = hp_eval_new(w->arena, &w->setup);
    int64_t least = INT64_MAX;
    int32_t depth[HP_DEPTHS];
    const int n = hp_graph_depths(w->g, depth);
    for (int strips = 1; strips <= w->g->image_h; strips *= 2)
        for (int k = 0; k < n; k++) {
            hp_error err = {HP_OK, ""};
            hp_evaluation v;
            hp_strategy s = hp_strategy_default();
            s.prec = w->g->prec;
            s.strips.n = strips;
            s.strips.deep = strips > 1 ? depth[k] : 0;
            if (hp_evaluate(e, w->arena, &s, HP_EVAL_FITS, &v, &err) != HP_OK) fail_msg("%s", err.text);
            if (v.figures.memory_bytes < least) least = v.figures.memory_bytes;
        }
    return least;
}

/* The oracle: all of them, one by one. With one byte less than their minimum, nothing fits. */
static void any_limit_that_some_strips_keep_is_kept(void **state) {
    (void)state;
    static const char *const nets[] = {"unet:4", "resnet18", "mobilenetv2"};
    const int n = law_all("limits that strips of two more networks keep") ? 3 : 1;
    for (int i = 0; i < n; i++) {
        world w = infer_world("thesis-a100", nets[i], 256, 1, HP_PREC_INT8);
        w.setup.machine = &w.m;
        const int64_t least = least_placed(&w);
        for (int less = 0; less <= 1; less++) {
            w.setup.memory_limit = least - less;
            const hp_search_result r = search(&w, 1, 10);
            assert_int_equal(r.n > 0, !less);
            for (int k = 0; k < r.n; k++) assert_true(r.best[k].figures.memory_bytes <= least);
        }
        hp_arena_free(w.arena);
    }
}

static int64_t pixels_after(const hp_graph *g, int unit) {
    const hp_tensor *t = &g->tensor[g->layer[g->unit_first[unit + 1] - 1].out];
    return (int64_t)t->h * t->w;
}

/* Depths end right after a unit whose map is smaller than all before it. */
static void depths_end_where_the_map_shrinks(void **state) {
    (void)state;
    static const char *const nets[] = {"resnet101", "unet:8", "mobilenetv2", "vgg19", "resnet-v2-29"};
    for (int i = 0; i < 5; i++) {
        world w = infer_world("thesis-a100", nets[i], 256, 1, HP_PREC_INT8);
        int32_t depth[HP_DEPTHS];
        const int n = hp_graph_depths(w.g, depth);
        assert_true(n > 2 && depth[0] == 0);
        for (int k = 1; k < n; k++) {
            assert_true(depth[k] < (k > 1 ? depth[k - 1] : w.g->n_unit));
            for (int u = 0; u < depth[k] - 1; u++)
                assert_true(pixels_after(w.g, depth[k] - 1) < pixels_after(w.g, u));
        }
        hp_arena_free(w.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strips_come_where_memory_is_short),
        cmocka_unit_test(the_fastest_that_fits_is_found),
        cmocka_unit_test(strips_are_a_fix),
        cmocka_unit_test(any_limit_that_some_strips_keep_is_kept),
        cmocka_unit_test(depths_end_where_the_map_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
