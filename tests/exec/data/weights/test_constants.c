/* test_constants.c - folded weights against the formula, 8-bit weights against their definition, slices
 * against the whole, and refused files. */
#include <math.h>
#include <string.h>

#include "tests/support/exec/source_weights.h"
#include "exec/data/weights/constants.h"
#include "exec/data/weights/safetensors.h"
#include "tests/support/plan/data_files.h"

static hp_constants *open_constants(const hp_graph *g, const char *path) {
    hp_error err = {0};
    hp_constants *c = NULL;
    const hp_constants_options o = {.graph = g, .path = path, .seed = 7};
    if (hp_constants_open(&o, &c, &err) != HP_OK) fail_msg("%s", err.text);
    return c;
}

static hp_filter filter(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised) {
    hp_error err = {0};
    hp_filter f;
    if (hp_constants_filter(c, layer, first, outs, quantised, &f, &err) != HP_OK) fail_msg("%s", err.text);
    return f;
}

static void equal(double got, long double want, const char *what, int64_t at) {
    if (fabsl((long double)got - want) > 1e-7L * fabsl(want) + 1e-37L)
        fail_msg("%s %lld: %.9g, not %.9Lg", what, (long long)at, got, want);
}

/* Output channel of weight e: dimension 0, in transposed convolutions dimension 1. */
static int64_t channel_of(const hp_layer *l, const hp_param *w, int64_t e) {
    if (l->op != HP_CONVT) return e / (w->count / w->dim[0]);
    const int64_t per = w->count / w->dim[0] / w->dim[1], i = e / per / w->dim[1];
    const int64_t groups = l->groups > 1 ? l->groups : 1;
    return i / (w->dim[0] / groups) * w->dim[1] + e / per % w->dim[1];
}

/* gamma / sqrt(var + eps) of the layer's norm in channel o, and the shift; without a norm: 1 and the bias. */
static void terms(const source_weights *s, const hp_layer *l, int64_t o, long double *factor,
                  long double *bias) {
    const int32_t *n = l->op == HP_BN ? l->param : l->deployed.norm;
    *factor = 1;
    *bias = l->op != HP_BN && l->n_param > 1 ? (long double)s->value[l->param[1]][o] : 0;
    if (l->op != HP_BN && !l->deployed.n_norm) return;
    *factor = (long double)s->value[n[0]][o] / sqrtl((long double)s->value[n[3]][o] + (long double)l->eps);
    *bias = (long double)s->value[n[1]][o] + (*bias - (long double)s->value[n[2]][o]) * *factor;
}

static void layer_is_folded(const source_weights *s, hp_constants *c, int layer) {
    const hp_layer *l = &s->g->layer[layer];
    const hp_param *w = &s->g->param[l->param[0]];
    const int channels = s->g->tensor[l->out].c;
    const hp_filter f = filter(c, layer, 0, channels, false);
    assert_null(f.weight8);
    assert_true(!f.bias == (l->op != HP_BN && !l->deployed.n_norm && l->n_param < 2));
    long double factor, bias;
    for (int64_t e = 0; e < w->count; e++) {
        terms(s, l, channel_of(l, w, e), &factor, &bias);
        const long double own = l->op == HP_BN ? 1 : (long double)s->value[l->param[0]][e];
        equal((double)f.weight[e], own * factor, l->name, e);
    }
    for (int o = 0; o < channels && f.bias; o++) {
        terms(s, l, o, &factor, &bias);
        equal((double)f.bias[o], bias, l->name, o);
    }
}

/* Parameters of a layer that runs as trained are the source's. */
static void layer_is_as_trained(const source_weights *s, hp_constants *c, int layer) {
    const hp_layer *l = &s->g->layer[layer];
    for (int i = 0; i < l->n_param; i++) {
        const int64_t n = s->g->param[l->param[i]].count;
        double *wide = calloc((size_t)n, sizeof *wide);
        float *narrow = calloc((size_t)n, sizeof *narrow);
        hp_error err = {0};
        if (hp_constants_param(c, l->param[i], HP_F64, wide, &err) != HP_OK ||
            hp_constants_param(c, l->param[i], HP_F32, narrow, &err) != HP_OK)
            fail_msg("%s", err.text);
        for (int64_t e = 0; e < n; e++) {
            assert_true(wide[e] == s->value[l->param[i]][e]);
            assert_true(narrow[e] == (float)wide[e]);
        }
        free(wide);
        free(narrow);
    }
}

static void layer_is_right(const source_weights *s, hp_constants *c, int layer) {
    if (hp_layer_as_trained(&s->g->layer[layer]))
        layer_is_as_trained(s, c, layer);
    else if (s->g->layer[layer].n_param)
        layer_is_folded(s, c, layer);
}

static const char *const nets[] = {"cnn",    "resnet-v1-8",  "mobilenetv2",     "resnet-v2-29",
                                   "unet:4", "vit:2,24,3,8", "gpt:2,32,4,16,64"};
enum { N_NETS = sizeof nets / sizeof *nets };

static void norms_fold_by_the_formula(void **state) {
    (void)state;
    for (int k = 0; k < 2 * N_NETS; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = source_graph(a, nets[k / 2], 32, HP_PREC_FP32);
        source_weights s = source_draw(a, g, k % 2 ? HP_F64 : HP_F32);
        const char *path = scratch_path("w.safetensors");
        source_save(path, &s);
        hp_constants *c = open_constants(g, path);
        for (int l = 0; l < g->n_layer; l++) layer_is_right(&s, c, l);
        hp_constants_close(c);
        hp_arena_free(a);
    }
}

/* Drawn weights are those that training starts from: mean 0, variance 1, gamma 1. */
static void drawn_weights_are_the_initial_ones(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = source_graph(a, "resnet-v1-8", 32, HP_PREC_FP32);
    source_weights s = {.g = g, .value = HP_NEW(a, double *, g->n_param)};
    for (int i = 0; i < g->n_param; i++) {
        const int64_t n = g->param[i].count;
        float *drawn = HP_NEW(a, float, n);
        hp_param_draw(g, i, 7, 0, n, drawn);
        s.value[i] = HP_NEW(a, double, n);
        for (int64_t e = 0; e < n; e++) s.value[i][e] = (double)drawn[e];
        if (g->param[i].kind == HP_PARAM_BN_VAR) assert_true(drawn[0] == 1.0f);
        if (g->param[i].kind == HP_PARAM_BN_MEAN) assert_true(drawn[0] == 0.0f);
    }
    hp_constants *c = open_constants(g, NULL);
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].n_param) layer_is_folded(&s, c, l);
    hp_constants_close(c);
    hp_arena_free(a);
}

/* --- 8 bits --- */

static float *copy_of(hp_arena *a, const float *from, int64_t n) {
    float *to = HP_NEW(a, float, n);
    memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

/* Each channel's largest weight is +-127 times its scale; the others are on the nearest level. `pixel`: the
 * input that stands for real 1. */
static void channel_by_channel(const hp_graph *g, int layer, const float *w, const hp_filter *q,
                               double pixel) {
    const hp_layer *l = &g->layer[layer];
    const hp_param *p = &g->param[l->param[0]];
    int most[4096] = {0};
    for (int64_t e = 0; e < p->count; e++) {
        const int64_t o = channel_of(l, p, e);
        const double levels = (double)w[e] * pixel / (double)q->weight_scale[o];
        assert_true(fabs(levels - q->weight8[e]) <= 0.5 + 1e-4);
        most[o] = abs(q->weight8[e]) > most[o] ? abs(q->weight8[e]) : most[o];
    }
    for (int o = 0; o < g->tensor[l->out].c; o++) assert_int_equal(most[o], 127);
}

static void eight_bit_weights_are_the_nearest_levels(void **state) {
    (void)state;
    for (int k = 0; k < N_NETS; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = source_graph(a, nets[k], 32, HP_PREC_INT8);
        hp_constants *c = open_constants(g, NULL);
        for (int l = 0; l < g->n_layer; l++) {
            if (!g->layer[l].n_param || !hp_layer_weights8(g, l)) continue;
            const int64_t outs = g->tensor[g->layer[l].out].c;
            const float *w =
                copy_of(a, filter(c, l, 0, outs, false).weight, g->param[g->layer[l].param[0]].count);
            const hp_filter q = filter(c, l, 0, outs, true);
            assert_null(q.weight);
            channel_by_channel(g, l, w, &q, g->layer[l].in[0] == 0 ? 1 / 127.5 : 1); /* (x/255 - 0.5) / 0.5 */
        }
        hp_constants_close(c);
        hp_arena_free(a);
    }
}

/* Weights of 0, or so small that their scale would not be a float: bytes 0, scale 1. */
static void empty_channels_have_scale_one(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = source_graph(a, "cnn", 28, HP_PREC_INT8);
    source_weights s = source_draw(a, g, HP_F32);
    int layer = 0;
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_CONV) layer = l;
    const hp_layer *l = &g->layer[layer];
    const hp_param *w = &g->param[l->param[0]];
    const int64_t per = w->count / w->dim[0];
    for (int64_t e = 0; e < per; e++) {
        s.value[l->param[0]][e] = 0;
        s.value[l->param[0]][per + e] *= 1e-30;
    }
    source_save(scratch_path("w.safetensors"), &s);
    hp_constants *c = open_constants(g, scratch_path("w.safetensors"));
    const hp_filter f = filter(c, layer, 0, w->dim[0], true);
    for (int o = 0; o < 2; o++) assert_true(f.weight_scale[o] == 1.0f);
    for (int64_t e = 0; e < 2 * per; e++) assert_int_equal(f.weight8[e], 0);
    assert_true(f.weight_scale[2] < 1.0f);
    hp_constants_close(c);
    hp_arena_free(a);
}

/* --- ranges of channels --- */

static void slices_are_parts_of_the_whole(void **state) {
    (void)state;
    for (int k = 0; k < N_NETS; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = source_graph(a, nets[k], 32, HP_PREC_INT8);
        hp_constants *c = open_constants(g, NULL);
        for (int layer = 0; layer < g->n_layer; layer++) {
            const hp_layer *l = &g->layer[layer];
            if (!l->n_param || hp_layer_as_trained(l)) continue;
            const hp_param *w = &g->param[l->param[0]];
            const int outs = g->tensor[l->out].c,
                      first = (int)hp_rng_below(1, 0, (uint64_t)layer, (uint64_t)outs);
            const int n = 1 + (int)hp_rng_below(1, 1, (uint64_t)layer, (uint64_t)(outs - first));
            const bool q = hp_layer_weights8(g, layer);
            const size_t size = q ? 1 : sizeof(float);
            char *whole = hp_arena_alloc(a, (size_t)w->count * size);
            const hp_filter f = filter(c, layer, 0, outs, q);
            memcpy(whole, q ? (const void *)f.weight8 : f.weight, (size_t)w->count * size);
            const float *bias = f.bias ? copy_of(a, f.bias, outs) : NULL;
            const float *scale = q ? copy_of(a, f.weight_scale, outs) : NULL;
            const hp_filter part = filter(c, layer, first, n, q);
            const char *got = q ? (const char *)part.weight8 : (const char *)part.weight;
            const int lead = l->op == HP_CONVT ? w->dim[0] : 1;
            const size_t per = (size_t)(w->count / lead / outs) * size;
            for (int i = 0; i < lead; i++)
                assert_memory_equal(got + (size_t)(i * n) * per, whole + (size_t)(i * outs + first) * per,
                                    (size_t)n * per);
            if (bias) assert_memory_equal(part.bias, bias + first, (size_t)n * sizeof *bias);
            if (scale) assert_memory_equal(part.weight_scale, scale + first, (size_t)n * sizeof *scale);
        }
        hp_constants_close(c);
        hp_arena_free(a);
    }
}

/* Released memory is recovered. */
static void resting_changes_nothing(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = source_graph(a, "cnn", 28, HP_PREC_FP32);
    source_weights s = source_draw(a, g, HP_F32);
    source_save(scratch_path("w.safetensors"), &s);
    hp_constants *c = open_constants(g, scratch_path("w.safetensors"));
    for (int turn = 0; turn < 2; turn++) {
        for (int l = 0; l < g->n_layer; l++) layer_is_right(&s, c, l);
        hp_constants_release(c);
    }
    hp_constants_close(c);
    hp_arena_free(a);
}

/* --- changes --- */

/* out[o] w[o][i] in[i], out[o] b[o] + delta[o]; includes depthwise, grouped and linear layers. */
static void factors_multiply_channels(void **state) {
    (void)state;
    for (int k = 0; k < N_NETS; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = source_graph(a, nets[k], 32, HP_PREC_FP32);
        hp_constants *plain = open_constants(g, NULL), *changed = open_constants(g, NULL);
        for (int layer = 0; layer < g->n_layer; layer++) {
            const hp_layer *l = &g->layer[layer];
            if (l->op != HP_CONV && l->op != HP_CONVT && l->op != HP_LINEAR) continue;
            const hp_param *w = &g->param[l->param[0]];
            const int in_c = g->tensor[l->in[0]].c, out_c = g->tensor[l->out].c;
            float *in = HP_NEW(a, float, in_c), *out = HP_NEW(a, float, out_c),
                  *delta = HP_NEW(a, float, out_c);
            for (int i = 0; i < in_c; i++) in[i] = (float)(1 + i % 4);
            for (int i = 0; i < out_c; i++) out[i] = 1.0f / (float)(1 + i % 3), delta[i] = (float)i;
            hp_constants_set_factors(changed, layer, in, out);
            hp_constants_set_correction(changed, layer, delta);
            const hp_filter x = filter(plain, layer, 0, out_c, false),
                            y = filter(changed, layer, 0, out_c, false);
            const int groups = l->op == HP_CONV ? l->groups : 1;
            for (int64_t e = 0; e < w->count; e++) {
                const int64_t o = channel_of(l, w, e);
                int64_t i = e / (w->count / w->dim[0]); /* convt */
                if (l->op == HP_LINEAR) i = e % w->dim[1] / (w->dim[1] / in_c);
                if (l->op == HP_CONV)
                    i = o / (out_c / groups) * w->dim[1] + e / (w->count / w->dim[0] / w->dim[1]) % w->dim[1];
                equal((double)y.weight[e],
                      (long double)x.weight[e] * (long double)in[i] * (long double)out[o], l->name, e);
            }
            for (int o = 0; o < out_c; o++) {
                const long double b = x.bias ? (long double)x.bias[o] * (long double)out[o] : 0;
                if (fabsl((long double)y.bias[o] - b - o) > 1e-6L * (1 + o))
                    fail_msg("%s bias %d", l->name, o);
            }
        }
        hp_constants_close(plain);
        hp_constants_close(changed);
        hp_arena_free(a);
    }
}

/* --- pixels and refusals --- */

static void pixels_are_normalised(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = source_graph(a, "cnn", 28, HP_PREC_INT8);
    static const double mean[3] = {0.485, 0.456, 0.406}, std[3] = {0.229, 0.224, 0.225};
    for (int n = 0; n <= 3; n += n ? 2 : 1) {
        hp_constants_options o = {.graph = g, .n_mean = n};
        memcpy(o.mean, mean, sizeof mean);
        memcpy(o.std, std, sizeof std);
        hp_constants *c = NULL;
        assert_int_equal(hp_constants_open(&o, &c, NULL), HP_OK);
        float scale[4], zero[4];
        hp_constants_pixels(c, scale, zero);
        for (int i = 0; i < 3; i++)
            for (int q = 0; q <= 255; q += 51) {
                const double m = n ? mean[n == 1 ? 0 : i] : 0.5, d = n ? std[n == 1 ? 0 : i] : 0.5;
                const double real = (double)scale[i] * (q - (double)zero[i]), want = (q / 255.0 - m) / d;
                assert_true(fabs(real - want) < 1e-5);
            }
        hp_constants_close(c);
    }
    hp_arena_free(a);
}

static void refused(const hp_graph *g, const char *path, int layer, const char *word) {
    const hp_constants_options o = {.graph = g, .path = path};
    hp_error err = {0};
    hp_constants *c = NULL;
    hp_filter f;
    hp_status s = hp_constants_open(&o, &c, &err);
    if (s == HP_OK) s = hp_constants_filter(c, layer, 0, g->tensor[g->layer[layer].out].c, false, &f, &err);
    assert_int_equal(s, HP_EDATA);
    if (!strstr(err.text, word) || !strstr(err.text, path)) fail_msg("'%s' not in: %s", word, err.text);
    hp_constants_close(c);
}

static void foreign_and_broken_weights_are_refused(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *cnn = source_graph(a, "cnn", 28, HP_PREC_FP32);
    const hp_graph *r18 = source_graph(a, "resnet18", 32, HP_PREC_FP32);
    source_weights s = source_draw(a, cnn, HP_F32);
    const char *path = scratch_path("w.safetensors");
    source_save(path, &s);
    refused(r18, path, 1, "conv1.weight is 32x3x3x3, not 64x3x7x7");
    refused(cnn, scratch_path("none"), 1, "check the path");
    int layer = 0;
    for (int l = 0; l < cnn->n_layer; l++)
        if (cnn->layer[l].deployed.n_norm) layer = l;
    const int32_t *norm = cnn->layer[layer].deployed.norm;
    static const double bad[] = {NAN, -1.0, -1e-5, INFINITY};
    for (int i = 0; i < 4; i++) { /* a variance below -eps has no root, -eps no inverse */
        s.value[norm[3]][1] = bad[i] == -1e-5 ? -cnn->layer[layer].eps : bad[i];
        s.dtype = HP_F64;
        source_save(path, &s);
        if (bad[i] != (double)INFINITY) refused(cnn, path, layer, cnn->layer[layer].name);
    }
    hp_arena_free(a);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(norms_fold_by_the_formula),
        cmocka_unit_test(drawn_weights_are_the_initial_ones),
        cmocka_unit_test(eight_bit_weights_are_the_nearest_levels),
        IN_SCRATCH(empty_channels_have_scale_one),
        cmocka_unit_test(slices_are_parts_of_the_whole),
        IN_SCRATCH(resting_changes_nothing),
        cmocka_unit_test(factors_multiply_channels),
        cmocka_unit_test(pixels_are_normalised),
        IN_SCRATCH(foreign_and_broken_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
