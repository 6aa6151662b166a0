/* test_quantised.c - a quantised file holds what it was written from, bit for bit; files that do not fit or
 * are broken are refused. */
#include <math.h>
#include <string.h>

#include "tests/support/exec/source_weights.h"
#include "exec/data/weights/quantised.h"
#include "networks/nets/net_act.h"
#include "tests/support/plan/data_files.h"

static const hp_quantised_info info = {.net = "some net",
                                       .observer = "mse",
                                       .images = 300,
                                       .n_mean = 3,
                                       .mean = {0.485, 0.456, 0.406},
                                       .std = {0.229, 0.224, 0.225},
                                       .float_layers = "",
                                       .source = "0123456789abcdef"};

static hp_constants *open_as(const hp_graph *g, const char *path, int n_mean) {
    hp_error err = {0};
    hp_constants *c = NULL;
    hp_constants_options o = {.graph = g, .path = path, .seed = 3, .n_mean = n_mean};
    memcpy(o.mean, info.mean, sizeof o.mean);
    memcpy(o.std, info.std, sizeof o.std);
    if (hp_constants_open(&o, &c, &err) != HP_OK) fail_msg("%s", err.text);
    return c;
}

/* Drawn weights, and some quantisation of every tensor that needs one. */
static hp_constants *calibrated(const hp_graph *g) {
    hp_constants *c = open_as(g, NULL, 3);
    for (int t = 0; t < g->n_tensor; t++) {
        if (!hp_tensor_wants_qparam(g, t)) continue;
        assert_false(hp_constants_calibrated(c));
        hp_constants_set_qparam(c, t, (hp_qparam){0.01f * (float)(t + 1) / 3, (t * 37) % 256});
    }
    assert_true(hp_constants_calibrated(c));
    return c;
}

static const char *write_file(hp_constants *c, const char *name) {
    hp_error err = {0};
    const char *path = scratch_path(name);
    if (hp_quantised_write(path, c, &info, &err) != HP_OK) fail_msg("%s", err.text);
    return path;
}

static void same_numbers(const void *a, const void *b, size_t bytes) {
    if (!a != !b) fail_msg("one is absent");
    if (a) assert_memory_equal(a, b, bytes);
}

static void same_layer(hp_constants *a, hp_constants *b, const hp_graph *g, int layer) {
    const bool q = hp_layer_weights8(g, layer);
    const int outs = g->tensor[g->layer[layer].out].c;
    const size_t n = (size_t)g->param[g->layer[layer].param[0]].count, o = (size_t)outs * sizeof(float);
    hp_filter x, y;
    hp_error err = {0};
    static const float zeros[4096];
    if (hp_constants_filter(a, layer, 0, outs, q, &x, &err) != HP_OK ||
        hp_constants_filter(b, layer, 0, outs, q, &y, &err) != HP_OK)
        fail_msg("%s", err.text);
    if (q && !x.bias) x.bias = zeros; /* the file has a bias beside 8-bit weights */
    same_numbers(x.weight, y.weight, n * sizeof(float));
    same_numbers(x.weight8, y.weight8, n);
    same_numbers(x.weight_scale, y.weight_scale, o);
    same_numbers(x.bias, y.bias, o);
}

static void same_param(hp_constants *a, hp_constants *b, const hp_graph *g, int param) {
    const int64_t n = g->param[param].count;
    float *x = calloc((size_t)n * 2, sizeof *x), *y = x + n;
    hp_error err = {0};
    if (hp_constants_param(a, param, HP_F32, x, &err) != HP_OK ||
        hp_constants_param(b, param, HP_F32, y, &err) != HP_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
    free(x);
}

static void files_hold_what_they_were_written_from(void **state) {
    (void)state;
    static const char *const nets[] = {"cnn",    "resnet-v1-8",  "mobilenetv2",     "resnet-v2-29",
                                       "unet:4", "vit:2,24,3,8", "gpt:2,32,4,16,64"};
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = source_graph(a, nets[k], 32, HP_PREC_INT8);
        hp_constants *from = calibrated(g);
        const char *path = write_file(from, "q.safetensors");
        hp_constants *to = open_as(g, path, 0);
        assert_true(hp_constants_calibrated(to));
        for (int t = 0; t < g->n_tensor; t++) {
            if (!hp_tensor_wants_qparam(g, t)) continue;
            const hp_qparam p = hp_constants_qparam(from, t), q = hp_constants_qparam(to, t);
            assert_memory_equal(&p, &q, sizeof p);
        }
        float scale[2][4], zero[2][4];
        hp_constants_pixels(from, scale[0], zero[0]);
        hp_constants_pixels(to, scale[1], zero[1]);
        assert_memory_equal(scale[0], scale[1], 3 * sizeof(float));
        assert_memory_equal(zero[0], zero[1], 3 * sizeof(float));
        for (int l = 0; l < g->n_layer; l++) {
            const hp_layer *layer = &g->layer[l];
            const bool kept = hp_layer_as_trained(layer);
            for (int i = 0; i < layer->n_param && kept; i++) same_param(from, to, g, layer->param[i]);
            if (layer->n_param && !kept) same_layer(from, to, g, l);
        }
        hp_constants_close(from);
        hp_constants_close(to);
        hp_arena_free(a);
    }
}

static hp_status info_read(hp_arena *a, const char *path, hp_quantised_info *read, hp_error *err) {
    hp_safetensors *st;
    HP_TRY(hp_safetensors_open(path, &st, err));
    const hp_status s = hp_quantised_info_of(a, path, st, read, err);
    hp_safetensors_close(st);
    return s;
}

static void metadata_come_back(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = source_graph(a, "cnn", 28, HP_PREC_INT8);
    hp_constants *c = calibrated(g);
    hp_quantised_info got;
    assert_int_equal(info_read(a, write_file(c, "q"), &got, NULL), HP_OK);
    assert_string_equal(got.net, info.net);
    assert_string_equal(got.observer, info.observer);
    assert_string_equal(got.float_layers, info.float_layers);
    assert_string_equal(got.source, info.source);
    assert_int_equal(got.images, info.images);
    assert_int_equal(got.n_mean, 3);
    assert_memory_equal(got.mean, info.mean, 3 * sizeof(double));
    assert_memory_equal(got.std, info.std, 3 * sizeof(double));
    hp_constants_close(c);
    hp_arena_free(a);
}

/* Another byte means another source; the same file, the same source. */
static void sources_are_told_apart(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    enum { N = 3 << 20 };
    unsigned char *bytes = calloc(N, 1);
    const char *first, *again, *other, *seed;
    assert_int_equal(hp_quantised_source(a, scratch_write("w", bytes, N), 0, &first, NULL), HP_OK);
    assert_int_equal(hp_quantised_source(a, scratch_write("v", bytes, N), 1, &again, NULL), HP_OK);
    bytes[N - 1] = 1;
    assert_int_equal(hp_quantised_source(a, scratch_write("w", bytes, N), 0, &other, NULL), HP_OK);
    assert_int_equal(hp_quantised_source(a, NULL, 17, &seed, NULL), HP_OK);
    assert_int_equal(hp_quantised_source(a, scratch_path("none"), 0, &seed, NULL), HP_EDATA);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    assert_string_equal(seed, "seed 17");
    free(bytes);
    hp_arena_free(a);
}

/* --- refusals --- */

static void refused(const hp_graph *g, const char *path, int n_mean, double shift, const char *word) {
    hp_constants_options o = {.graph = g, .path = path, .n_mean = n_mean};
    for (int i = 0; i < 3; i++) o.mean[i] = info.mean[i] + shift, o.std[i] = info.std[i];
    hp_error err = {0};
    hp_constants *c = NULL;
    assert_int_equal(hp_constants_open(&o, &c, &err), HP_EDATA);
    if (!strstr(err.text, word)) fail_msg("'%s' not in: %s", word, err.text);
}

static void other_networks_and_pixels_are_refused(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = source_graph(a, "cnn", 28, HP_PREC_INT8),
                   *f = source_graph(a, "cnn", 28, HP_PREC_FP32);
    hp_constants *c = calibrated(g);
    const char *path = write_file(c, "q");
    refused(source_graph(a, "resnet18", 32, HP_PREC_INT8), path, 0, 0, "conv1.weight_scale is 32, not 64");
    refused(f, path, 0, 0, "is I8, not F32");
    refused(g, path, 3, 0.01, "quantise again");
    hp_constants_close(open_as(g, path, 3));
    hp_constants_close(c);
    hp_arena_free(a);
}

/* A safetensors file with only these notes. */
static const char *noted(const hp_st_note *note, int n) {
    const char *path = scratch_path("noted");
    const hp_st_source none = {NULL, NULL};
    assert_int_equal(hp_safetensors_write_noted(path, note, n, NULL, 0, &none, NULL), HP_OK);
    return path;
}

static void bad_metadata_are_refused(void **state) {
    (void)state;
    static const hp_st_note good[] = {{"format", "hplan-quantised 1"},
                                      {"net", "cnn"},
                                      {"observer", "mse"},
                                      {"float_layers", ""},
                                      {"source", ""},
                                      {"images", "5"},
                                      {"mean", "0.5"},
                                      {"std", "0.25"}};
    enum { N = sizeof good / sizeof *good };
    static const struct {
        int i;
        const char *text;
    } bad[] = {{0, "hplan-quantised 2"},
               {0, "pt"},
               {5, "many"},
               {5, "-1"},
               {5, "5x"},
               {5, ""},
               {5, "1e99"},
               {6, ""},
               {6, "0.5,0.5"},
               {6, "1,2,3,4,5"},
               {6, "nan"},
               {6, "0.5;"},
               {7, "0"},
               {7, "-1"},
               {7, "inf"},
               {7, "0.5,"},
               {5, "99999999999999999999"}};
    hp_arena *a = hp_arena_new();
    hp_quantised_info got;
    assert_int_equal(info_read(a, noted(good, N), &got, NULL), HP_OK);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        hp_st_note note[N];
        hp_error err = {0};
        memcpy(note, good, sizeof note);
        note[bad[k].i].text = bad[k].text;
        if (info_read(a, noted(note, N), &got, &err) != HP_EDATA)
            fail_msg("%s '%s' was taken", note[bad[k].i].key, bad[k].text);
        assert_non_null(strstr(err.text, note[bad[k].i].key));
    }
    for (int missing = 0; missing < N; missing++) {
        hp_st_note note[N];
        memcpy(note, good, sizeof note);
        note[missing] = note[N - 1];
        assert_int_equal(info_read(a, noted(note, N - (missing == N - 1)), &got, NULL), HP_EDATA);
    }
    hp_arena_free(a);
}

/* A network with all kinds of layers whose file is small enough to break at every byte. */
static hp_graph *tiny(hp_arena *a) {
    hp_error err;
    hp_builder b = hp_builder_start(a, "tiny", 6, 6, 2, &err);
    int x =
        hp_build_act(&b, hp_build_bn(&b, hp_build_conv(&b, 0, "c", 2, (hp_window){1, 1, 0, 1, false}), "n"),
                     "r", HP_ACT_RELU);
    x = hp_build_bn(&b, hp_build_maxpool(&b, x, "p", (hp_window){2, 2, 0, 0, false}), "m");
    x = hp_build_convt(&b, x, "t", 1, (hp_window){2, 2, 0, 1, true});
    x = hp_build_adaptpool(&b, x, "g", 1, 1);
    hp_build_linear(&b, x, "fc", 2);
    hp_graph *g = NULL, *d = NULL;
    if (hp_builder_finish(&b, &g) != HP_OK) fail_msg("%s", err.text);
    const hp_deploy_options o = {.prec = HP_PREC_INT8};
    if (hp_graph_deploy(a, g, &o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

/* A file is either refused with a reason or completely usable. */
static void used_or_refused(const hp_graph *g, const char *path) {
    const hp_constants_options o = {.graph = g, .path = path};
    hp_error err = {0};
    hp_constants *c = NULL;
    if (hp_constants_open(&o, &c, &err) != HP_OK) {
        assert_int_equal(err.code, HP_EDATA);
        assert_true(err.text[0] != '\0');
        return;
    }
    for (int t = 0; t < g->n_tensor; t++) {
        if (!hp_constants_calibrated(c) || !hp_tensor_wants_qparam(g, t)) continue;
        const hp_qparam q = hp_constants_qparam(c, t);
        assert_true(isnormal(q.scale) && q.scale > 0 && q.zero >= 0 && q.zero <= 255);
    }
    for (int l = 0; l < g->n_layer; l++) {
        hp_filter f;
        if (!g->layer[l].n_param) continue;
        const hp_status s =
            hp_constants_filter(c, l, 0, g->tensor[g->layer[l].out].c, hp_layer_weights8(g, l), &f, &err);
        assert_true(s == HP_OK || s == HP_EDATA);
        for (int64_t i = 0; s == HP_OK && f.weight8 && i < g->param[g->layer[l].param[0]].count; i++)
            assert_true(f.weight8[i] >= -127);
        for (int i = 0; s == HP_OK && f.weight_scale && i < g->tensor[g->layer[l].out].c; i++)
            assert_true(f.weight_scale[i] > 0);
    }
    hp_constants_close(c);
}

static void every_broken_byte_is_survived(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = tiny(a);
    hp_constants *c = calibrated(g);
    size_t n;
    unsigned char *bytes = scratch_read(write_file(c, "q"), &n);
    used_or_refused(g, scratch_path("q"));
    for (size_t i = 0; i < n; i++)
        for (int change = 0; change < 4; change++) {
            static const unsigned char flips[4] = {0xff, 0x01, 0x80, 0x10};
            bytes[i] ^= flips[change];
            used_or_refused(g, scratch_write("broken", bytes, n));
            bytes[i] ^= flips[change];
        }
    for (size_t i = 0; i < n; i++) used_or_refused(g, scratch_write("cut", bytes, i));
    free(bytes);
    hp_constants_close(c);
    hp_arena_free(a);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(files_hold_what_they_were_written_from),
        IN_SCRATCH(metadata_come_back),
        IN_SCRATCH(sources_are_told_apart),
        IN_SCRATCH(other_networks_and_pixels_are_refused),
        IN_SCRATCH(bad_metadata_are_refused),
        IN_SCRATCH(every_broken_byte_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
