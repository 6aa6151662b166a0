/* test_framework.c - what frameworks add to a layer, counted by hand; their rows can be read and stand before others; the
 * figures of a device that nobody fitted come out within what is said of them. */
#include "costmodels/framework/framework.h"

#include "costmodels/rows.h"
#include "plan/graph/deploy.h"
#include "plan/graph/precision.h"
#include "plan/nets/nets.h"
#include "tests/support/sim/search_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const hp_framework *named(const char *name) {
    const hp_framework *f = NULL;
    hp_error err;
    if (hp_framework_find(name, &f, &err) != HP_OK) fail_msg("%s", err.text);
    return f;
}

static void names_are_found_or_listed(void **state) {
    (void)state;
    const hp_framework *f = named("pytorch-1.13");
    hp_error err;
    assert_string_equal(f->name, "pytorch-1.13");
    assert_null(named(NULL));
    assert_null(named("hplan"));
    assert_int_equal(hp_framework_find("torch", &f, &err), HP_EUSAGE);
    for (const hp_framework *k = hp_frameworks; k->name; k++) {
        assert_non_null(strstr(err.text, k->name));
        assert_true(k->source && *k->source);
    }
}

static void their_rows_stand_before_others(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "cnn", 28, 4);
    for (const hp_framework *k = hp_frameworks; k->name; k++) {
        const hp_cost_table *t = hp_framework_table(w.arena, k, w.t);
        const hp_row *mpi = hp_rows_find(t, HP_ROW_PATH, "ib-hdr", "mpi");
        assert_non_null(mpi);
        if (k->rows) assert_true(mpi->y[HP_PATH_COPIES] == 0); /* over the link */
        assert_true(hp_rows_find(t, HP_ROW_LINK, "ib-hdr", "") ==
                    hp_rows_find(w.t, HP_ROW_LINK, "ib-hdr", ""));
    }
    hp_arena_free(w.arena);
}

/* --- passes --- */

static hp_framework_passes passes(const hp_framework *f, const hp_machine *m, const hp_graph *g, int layer,
                                  hp_task_op op) {
    const hp_tensor *y = &g->tensor[g->layer[layer].out];
    const hp_box out = {{0, 0, 0, 0}, {2, y->h, y->w, y->c}};
    const hp_work_case c = hp_work_case_at(g, layer, op, &out);
    return hp_framework_passes_of(f, m, g, HP_F32, &c);
}

static double bytes_of(const hp_graph *g, int tensor, int each) {
    const hp_tensor *t = &g->tensor[tensor];
    return 2.0 * t->h * t->w * t->c * each;
}

static int layer_named(const hp_graph *g, const char *name) {
    for (int l = 0; l < g->n_layer; l++)
        if (strcmp(g->layer[l].name, name) == 0) return l;
    fail_msg("no layer %s", name);
    return 0;
}

static void want(hp_framework_passes p, int kernels, double bytes) {
    if (p.kernels != kernels || fabs(p.bytes - bytes) > 0.5)
        fail_msg("%d kernels move %.0f bytes, not %d and %.0f", p.kernels, p.bytes, kernels, bytes);
}

static void eager_layers_have_kernels_of_their_own(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet18", 64, 2);
    const hp_framework *torch = named("pytorch-1.13"), *fused = named("tensorrt");
    const int norm = layer_named(w.g, "bn1"), conv = layer_named(w.g, "layer1.0.conv1");
    const double y = bytes_of(w.g, w.g->layer[norm].out, 4);
    want(passes(torch, &w.m, w.g, norm, HP_TASK_FWD), 1, 2 * y); /* its ReLU */
    want(passes(torch, &w.m, w.g, norm, HP_TASK_BWD), 1, y);
    want(passes(torch, &w.m, w.g, conv, HP_TASK_FWD), 0, 0); /* torchvision's have no bias */
    want(passes(fused, &w.m, w.g, norm, HP_TASK_FWD), 0, 0);
    /* 16 bits on matrix units: channels last and back */
    const hp_graph *half = hp_graph_train_in(w.arena, w.g, HP_PREC_FP16);
    const double x = bytes_of(w.g, w.g->layer[conv].in[0], 2), out = bytes_of(w.g, w.g->layer[conv].out, 2);
    want(passes(torch, &w.m, half, conv, HP_TASK_FWD), 2, 2 * x + 2 * out);
    /* for inference norm and ReLU went into the convolution: the framework runs both */
    hp_graph *deployed = NULL;
    const hp_deploy_options o = {.prec = HP_PREC_FP32};
    assert_int_equal(hp_graph_deploy(w.arena, w.g, &o, &deployed, NULL), HP_OK);
    const int folded = layer_named(deployed, "layer1.0.conv1");
    want(passes(torch, &w.m, deployed, folded, HP_TASK_FWD), 2,
         4 * bytes_of(deployed, deployed->layer[folded].out, 4));
    hp_arena_free(w.arena);
}

static void float32_is_multiplied_in_tf32_where_it_can_be(void **state) {
    (void)state;
    world a = make_world("thesis-a100", "cnn", 28, 4), v = make_world("lassen", "cnn", 28, 4);
    hp_work conv = {.key = "fwd.conv k3x3 s1 d1 g1 i64 o64 f32 w56"}, norm = {.key = "fwd.bn c64 f32 w56"},
            old = conv;
    hp_framework_units(named("pytorch-1.13"), &a.m, &conv);
    hp_framework_units(named("pytorch-1.13"), &a.m, &norm);
    hp_framework_units(named("pytorch-1.13"), &v.m, &old); /* a V100 has no such units */
    assert_string_equal(conv.key, "fwd.conv k3x3 s1 d1 g1 i64 o64 tf32 w56");
    assert_string_equal(norm.key, "fwd.bn c64 f32 w56");
    assert_string_equal(old.key, "fwd.conv k3x3 s1 d1 g1 i64 o64 f32 w56");
    hp_arena_free(a.arena);
    hp_arena_free(v.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_or_listed),
        cmocka_unit_test(their_rows_stand_before_others),
        cmocka_unit_test(eager_layers_have_kernels_of_their_own),
        cmocka_unit_test(float32_is_multiplied_in_tf32_where_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
