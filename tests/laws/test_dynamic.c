/* test_dynamic.c - plans of prec=int8-dynamic: which layers quantise their input, that nothing splits maps
 * whose range they take, their memory needs and their costs. */
#include "costmodels/models.h"
#include "networks/graph/layer.h"
#include "plan/memory/memory_device.h"
#include "networks/deploy/deploy.h"
#include "plan/program/work.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/strategy/change.h"
#include "tests/support/plan/built/whole_shape.h"

static const char *const nets[] = {"cnn", "resnet18", "mobilenetv2", "densenet121", "unet:8"};
enum { N_NETS = sizeof nets / sizeof *nets };

static hp_graph *deployed(hp_arena *a, const char *net, int prec, const char *float_layers) {
    hp_error err;
    hp_graph *g = NULL, *d = NULL;
    assert_int_equal(hp_net_build(a, net, 64, 64, hp_net_default_classes(net), &g, &err), HP_OK);
    const hp_deploy_options o = {.prec = prec, .float_layers = float_layers};
    assert_int_equal(hp_graph_deploy(a, g, &o, &d, &err), HP_OK);
    return d;
}

/* The graph is that of fp32: the same layers, tensors and memory; matrix layers are marked, except the listed
 * ones. */
static void graphs_are_those_of_fp32(void **state) {
    (void)state;
    for (int i = 0; i < N_NETS; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *f = deployed(a, nets[i], HP_PREC_FP32, NULL),
                       *d = deployed(a, nets[i], HP_PREC_INT8_DYNAMIC, NULL);
        assert_int_equal(d->n_layer, f->n_layer);
        assert_int_equal(hp_graph_live_bytes(d), hp_graph_live_bytes(f));
        for (int l = 0; l < d->n_layer; l++) {
            assert_int_equal(d->tensor[d->layer[l].out].store, HP_STORE_REAL);
            assert_int_equal(d->layer[l].deployed.dynamic, hp_layer_is_matrix(&d->layer[l]));
            assert_int_equal(f->layer[l].deployed.dynamic, 0);
        }
        assert_string_not_equal(hp_graph_text(a, d), hp_graph_text(a, f));
        hp_arena_free(a);
    }
}

static void listed_layers_stay_real(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *d = deployed(a, "resnet18", HP_PREC_INT8_DYNAMIC, "conv1,fc");
    for (int l = 0; l < d->n_layer; l++) {
        const hp_layer *layer = &d->layer[l];
        const bool kept = !strcmp(layer->name, "conv1") || !strcmp(layer->name, "fc");
        assert_int_equal(layer->deployed.dynamic, hp_layer_is_matrix(layer) && !kept);
    }
    hp_arena_free(a);
}

/* For any rows and columns of the output. */
static void all_of_the_input_is_needed(void **state) {
    (void)state;
    for (int i = 0; i < N_NETS; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *d = deployed(a, nets[i], HP_PREC_INT8_DYNAMIC, NULL);
        for (int l = 1; l < d->n_layer; l++) {
            if (!d->layer[l].deployed.dynamic) continue;
            hp_box out = hp_box_whole(d, d->layer[l].out, 3), in = hp_box_whole(d, d->layer[l].in[0], 3);
            out.hi[HP_AXIS_H] = out.hi[HP_AXIS_W] = 1;
            out.lo[HP_AXIS_N] = in.lo[HP_AXIS_N] = 1;
            const hp_box need = hp_layer_need(d, l, 0, &out);
            assert_true(hp_box_equal(&need, &in));
        }
        hp_arena_free(a);
    }
}

/* In addition to the needs of a byte layer: the bytes of one sample, and a scale per output, in whole cache
 * lines. */
static void scratch_holds_a_sample(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_graph *d = deployed(a, "resnet18", HP_PREC_INT8_DYNAMIC, NULL);
    for (int l = 1; l < d->n_layer; l++) {
        if (!d->layer[l].deployed.dynamic) continue;
        const hp_shape one = whole_shape(d, l, 1), four = whole_shape(d, l, 4);
        const int64_t map = hp_tensor_elems(d, d->layer[l].in[0]), outs = d->tensor[d->layer[l].out].c,
                      most = map + 4 * (outs + 64) + 128, bytes = hp_infer_scratch_bytes(d, l, &one, HP_F32);
        assert_int_equal(bytes, hp_infer_scratch_bytes(d, l, &four, HP_F32));
        d->layer[l].deployed.dynamic = 0;
        d->tensor[d->layer[l].in[0]].store = HP_STORE_U8;
        const int64_t still = hp_infer_scratch_bytes(d, l, &one, HP_F32);
        d->layer[l].deployed.dynamic = 1;
        d->tensor[d->layer[l].in[0]].store = HP_STORE_REAL;
        assert_true(bytes >= still + map + 4 * outs && bytes <= still + most);
    }
    hp_arena_free(a);
}

/* Replicas, stages and micro-batches do not split maps; tiles and strips do. */
static void what_cuts_maps_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *strategy, *fix; /* NULL: legal */
    } some[] = {{"dp=2", NULL},
                {"stages=3,micro=4", NULL},
                {"dp=2,stages=2,micro=2", NULL},
                {"sp=2x1", "sp=1x1"},
                {"stages=2,sp=1x2", "sp=1x1"},
                {"strips=4", "strips=1"},
                {"sp=2x2,strips=4", "sp=1x1"}};
    hp_arena *a = hp_arena_new();
    const hp_graph *d = deployed(a, "resnet18", HP_PREC_INT8_DYNAMIC, NULL);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        hp_question q = {.batch = 8};
        hp_reject why;
        assert_int_equal(hp_strategy_parse(some[i].strategy, &q.s, NULL), HP_OK);
        q.s.prec = HP_PREC_INT8_DYNAMIC;
        const bool legal = hp_strategy_legal(&q.s, d, q.batch, 0, &why);
        assert_int_equal(legal, !some[i].fix);
        if (!legal) assert_int_equal(why.code, HP_REJECT_PREC);
        if (!legal) assert_string_equal(why.fix, some[i].fix);
        for (int k = 0; k < 4 && !hp_strategy_legal(&q.s, d, q.batch, 0, &why); k++)
            assert_int_equal(hp_change_apply(&q, why.fix, NULL), HP_OK);
        assert_true(hp_strategy_legal(&q.s, d, q.batch, 0, NULL));
    }
    hp_arena_free(a);
}

/* A layer costs the byte kernel and the passes before it, until it was measured itself. */
static void layers_cost_the_kernel_and_the_passes(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_machine m;
    hp_error err;
    hp_cost_table *t = NULL;
    assert_int_equal(hp_machine_load("thesis-a100", &m, &err), HP_OK);
    assert_int_equal(hp_cost_load(a, NULL, &m, &t, &err), HP_OK);
    const hp_graph *d = deployed(a, "resnet18", HP_PREC_INT8_DYNAMIC, NULL);
    for (int l = 1; l < d->n_layer; l++) {
        if (!d->layer[l].deployed.dynamic) continue;
        const hp_box out = hp_box_whole(d, d->layer[l].out, 2);
        const hp_work_case c = hp_work_case_at(d, l, HP_TASK_FWD, &out);
        const hp_work w = hp_work_of_case(d, HP_F32, &c);
        hp_work kernel;
        assert_true(strncmp(w.key, "infer.dynamic-", 14) == 0 && hp_work_kernel(&w, &kernel));
        assert_true(strstr(kernel.key, " u8") && !strstr(kernel.key, "dynamic"));
        assert_true(w.passes == 9.0 * 2 * (double)hp_tensor_elems(d, d->layer[l].in[0])); // NOLINT: whole
        assert_true(kernel.bytes == w.bytes - w.passes);                                  // NOLINT: whole
        const double seconds = hp_cost_compute(t, &m, &w).seconds,
                     least = hp_cost_compute(t, &m, &kernel).seconds + w.passes / m.device.bytes_per_s;
        assert_true(seconds >= least && seconds <= least + 10 * w.passes / m.device.bytes_per_s + 1e-4);
    }
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_those_of_fp32),   cmocka_unit_test(listed_layers_stay_real),
        cmocka_unit_test(all_of_the_input_is_needed), cmocka_unit_test(scratch_holds_a_sample),
        cmocka_unit_test(what_cuts_maps_is_refused),  cmocka_unit_test(layers_cost_the_kernel_and_the_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
