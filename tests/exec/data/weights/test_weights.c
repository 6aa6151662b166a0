/* test_weights.c - initial weights against the closed forms of their schemes, independence of placement and
 * slices, and conversion to torchvision's names and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "exec/data/weights/safetensors.h"
#include "exec/data/weights/weights.h"
#include "base/rng.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/plan/law_cases.h"

static hp_graph *build(hp_arena *a, const char *net, int image, int classes) {
    hp_error err = {0};
    hp_graph *g = NULL;
    if (hp_net_build(a, net, image, image, classes, &g, &err) != HP_OK) fail_msg("%s", err.text);
    return g;
}

/* Buffers for the slices in the role's places, with a gap of `gap` elements before each. */
static hp_weights lay(hp_arena *a, const hp_graph *g, hp_role *role, int gap, hp_dtype dtype) {
    int64_t trained = 0, state = 0;
    for (int i = 0; i < g->n_param; i++) {
        int64_t *end = hp_param_trained(&g->param[i]) ? &trained : &state;
        if (!role->place[i].here) continue;
        role->place[i].offset = *end + gap;
        *end += gap + role->place[i].count;
    }
    role->trained_elems = trained;
    const size_t size = (size_t)hp_dtype_bytes(dtype);
    hp_weights w = {.graph = g,
                    .role = role,
                    .dtype = (int32_t)dtype,
                    .weights = hp_arena_alloc(a, (size_t)trained * size + 1),
                    .state = hp_arena_alloc(a, (size_t)state * size + 1)};
    memset(w.weights, 0xee, (size_t)trained * size);
    memset(w.state, 0xee, (size_t)state * size);
    return w;
}

/* A role that holds all of parameter i if i % parts == part. */
static hp_weights place(hp_arena *a, const hp_graph *g, int part, int parts, int gap, hp_dtype dtype) {
    hp_role *role = HP_NEW(a, hp_role, 1);
    role->place = HP_NEW(a, hp_param_place, g->n_param);
    for (int i = part; i < g->n_param; i += parts)
        role->place[i] = (hp_param_place){.here = HP_HERE | HP_START, .count = g->param[i].count};
    return lay(a, g, role, gap, dtype);
}

/* A role that holds a slice of each parameter, empty and whole ones among them. */
static hp_weights place_slices(hp_arena *a, const hp_graph *g, uint64_t seed, hp_dtype dtype) {
    hp_role *role = HP_NEW(a, hp_role, 1);
    role->place = HP_NEW(a, hp_param_place, g->n_param);
    for (int i = 0; i < g->n_param; i++) {
        const uint64_t n = (uint64_t)g->param[i].count;
        const uint64_t first =
            hp_rng_below(seed, (uint64_t)i, 0, 2) ? hp_rng_below(seed, (uint64_t)i, 1, n) : 0;
        const uint64_t left = n - first;
        const uint64_t count =
            hp_rng_below(seed, (uint64_t)i, 2, 3) ? hp_rng_below(seed, (uint64_t)i, 3, left + 1) : left;
        role->place[i] =
            (hp_param_place){.here = HP_HERE | HP_START, .first = (int64_t)first, .count = (int64_t)count};
    }
    return lay(a, g, role, (int)(seed % 3), dtype);
}

/* Element e of parameter i. */
static double at(const hp_weights *w, int i, int64_t e) {
    const void *from = hp_param_trained(&w->graph->param[i]) ? w->weights : w->state;
    const int64_t k = w->role->place[i].offset + e - w->role->place[i].first;
    return w->dtype == HP_F64 ? ((const double *)from)[k] : (double)((const float *)from)[k];
}

/* --- distributions --- */

/* Variance of each scheme, from torch.nn.init: normal with std sqrt(2 / fan) or 0.01; uniform on
 * +-1/sqrt(fan_in). */
static double variance_of(const hp_param *p) {
    const double field = p->n_dim == 4 ? (double)p->dim[2] * p->dim[3] : 1.0;
    switch (p->init) {
    case HP_INIT_KAIMING_FAN_OUT:
        return 2.0 / (p->dim[0] * field);
    case HP_INIT_KAIMING_FAN_IN:
        return 2.0 / (double)p->fan_in;
    case HP_INIT_NORMAL_001:
        return 1e-4;
    case HP_INIT_TORCH_DEFAULT:
        return 1.0 / (3.0 * (double)p->fan_in);
    default:
        return 0.0;
    }
}

/* The mean is within five standard errors. So is the variance; its relative error is sqrt((kurtosis - 1) /
 * n), with kurtosis 3 for a normal, 9/5 for a uniform distribution. */
static void moments_hold(const hp_weights *w, int i) {
    const hp_param *p = &w->graph->param[i];
    const double n = (double)p->count, variance = variance_of(p);
    const double kurtosis = p->init == HP_INIT_TORCH_DEFAULT ? 1.8 : 3.0;
    double sum = 0.0, square = 0.0, most = 0.0;
    for (int64_t e = 0; e < p->count; e++) {
        const double v = at(w, i, e);
        sum += v;
        square += v * v;
        most = fmax(most, fabs(v));
    }
    if (fabs(sum / n) > 5.0 * sqrt(variance / n)) fail_msg("%s: mean %g", p->name, sum / n);
    if (n >= 1000 && fabs(square / n / variance - 1.0) > 5.0 * sqrt((kurtosis - 1.0) / n))
        fail_msg("%s: variance %g, not %g", p->name, square / n, variance);
    if (p->init == HP_INIT_TORCH_DEFAULT) assert_true(most <= sqrt(3.0 * variance) * (1.0 + 1e-6));
}

static void initial_weights_have_the_moments_of_their_scheme(void **state) {
    (void)state;
    static const char *const nets[] = {"cnn", "resnet18", "mobilenetv2", "densenet121"};
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, nets[k], 64, 1000);
        const hp_weights w = place(a, g, 0, 1, 0, HP_F32);
        hp_weights_init(&w, 1);
        for (int i = 0; i < g->n_param; i++) {
            const hp_param *p = &g->param[i];
            const bool one = p->init == HP_INIT_ONE;
            if (variance_of(p) > 0.0)
                moments_hold(&w, i);
            else
                for (int64_t e = 0; e < p->count; e++) assert_true(at(&w, i, e) == (one ? 1.0 : 0.0));
        }
        hp_arena_free(a);
    }
}

static int by_value(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Kolmogorov: the largest distance between the sample's and the true distribution function, times
 * sqrt(n), exceeds 2.23 once in 10,000 times. Neighbours are uncorrelated, although each comes
 * from one random word. */
static void initial_weights_follow_the_whole_distribution_independently(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = build(a, "resnet18", 64, 1000);
    const hp_weights w = place(a, g, 0, 1, 0, HP_F32);
    const int64_t most = law_all("the distribution of the largest layers") ? INT64_MAX : 600000;
    hp_weights_init(&w, 5);
    for (int i = 0; i < g->n_param; i++) {
        const hp_param *p = &g->param[i];
        const int64_t n = p->count;
        if (variance_of(p) == 0.0 || n < 100000 || n > most) continue;
        const bool uniform = p->init == HP_INIT_TORCH_DEFAULT;
        double *x = malloc((size_t)n * sizeof *x), distance = 0.0, product[4] = {0};
        for (int64_t e = 0; e < n; e++) {
            x[e] = at(&w, i, e) / sqrt(variance_of(p));
            for (int lag = 1; lag < 4 && lag <= e; lag++) product[lag] += x[e] * x[e - lag];
        }
        for (int lag = 1; lag < 4; lag++) assert_true(fabs(product[lag]) < 5.0 * sqrt((double)n));
        qsort(x, (size_t)n, sizeof *x, by_value);
        for (int64_t e = 0; e < n; e++) {
            const double f = uniform ? 0.5 + x[e] / sqrt(12.0) : 0.5 * erfc(-x[e] / sqrt(2.0));
            distance =
                fmax(distance, fmax(fabs(f - (double)e / (double)n), fabs((double)(e + 1) / (double)n - f)));
        }
        assert_true(distance * sqrt((double)n) < 2.23);
        free(x);
    }
    hp_arena_free(a);
}

/* --- placement --- */

static void equal_where_held(const hp_weights *whole, const hp_weights *part) {
    for (int i = 0; i < whole->graph->n_param; i++) {
        const hp_param_place *held = &part->role->place[i];
        if (!held->here) continue;
        for (int64_t e = held->first; e < held->first + held->count; e++)
            assert_true(at(whole, i, e) == at(part, i, e));
    }
}

static void no_placement_and_no_dtype_changes_the_weights(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = build(a, "cnn", 28, 10);
    const hp_weights whole = place(a, g, 0, 1, 0, HP_F32);
    hp_weights_init(&whole, 9);
    for (int parts = 1; parts <= 4; parts++) {
        for (int part = 0; part < parts; part++) {
            for (int dtype = HP_F32; dtype <= HP_F64; dtype++) {
                const hp_weights w = place(a, g, part, parts, 3, (hp_dtype)dtype);
                hp_weights_init(&w, 9);
                equal_where_held(&whole, &w);
            }
        }
    }
    hp_arena_free(a);
}

static void slices_have_the_values_of_the_whole(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(20); seed++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, seed % 2 ? "cnn" : "resnet-v2-20", 32, 10);
        const hp_dtype dtype = seed % 4 < 2 ? HP_F32 : HP_F64;
        const hp_weights whole = place(a, g, 0, 1, 0, dtype), w = place_slices(a, g, seed, dtype);
        hp_weights_init(&whole, seed);
        hp_weights_init(&w, seed);
        equal_where_held(&whole, &w);
        hp_arena_free(a);
    }
}

static void gaps_are_zero(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = build(a, "cnn", 28, 10);
    const hp_weights w = place(a, g, 0, 1, 3, HP_F32);
    hp_weights_init(&w, 9);
    for (int i = 0; i < g->n_param; i++)
        for (int64_t e = -3; e < 0 && hp_param_trained(&g->param[i]); e++) assert_true(at(&w, i, e) == 0.0);
    hp_arena_free(a);
}

static void statistics_are(const hp_weights *w, double mean, double var) {
    for (int i = 0; i < w->graph->n_param; i++)
        for (int64_t e = 0; e < w->graph->param[i].count && !hp_param_trained(&w->graph->param[i]); e++)
            assert_true(at(w, i, e) == (w->graph->param[i].kind == HP_PARAM_BN_VAR ? var : mean));
}

static void unmark(const hp_weights *w) {
    for (int i = 0; i < w->graph->n_param; i++) w->role->place[i].here = HP_HERE | HP_HOME;
}

/* Training: on replica 0 of the marked roles; inference: everywhere. */
static void statistics_begin_where_their_start_is(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_weights w = place(a, build(a, "resnet-v2-20", 32, 10), 0, 1, 0, HP_F64);
    hp_weights_init(&w, 1);
    statistics_are(&w, 0, 1);
    w.replica = 1;
    hp_weights_init(&w, 1);
    statistics_are(&w, 0, 0);
    w.mode = HP_MODE_INFER;
    hp_weights_init(&w, 1);
    statistics_are(&w, 0, 1);
    unmark(&w);
    hp_weights_init(&w, 1);
    statistics_are(&w, 0, 1);
    w.mode = HP_MODE_TRAIN;
    w.replica = 0;
    hp_weights_init(&w, 1);
    statistics_are(&w, 0, 0);
    hp_arena_free(a);
}

static void seeds_and_parameters_draw_differently(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = build(a, "resnet18", 64, 10);
    const hp_weights w = place(a, g, 0, 1, 0, HP_F32), v = place(a, g, 0, 1, 0, HP_F32);
    hp_weights_init(&w, 1);
    hp_weights_init(&v, 2);
    double last = 0.0;
    for (int i = 0; i < g->n_param; i++) {
        if (variance_of(&g->param[i]) == 0.0) continue;
        const double first = at(&w, i, 0) / sqrt(variance_of(&g->param[i]));
        assert_true(at(&w, i, 0) != at(&v, i, 0));
        assert_true(first != last);
        last = first;
    }
    hp_arena_free(a);
}

/* --- files --- */

static const void *lend(void *self, int i, hp_error *err) {
    (void)err;
    const hp_weights *w = self;
    const unsigned char *from = hp_param_trained(&w->graph->param[i]) ? w->weights : w->state;
    return from + w->role->place[i].offset * hp_dtype_bytes((hp_dtype)w->dtype);
}

static const char *save(hp_weights *w, const char *name) {
    const hp_weights_source source = {lend, w};
    hp_error err = {0};
    const char *path = scratch_path(name);
    if (hp_weights_save(path, w->graph, (hp_dtype)w->dtype, &source, 17, &err) != HP_OK)
        fail_msg("%s", err.text);
    return path;
}

static void load(const char *path, const hp_weights *w) {
    hp_error err = {0};
    if (hp_weights_load(path, w, &err) != HP_OK) fail_msg("%s", err.text);
}

static void saved_weights_load_into_any_placement(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        static const char *const nets[] = {"cnn", "vit:2,24,3,14",
                                           "gpt:2,24,3,10,30"}; /* the latter have tensors in common */
        const int dtype = i % 2 ? HP_F64 : HP_F32;
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, nets[i / 2], 28, 10);
        hp_weights whole = place(a, g, 0, 1, 0, (hp_dtype)dtype);
        hp_weights_init(&whole, 3);
        if (dtype == HP_F64) ((double *)whole.weights)[0] = 1.0 / 3.0; /* float64 keeps every bit */
        const char *path = save(&whole, "w.safetensors");
        for (int part = 0; part < 3; part++) {
            const hp_weights w = place(a, g, part, 3, 2, (hp_dtype)dtype);
            load(path, &w);
            equal_where_held(&whole, &w);
        }
        hp_arena_free(a);
    }
}

static void files_load_slice_by_slice(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(20); seed++) {
        hp_arena *a = hp_arena_new();
        static const char *const nets[] = {"resnet-v2-20", "vit:2,24,3,8", "gpt:2,24,3,10,30"};
        const hp_graph *g = build(a, nets[seed % 3], 32, 10);
        hp_weights whole = place(a, g, 0, 1, 0, seed % 2 ? HP_F32 : HP_F64);
        const hp_weights w = place_slices(a, g, seed, seed % 4 < 2 ? HP_F32 : HP_F64);
        hp_weights_init(&whole, seed);
        load(save(&whole, "w.safetensors"), &w);
        equal_where_held(&whole, &w);
        hp_arena_free(a);
    }
}

static void loaded_statistics_begin_where_their_start_is(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = build(a, "resnet-v2-20", 32, 10);
    hp_weights whole = place(a, g, 0, 1, 0, HP_F32), w = place(a, g, 0, 1, 0, HP_F32);
    hp_weights_init(&whole, 1);
    for (int i = 0; i < g->n_param; i++)
        for (int64_t e = 0; e < g->param[i].count && !hp_param_trained(&g->param[i]); e++)
            ((float *)whole.state)[whole.role->place[i].offset + e] = 7;
    const char *path = save(&whole, "w.safetensors");
    load(path, &w);
    statistics_are(&w, 7, 7);
    w.replica = 1;
    load(path, &w);
    statistics_are(&w, 0, 0);
    w.replica = 0;
    unmark(&w);
    load(path, &w);
    statistics_are(&w, 0, 0);
    w.mode = HP_MODE_INFER;
    load(path, &w);
    statistics_are(&w, 7, 7);
    hp_arena_free(a);
}

/* The names are torchvision's (models/resnet.py): each parameter, and a counter for every batch norm. */
static void files_hold_what_a_strict_load_wants(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = build(a, "resnet18", 64, 1000);
    hp_weights w = place(a, g, 0, 1, 0, HP_F32);
    hp_weights_init(&w, 3);
    hp_safetensors *st;
    assert_int_equal(hp_safetensors_open(save(&w, "r.safetensors"), &st, NULL), HP_OK);
    assert_int_equal(hp_safetensors_count(st), 122); /* len(torchvision.models.resnet18().state_dict()) */
    const hp_st_tensor *conv = hp_safetensors_find(st, "layer2.0.downsample.0.weight");
    const hp_st_tensor *n = hp_safetensors_find(st, "layer4.1.bn2.num_batches_tracked");
    assert_non_null(conv);
    assert_non_null(n);
    assert_int_equal(conv->n_dim, 4);
    assert_int_equal(conv->dim[0] * 1000 + conv->dim[1], 128 * 1000 + 64);
    assert_int_equal(n->n_dim, 0);
    int64_t batches;
    memcpy(&batches, n->data, sizeof batches);
    assert_int_equal(batches, 17);
    hp_safetensors_close(st);
    hp_arena_free(a);
}

static void load_fails(const char *path, const hp_weights *w, const char *word, const char *fix) {
    hp_error err = {0};
    assert_int_equal(hp_weights_load(path, w, &err), HP_EDATA);
    if (!strstr(err.text, word) || !strstr(err.text, fix))
        fail_msg("'%s' and '%s' not in: %s", word, fix, err.text);
}

static void foreign_weights_are_refused_with_the_differences(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_weights cnn = place(a, build(a, "cnn", 28, 10), 0, 1, 0, HP_F32);
    hp_weights cnn7 = place(a, build(a, "cnn", 28, 7), 0, 1, 0, HP_F32);
    hp_weights r18 = place(a, build(a, "resnet18", 64, 10), 0, 1, 0, HP_F32);
    hp_weights r34 = place(a, build(a, "resnet34", 64, 10), 0, 1, 0, HP_F32);
    hp_weights_init(&cnn, 1);
    hp_weights_init(&r18, 1);
    hp_weights_init(&r34, 1);
    load_fails(save(&cnn, "c"), &cnn7, "is 10, not 7", "--classes");
    load_fails(save(&r18, "r"), &r34, "layer1.2.conv1.weight is missing", "--net");
    load_fails(save(&r34, "s"), &r18, "layer1.2.bn1.bias is not in the network", "--net");
    load_fails(save(&cnn, "c"), &r18, "in all", "resnet18 with 10 classes");
    load_fails(scratch_path("none"), &r18, "cannot open", "check the path");
    hp_arena_free(a);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial_weights_have_the_moments_of_their_scheme),
        cmocka_unit_test(initial_weights_follow_the_whole_distribution_independently),
        cmocka_unit_test(no_placement_and_no_dtype_changes_the_weights),
        cmocka_unit_test(slices_have_the_values_of_the_whole),
        cmocka_unit_test(gaps_are_zero),
        cmocka_unit_test(statistics_begin_where_their_start_is),
        cmocka_unit_test(seeds_and_parameters_draw_differently),
        IN_SCRATCH(saved_weights_load_into_any_placement),
        IN_SCRATCH(files_load_slice_by_slice),
        IN_SCRATCH(loaded_statistics_begin_where_their_start_is),
        IN_SCRATCH(files_hold_what_a_strict_load_wants),
        IN_SCRATCH(foreign_weights_are_refused_with_the_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
