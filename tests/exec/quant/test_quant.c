/* test_quant.c - what is done to a network besides choosing ranges: shared scales, bias correction,
 * equalisation, and which layers stay real. */
#include <math.h>
#include <string.h>

#include "tests/support/exec/source_weights.h"
#include "tests/support/plan/built/layers.h"
#include "networks/nets/net_act.h"
#include "exec/data/weights/weight_walk.h"
#include "exec/quant/clip.h"
#include "exec/quant/correct.h"
#include "exec/quant/equalise.h"
#include "exec/quant/sharing.h"

static const char *const nets[] = {"cnn",    "resnet-v1-8", "mobilenetv2",    "resnet-v2-29",
                                   "unet:4", "densenet121", "amoebanetd:3,32"};
enum { N_NETS = sizeof nets / sizeof *nets };

static hp_constants *open_constants(const hp_graph *g) {
    hp_error err = {0};
    hp_constants *c = NULL;
    const hp_constants_options o = {.graph = g, .seed = 5};
    if (hp_constants_open(&o, &c, &err) != HP_OK) fail_msg("%s", err.text);
    return c;
}

static hp_filter filter(hp_constants *c, int layer, bool quantised) {
    hp_error err = {0};
    hp_filter f;
    const hp_graph *g = hp_constants_graph(c);
    if (hp_constants_filter(c, layer, 0, g->tensor[g->layer[layer].out].c, quantised, &f, &err) != HP_OK)
        fail_msg("%s", err.text);
    return f;
}

/* --- shared quantisation --- */

static bool wants(const hp_graph *g, int t) {
    return hp_tensor_wants_qparam(g, t);
}

/* Tensors share qparams exactly where bytes pass on without arithmetic. The groups are the connected
 * components of the graph of passing layers, found here by spreading labels. */
/* Does the layer only pass on values of its inputs? A concatenation that scales them does not. */
static bool passes(const hp_layer *l) {
    return (l->op == HP_CONCAT && l->n_param == 0 && !hp_layer_has_act(l)) || l->op == HP_MAXPOOL ||
           l->op == HP_PAD;
}

static void sharing_is_the_components_of_passing_layers(void **state) {
    (void)state;
    for (int k = 0; k < N_NETS; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = source_graph(a, nets[k], 32, HP_PREC_INT8);
        const int32_t *root = hp_qparam_groups(a, g);
        int32_t *label = HP_NEW(a, int32_t, g->n_tensor);
        for (int t = 0; t < g->n_tensor; t++) label[t] = t;
        for (bool any = true; any;) {
            any = false;
            for (int l = 0; l < g->n_layer; l++) {
                const hp_layer *y = &g->layer[l];
                if (!passes(y)) continue;
                for (int i = 0; i < y->n_in; i++) {
                    int32_t *p = &label[y->in[i]], *q = &label[y->out];
                    if (!wants(g, y->in[i]) || !wants(g, y->out) || *p == *q) continue;
                    *p = *q = *p < *q ? *p : *q;
                    any = true;
                }
            }
        }
        for (int t = 0; t < g->n_tensor; t++) assert_int_equal(root[t], label[t]);
        hp_arena_free(a);
    }
}

static void shared_tensors_get_the_union_of_what_is_computed(void **state) {
    (void)state;
    for (int k = 0; k < N_NETS; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = source_graph(a, nets[k], 32, HP_PREC_INT8);
        const int32_t *root = hp_qparam_groups(a, g);
        hp_constants *c = open_constants(g);
        hp_range *range = HP_NEW(a, hp_range, g->n_tensor);
        for (int t = 0; t < g->n_tensor; t++)
            range[t] = (hp_range){t % 3 ? -hp_rng_uniform(1, 0, (uint64_t)t) : 0,
                                  5 * hp_rng_uniform(1, 1, (uint64_t)t)};
        hp_qparams_unify(c, range);
        assert_true(hp_constants_calibrated(c));
        for (int t = 0; t < g->n_tensor; t++) {
            if (!wants(g, t)) continue;
            double lo = 0, hi = 0;
            for (int u = 0; u < g->n_tensor; u++) {
                if (!wants(g, u) || root[u] != root[t] || passes(&g->layer[g->tensor[u].producer])) continue;
                lo = fmin(lo, range[u].lo);
                hi = fmax(hi, range[u].hi);
            }
            const hp_qparam q = hp_constants_qparam(c, t);
            assert_true(fabs((double)q.scale * 255 - (hi - lo)) < 1e-5);
            assert_int_equal(q.zero, lrint(-lo / (hi - lo) * 255));
        }
        hp_constants_close(c);
        hp_arena_free(a);
    }
}

/* Every tensor of the int8 graph corresponds to one of the float graph with the same shape and producer. */
static void counterparts_have_the_same_maker(void **state) {
    (void)state;
    hp_error err = {0};
    for (int k = 0; k < N_NETS; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *q = source_graph(a, nets[k], 32, HP_PREC_INT8), *r = source_graph(a, nets[k], 32, 0);
        int32_t *of = NULL;
        assert_int_equal(hp_float_counterparts(a, q, r, &of, &err), HP_OK);
        for (int t = 0; t < q->n_tensor; t++) {
            const hp_tensor *x = &q->tensor[t], *y = &r->tensor[of[t]];
            assert_true(x->h == y->h && x->w == y->w && x->c == y->c);
            const hp_layer *l = &q->layer[x->producer];
            if (l->op != HP_QUANT && l->op != HP_DEQUANT)
                assert_string_equal(l->name, r->layer[y->producer].name);
            else
                assert_int_equal(of[t], of[l->in[0]]);
        }
        const hp_graph *other = source_graph(a, nets[(k + 1) % N_NETS], 32, 0);
        assert_int_equal(hp_float_counterparts(a, q, other, &of, &err), HP_EINTERNAL);
        hp_arena_free(a);
    }
}

/* --- bias correction --- */

/* Mean of a layer's output for constant inputs `mean`, without padding: the oracle of both sides. */
static double mean_output(const hp_graph *g, int layer, const float *w, int64_t o, const double *mean) {
    const hp_layer *l = &g->layer[layer];
    const hp_param *p = &g->param[l->param[0]];
    const int64_t k = p->n_dim == 4 ? (int64_t)p->dim[2] * p->dim[3] : 1;
    const int in_c = g->tensor[l->in[0]].c, out_c = g->tensor[l->out].c;
    const int groups = l->op == HP_CONV ? l->groups : 1;
    double sum = 0;
    for (int64_t e = 0; e < p->count; e++) {
        const int64_t major = e / k / p->dim[1], minor = e / k % p->dim[1];
        const int64_t to = l->op == HP_CONVT ? minor : major;
        const int64_t from = l->op == HP_CONVT ? major : to / (out_c / groups) * (in_c / groups) + minor;
        if (to == o) sum += (double)w[e] * mean[from];
    }
    return sum;
}

static void corrected_layer_keeps_its_mean(hp_arena *a, hp_constants *c, int layer) {
    const hp_graph *g = hp_constants_graph(c);
    const hp_layer *l = &g->layer[layer];
    const int in_c = g->tensor[l->in[0]].c, out_c = g->tensor[l->out].c;
    const int64_t n = g->param[l->param[0]].count;
    const double pixel = l->in[0] == 0 ? 1 / 127.5 : 1;
    double *mean = HP_NEW(a, double, in_c), largest = 0;
    float *w = HP_NEW(a, float, 2 * n), *r = w + n, *bias = HP_NEW(a, float, out_c);
    for (int i = 0; i < in_c; i++) mean[i] = hp_rng_normal(2, (uint64_t)layer, (uint64_t)i);
    hp_filter f = filter(c, layer, false);
    memcpy(w, f.weight, (size_t)n * sizeof *w);
    if (f.bias) memcpy(bias, f.bias, (size_t)out_c * sizeof *bias);
    f = filter(c, layer, true);
    const hp_weight_walk walk = hp_weight_walk_of(g, layer);
    for (int64_t e = 0; e < n; e++)
        r[e] = (float)((double)f.weight_scale[hp_weight_ends_of(&walk, e / walk.length).out] * f.weight8[e] /
                       pixel);
    hp_error err = {0};
    if (hp_bias_correct(c, layer, mean, &err) != HP_OK) fail_msg("%s", err.text);
    f = filter(c, layer, true);
    for (int o = 0; o < out_c; o += 1 + out_c / 7) {
        const double real = mean_output(g, layer, w, o, mean) + (double)bias[o];
        const double rounded = mean_output(g, layer, r, o, mean);
        if (fabs(rounded + (double)f.bias[o] - real) > 1e-4 * (1 + fabs(real)))
            fail_msg("%s channel %d: %g, not %g", l->name, o, rounded + (double)f.bias[o], real);
        largest = fmax(largest, fabs(rounded + (double)bias[o] - real));
    }
    assert_true(largest > 1e-6); /* there was something to correct */
}

static void correction_restores_the_mean(void **state) {
    (void)state;
    static const char *const some[] = {"cnn", "resnet-v1-8", "unet:4", "mobilenetv2", "vit:2,24,3,8"};
    for (int k = 0; k < 5; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = source_graph(a, some[k], 32, HP_PREC_INT8);
        hp_constants *c = open_constants(g);
        for (int l = 0, seen = 0; l < g->n_layer && seen < 12; l++)
            if (hp_layer_weights8(g, l)) corrected_layer_keeps_its_mean(a, c, l), seen++;
        hp_constants_close(c);
        hp_arena_free(a);
    }
}

/* --- equalisation --- */

/* A chain dense - depthwise - dense, as in MobileNetV2. */
static hp_graph *chain(hp_arena *a, int act) {
    hp_error err;
    hp_builder b = hp_builder_start(a, "chain", 8, 8, 4, &err);
    int x = hp_build_conv(&b, 0, "a", 6, (hp_window){3, 1, 1, 1, true});
    if (act != HP_ACT_NONE) x = hp_build_act(&b, x, "ra", act);
    x = hp_build_conv(&b, x, "b", 6, (hp_window){3, 1, 1, 6, true});
    if (act != HP_ACT_NONE) x = hp_build_act(&b, x, "rb", act);
    x = hp_build_conv(&b, x, "c", 5, (hp_window){1, 1, 0, 1, false});
    hp_build_linear(&b, hp_build_adaptpool(&b, x, "p", 1, 1), "fc", 4);
    hp_graph *g = NULL, *d = NULL;
    if (hp_builder_finish(&b, &g) != HP_OK) fail_msg("%s", err.text);
    const hp_deploy_options o = {.prec = HP_PREC_FP32};
    if (hp_graph_deploy(a, g, &o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

static double product(const hp_factors *f, int first, int second, int channel) {
    return (double)f->out[first][channel] * (double)f->in[second][channel];
}

/* Largest |w| of the weights that read a channel, relative to their row's largest. */
static double column(hp_constants *c, int layer, int channel) {
    const hp_graph *g = hp_constants_graph(c);
    const hp_param *p = &g->param[g->layer[layer].param[0]];
    const hp_filter f = filter(c, layer, false);
    const int64_t k = (int64_t)p->dim[2] * p->dim[3];
    double most = 0;
    for (int o = 0; o < p->dim[0]; o++) {
        double row = 0, here = 0;
        for (int i = 0; i < p->dim[1]; i++)
            for (int64_t e = 0; e < k; e++) {
                const double w = fabs((double)f.weight[(o * p->dim[1] + i) * k + e]);
                row = fmax(row, w);
                if (i == channel) here = fmax(here, w);
            }
        most = fmax(most, here / row);
    }
    return most;
}

static const double **seen_by(hp_arena *a, const hp_graph *g, const char *name, const double *seen,
                              const char *name2, const double *seen2) {
    const double **most = HP_NEW(a, const double *, g->n_tensor);
    most[g->layer[layer_named(g, name)].out] = seen;
    if (name2) most[g->layer[layer_named(g, name2)].out] = seen2;
    return most;
}

static void channels_come_closer_and_the_function_stays(void **state) {
    (void)state;
    static const double seen[6] = {0.1, 2, 0.7, 3, 1, 0.2}, seen2[6] = {5, 0.3, 1, 2, 0, 4};
    static const int acts[] = {HP_ACT_NONE, HP_ACT_RELU};
    for (int k = 0; k < 2; k++) {
        hp_arena *a = hp_arena_new();
        hp_error err = {0};
        const hp_graph *g = chain(a, acts[k]);
        const int first = layer_named(g, "a"), second = layer_named(g, "b"), third = layer_named(g, "c");
        hp_constants *c = open_constants(g), *plain = open_constants(g);
        hp_factors f;
        assert_int_equal(hp_equalise(a, c, seen_by(a, g, "a", seen, "b", seen2), &f, &err), HP_OK);
        double constant = 0;
        for (int i = 0; i < 6; i++) {
            assert_true(fabs(product(&f, first, second, i) - 1) < 1e-6);
            assert_true(fabs(product(&f, second, third, i) - 1) < 1e-6);
            /* before the depthwise layer all channels have the largest range */
            assert_true(fabs(seen[i] * (double)f.out[first][i] - 3) < 1e-5);
            if (seen2[i] == 0) { /* never seen */
                assert_true(f.out[second][i] == 1.0f);
                continue;
            }
            /* before the dense layer the ratio of ranges is the same for all channels: SmoothQuant's rule */
            const double by = (double)f.out[second][i], ratio = seen2[i] * by * by / column(plain, third, i);
            if (i > 0) assert_true(fabs(ratio / constant - 1) < 1e-5);
            constant = ratio;
        }
        double range = 0;
        for (int i = 0; i < 6; i++) range = fmax(range, seen2[i] * (double)f.out[second][i]);
        assert_true(fabs(range - 5) < 1e-5);
        assert_null(f.out[third]); /* read by a pool: no layer to pair with */
        assert_int_equal(hp_equalise(a, c, HP_NEW(a, const double *, g->n_tensor), &f, &err), HP_OK);
        assert_null(f.out[first]); /* nothing is known */
        hp_constants_close(plain);
        hp_constants_close(c);
        hp_arena_free(a);
    }
}

/* relu6(x) is homogeneous only below 6: channels seen near the bound, or never seen, stay unchanged;
 * others stay below it. */
static void bounded_channels_stay_below_their_bound(void **state) {
    (void)state;
    static const double seen[6] = {6, 5.9, 0.2, 0, 3, 1};
    hp_arena *a = hp_arena_new();
    hp_error err = {0};
    const hp_graph *g = chain(a, HP_ACT_RELU6);
    const int first = layer_named(g, "a"), second = layer_named(g, "b");
    hp_constants *c = open_constants(g);
    hp_factors f;
    assert_int_equal(hp_equalise(a, c, seen_by(a, g, "a", seen, NULL, NULL), &f, &err), HP_OK);
    for (int i = 0; i < 6; i++) {
        assert_true(fabs(product(&f, first, second, i) - 1) < 1e-6);
        if (seen[i] >= 4.5 || seen[i] == 0)
            assert_true(f.out[first][i] == 1.0f);
        else
            assert_true(fabs((double)f.out[first][i] * seen[i] - 4.5) < 1e-5);
    }
    assert_null(f.out[second]);
    hp_constants_close(c);
    hp_arena_free(a);
}

/* Factors reach another deployment by name; layers with an addition or two readers have none. */
static void factors_reach_the_quantised_network(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_error err = {0};
    const hp_graph *r = source_graph(a, "resnet-v1-8", 32, HP_PREC_FP32),
                   *q = source_graph(a, "resnet-v1-8", 32, HP_PREC_INT8);
    hp_constants *real = open_constants(r), *quantised = open_constants(q);
    hp_factors f;
    const double **most = HP_NEW(a, const double *, r->n_tensor);
    for (int t = 0; t < r->n_tensor; t++) {
        double *seen = HP_NEW(a, double, r->tensor[t].c);
        for (int i = 0; i < r->tensor[t].c; i++) seen[i] = 1 + i;
        most[t] = seen;
    }
    assert_int_equal(hp_equalise(a, real, most, &f, &err), HP_OK);
    hp_factors_apply(&f, r, quantised);
    int found = 0;
    for (int l = 0; l < r->n_layer; l++) {
        if (!f.in[l] && !f.out[l]) continue;
        found++;
        const int k = layer_named(q, r->layer[l].name);
        const int64_t n = r->param[r->layer[l].param[0]].count;
        const float *w =
            memcpy(HP_NEW(a, float, n), filter(real, l, false).weight, (size_t)n * sizeof(float));
        assert_memory_equal(filter(quantised, k, false).weight, w, (size_t)n * sizeof *w);
        if (f.out[l]) assert_int_equal(r->layer[l].n_in, 1);
    }
    assert_true(found >= 6); /* three blocks of two convolutions */
    hp_constants_close(real);
    hp_constants_close(quantised);
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharing_is_the_components_of_passing_layers),
        cmocka_unit_test(shared_tensors_get_the_union_of_what_is_computed),
        cmocka_unit_test(counterparts_have_the_same_maker),
        cmocka_unit_test(correction_restores_the_mean),
        cmocka_unit_test(channels_come_closer_and_the_function_stays),
        cmocka_unit_test(bounded_channels_stay_below_their_bound),
        cmocka_unit_test(factors_reach_the_quantised_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
