/* test_nets.c - built-in networks compared with published counts, and the laws that every graph obeys. */
#include "networks/graph/graph.h"
#include "plan/strategy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const all_nets[] = {"cnn",
                                       "resnet18",
                                       "resnet34",
                                       "resnet50",
                                       "resnet101",
                                       "resnet152",
                                       "vgg16",
                                       "vgg19",
                                       "mobilenetv2",
                                       "mobilenetv3",
                                       "mobilenetv3-small",
                                       "efficientnet-b0",
                                       "densenet121",
                                       "resnet-v1-8",
                                       "resnet-v2-11",
                                       "resnet-v2-110",
                                       "resnet-v2-20:131",
                                       "amoebanetd:3,32",
                                       "amoebanetd:6,53",
                                       "unet:4",
                                       "attention-unet:4",
                                       "convnext-t"};
enum { N_NETS = sizeof all_nets / sizeof all_nets[0] };

static hp_graph *build(hp_arena *a, const char *net, int h, int w, int classes) {
    hp_graph *g = NULL;
    hp_error err = {0};
    if (hp_net_build(a, net, h, w, classes, &g, &err) != HP_OK) fail_msg("%s: %s", net, err.text);
    return g;
}

static int64_t macs(const hp_graph *g) {
    int64_t sum = 0;
    for (int l = 0; l < g->n_layer; l++) sum += hp_layer_macs(g, l);
    return sum;
}

/* --- published numbers --- */

typedef struct published {
    const char *net;
    int side, classes;
    int64_t params;
    double gmacs, unit; /* precision of the published gmacs */
} published;

/* torchvision's model pages ("num_params"; "GFLOPS", which counts multiply-adds), 224 x 224, 1000 classes */
static const published torchvision_counts[] = {
    {"resnet18", 224, 1000, 11689512, 1.81, 0.01},
    {"resnet34", 224, 1000, 21797672, 3.66, 0.01},
    {"resnet50", 224, 1000, 25557032, 4.09, 0.01},
    {"resnet101", 224, 1000, 44549160, 7.80, 0.01},
    {"resnet152", 224, 1000, 60192808, 11.51, 0.01},
    {"vgg16", 224, 1000, 138357544, 15.47, 0.01},
    {"vgg19", 224, 1000, 143667240, 19.63, 0.01},
    {"mobilenetv2", 224, 1000, 3504872, 0.30, 0.01},
    {"mobilenetv3", 224, 1000, 5483032, 0.22, 0.01},
    {"mobilenetv3-small", 224, 1000, 2542856, 0.06, 0.01},
    {"efficientnet-b0", 224, 1000, 5288548, 0.39, 0.01},
    {"densenet121", 224, 1000, 7978856, 2.83, 0.01},
    {"convnext-t", 224, 1000, 28589128, 4.46, 0.01},
};

/* The CIFAR family with 10 classes, counted from MPI4DL's model definitions; 0: not given */
static const published cifar_counts[] = {
    {"resnet-v2-110", 256, 10, 7324202, 55.3, 0.1}, {"resnet-v2-110", 1024, 10, 9781802, 884, 1},
    {"resnet-v2-110", 2048, 10, 17646122, 3538, 1}, {"resnet-v2-110", 8192, 10, 174932522, 56602, 1},
    {"resnet-v2-101", 256, 10, 6715146, 50.6, 0.1}, {"resnet-v2-101", 2048, 10, 17037066, 3236, 1},
    {"resnet-v2-1001", 32, 10, 67459466, 0, 0},
};

/* AmoebaNet-D: torchgpipe's published counts are 319 and 81.5 million; with 10 classes as MPI4DL has them */
static const published amoebanet_counts[] = {
    {"amoebanetd:18,416", 1024, 1000, 319024120, 836.5, 0.1},
    {"amoebanetd:18,208", 224, 1000, 81505540, 0, 0},
    {"amoebanetd:18,256", 224, 1000, 122470120, 0, 0},
    {"amoebanetd:18,416", 64, 10, 312433690, 0, 0},
    {"amoebanetd:18,214", 1024, 10, 81242028, 217.4, 0.1},
};

static void assert_published(const published *row, size_t n) {
    for (size_t i = 0; i < n; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, row[i].net, row[i].side, row[i].side, row[i].classes);
        assert_int_equal(hp_graph_param_count(g), row[i].params);
        const double gmacs = (double)macs(g) / 1e9;
        if (row[i].unit > 0 &&
            (gmacs < row[i].gmacs - row[i].unit / 2 || gmacs > row[i].gmacs + row[i].unit / 2))
            fail_msg("%s: %.4f GMAC, published %.2f", row[i].net, gmacs, row[i].gmacs);
        hp_arena_free(a);
    }
}

static void torchvision_nets_have_the_published_counts(void **state) {
    (void)state;
    assert_published(torchvision_counts, sizeof torchvision_counts / sizeof torchvision_counts[0]);
}

static void cifar_family_has_the_published_counts(void **state) {
    (void)state;
    assert_published(cifar_counts, sizeof cifar_counts / sizeof cifar_counts[0]);
}

static void amoebanet_has_the_published_counts(void **state) {
    (void)state;
    assert_published(amoebanet_counts, sizeof amoebanet_counts / sizeof amoebanet_counts[0]);
}

/* Parameters of a 3x3 convolution without bias and its norm. */
static int64_t conv_norm(int64_t in, int64_t out) {
    return 9 * in * out + 2 * out;
}

/* One level: two convolutions on the way down, a transposed one and two more on the way up. */
static void unet_has_the_counts_of_its_formula(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    for (int64_t f = 1; f <= 64; f *= 4) {
        int64_t params = conv_norm(3, f) + conv_norm(f, f) + 5 * f + 5, pixels = 48 * 80;
        int64_t products = pixels * (9 * (3 * f + f * f) + 5 * f);
        for (int64_t c = f; c < 16 * f; c *= 2, pixels /= 4) {
            params += conv_norm(c, 2 * c) + conv_norm(2 * c, 2 * c) + 2 * c * c * 4 + c +
                      conv_norm(2 * c, c) + conv_norm(c, c);
            products += pixels * 9 * 3 * c * c + pixels / 4 * (9 * 6 * c * c + 4 * 2 * c * c);
        }
        const hp_graph *g = build(a, hp_arena_printf(a, "unet:%d", (int)f), 48, 80, 5);
        assert_int_equal(hp_graph_param_count(g), params);
        assert_int_equal(macs(g), products);
    }
    assert_int_equal(hp_graph_param_count(build(a, "unet", 32, 32, 2)),
                     hp_graph_param_count(build(a, "unet:64", 101, 67, 2)));
    hp_arena_free(a);
}

/* A convolution with bias, and its norm. */
static int64_t conv_bias_norm(int64_t in, int64_t out, int k) {
    return k * k * in * out + 3 * out;
}

/* A level on the way up: a convolution after up-sampling, the gate's three 1x1 convolutions, two
 * convolutions. With 64 filters and one class, 34.88 million, as published for AttU_Net. */
static void attention_unet_has_the_counts_of_its_formula(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    for (int64_t f = 2; f <= 64; f *= 2) {
        int64_t params = conv_bias_norm(3, f, 3) + conv_bias_norm(f, f, 3) + f + 1;
        for (int64_t c = f; c < 16 * f; c *= 2)
            params += conv_bias_norm(c, 2 * c, 3) + conv_bias_norm(2 * c, 2 * c, 3) +
                      conv_bias_norm(2 * c, c, 3) + 2 * conv_bias_norm(c, c / 2, 1) +
                      conv_bias_norm(c / 2, 1, 1) + conv_bias_norm(2 * c, c, 3) + conv_bias_norm(c, c, 3);
        const hp_graph *g = build(a, hp_arena_printf(a, "attention-unet:%d", (int)f), 48, 80, 1);
        assert_int_equal(hp_graph_param_count(g), params);
        if (f == 64) assert_int_equal(params, 34878573);
    }
    hp_arena_free(a);
}

static void cnn_has_the_counts_of_its_formula(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = build(a, "cnn", 28, 28, 10);
    const int64_t convs = 9 * 3 * 32 + 9 * 32 * 64, norms = 2 * 32 + 2 * 64;
    const int64_t fc1 = 7 * 7 * 64 * 128, fc2 = 128 * 10;
    assert_int_equal(hp_graph_param_count(g), convs + norms + fc1 + 128 + fc2 + 10);
    assert_int_equal(macs(g), 28 * 28 * 9 * 3 * 32 + 14 * 14 * 9 * 32 * 64 + fc1 + fc2);
    hp_arena_free(a);
}

/* Units are what the published layer lists of this family call layers: 3n+2. */
static void cifar_family_has_3n_plus_2_units(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    for (int n = 1; n < 9; n++) {
        assert_int_equal(build(a, hp_arena_printf(a, "resnet-v1-%d", 6 * n + 2), 32, 32, 10)->n_unit,
                         3 * n + 2);
        assert_int_equal(build(a, hp_arena_printf(a, "resnet-v2-%d", 9 * n + 2), 32, 32, 10)->n_unit,
                         3 * n + 2);
    }
    hp_arena_free(a);
}

/* Cells, three layers of stem (the first with the image) and the classifier. */
static void amoebanet_has_l_plus_6_units(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    for (int l = 3; l <= 18; l += 3)
        assert_int_equal(build(a, hp_arena_printf(a, "amoebanetd:%d,16", l), 32, 32, 10)->n_unit, l + 6);
    hp_arena_free(a);
}

/* Every reduction halves the map, rounding up, whatever its size. */
static void amoebanet_takes_every_image_size(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {2, 3}, {33, 64}, {101, 67}, {96, 160}, {127, 129}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, "amoebanetd:6,32", sizes[i][0], sizes[i][1], 10);
        int h = sizes[i][0], w = sizes[i][1];
        for (int u = 0; u + 1 < g->n_unit; u++) {
            const bool halves = u < 3 || u == 5 || u == 8; /* stem, cell2, cell4 */
            if (halves) h = (h + 1) / 2, w = (w + 1) / 2;
            const hp_tensor *out = &g->tensor[g->layer[g->unit_first[u + 1] - 1].out];
            assert_int_equal(out->h, h);
            assert_int_equal(out->w, w);
        }
        hp_arena_free(a);
    }
}

/* --- laws of every graph --- */

static void assert_topological(const hp_graph *g) {
    assert_int_equal(g->layer[0].op, HP_INPUT);
    assert_int_equal(g->n_tensor, g->n_layer);
    for (int l = 0; l < g->n_layer; l++) {
        const hp_layer *layer = &g->layer[l];
        assert_int_equal(g->tensor[layer->out].producer, l);
        for (int i = 0; i < layer->n_in; i++) assert_true(g->tensor[layer->in[i]].producer < l);
        for (int i = 0; i < layer->n_param; i++) assert_int_equal(g->param[layer->param[i]].layer, l);
        const int last = hp_graph_last_use(g, layer->out);
        assert_true(last > l); /* nothing is computed needlessly */
        if (l == g->n_layer - 1) assert_int_equal(last, g->n_layer);
    }
    const hp_tensor *logits = &g->tensor[g->layer[g->n_layer - 1].out];
    const bool pixels = strstr(g->net, "unet") != NULL; /* a label for each */
    assert_int_equal(logits->h, pixels ? g->image_h : 1);
    assert_int_equal(logits->w, pixels ? g->image_w : 1);
    assert_int_equal(logits->c, g->classes);
}

/* Number of tensors that cross into a unit, which a cut there sends. Chains of units have one. AmoebaNet's
 * cells pass on their input, which for the first is the same tensor; the classifier reads one. U-Net's skips
 * accumulate on the way down, two units per level, and are consumed on the way back. */
static int crossings(const hp_graph *g, int unit) {
    if (unit == 0) return 0;
    if (strncmp(g->net, "amoebanetd", 10) == 0) return unit > 1 && unit < g->n_unit - 1 ? 2 : 1;
    if (strstr(g->net, "unet")) return unit < g->n_unit / 2 + 1 ? (unit + 1) / 2 : (g->n_unit + 1 - unit) / 2;
    return 1;
}

static void assert_units(const hp_graph *g) {
    assert_int_equal(g->unit_first[0], 0);
    assert_int_equal(g->unit_first[g->n_unit], g->n_layer);
    for (int u = 0; u < g->n_unit; u++) {
        const int first = g->unit_first[u];
        assert_true(first < g->unit_first[u + 1]);
        for (int l = first; l < g->unit_first[u + 1]; l++) assert_int_equal(g->layer[l].unit, u);
        int crossing = 0;
        for (int t = 0; t < g->n_tensor; t++)
            if (g->tensor[t].producer < first && hp_graph_last_use(g, t) >= first) crossing++;
        assert_int_equal(crossing, crossings(g, u));
    }
}

static int readers(const hp_graph *g, int tensor) {
    int n = 0;
    for (int l = 0; l < g->n_layer; l++)
        for (int i = 0; i < g->layer[l].n_in; i++) n += g->layer[l].in[i] == tensor;
    return n;
}

static void assert_fused(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++) {
        if (g->layer[l].op != HP_ACT && g->layer[l].op != HP_ADD) continue;
        for (int i = 0; i < g->layer[l].n_in; i++) {
            const hp_layer *from = &g->layer[g->tensor[g->layer[l].in[i]].producer];
            const bool alone = readers(g, from->out) == 1 && from->unit == g->layer[l].unit;
            assert_false(alone && !hp_act_reads_x(&g->layer[l]) && from->op == HP_BN &&
                         !hp_layer_has_act(from) && from->n_in == 1);
        }
    }
}

static void every_net_is_ordered_fused_and_cut_where_few_tensors_are_live(void **state) {
    (void)state;
    for (int i = 0; i < N_NETS; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, all_nets[i], 71, 96, 7);
        assert_topological(g);
        assert_units(g);
        assert_fused(g);
        hp_arena_free(a);
    }
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void parameter_names_are_unique_and_counts_are_products(void **state) {
    (void)state;
    for (int i = 0; i < N_NETS; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, all_nets[i], 64, 64, 7);
        const char **names = HP_NEW(a, const char *, g->n_param);
        for (int p = 0; p < g->n_param; p++) {
            int64_t product = 1;
            for (int d = 0; d < g->param[p].n_dim; d++) product *= g->param[p].dim[d];
            assert_int_equal(product, g->param[p].count);
            names[p] = g->param[p].name;
        }
        qsort(names, (size_t)g->n_param, sizeof *names, compare_names);
        for (int p = 1; p < g->n_param; p++) assert_string_not_equal(names[p - 1], names[p]);
        hp_arena_free(a);
    }
}

static void text_is_equal_exactly_for_equal_structure(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const char *text = hp_graph_text(a, build(a, "resnet18", 64, 64, 10));
    assert_string_equal(text, hp_graph_text(a, build(a, "resnet18", 64, 64, 10)));
    assert_string_not_equal(text, hp_graph_text(a, build(a, "resnet18", 64, 96, 10)));
    assert_string_not_equal(text, hp_graph_text(a, build(a, "resnet18", 64, 64, 11)));
    assert_string_not_equal(text, hp_graph_text(a, build(a, "resnet34", 64, 64, 10)));
    hp_arena_free(a);
}

static void smallest_image_named_in_the_error_works_and_one_less_does_not(void **state) {
    (void)state;
    for (int i = 0; i < N_NETS; i++) {
        hp_arena *a = hp_arena_new();
        hp_graph *g = NULL;
        hp_error err = {0};
        if (hp_net_build(a, all_nets[i], 1, 300, 10, &g, &err) != HP_OK) {
            assert_int_equal(err.code, HP_EPLAN);
            const char *at = strstr(err.text, "works is ");
            assert_non_null(at);
            const int side = atoi(at + strlen("works is "));
            assert_int_equal(hp_net_build(a, all_nets[i], side, side, 10, &g, NULL), HP_OK);
            assert_int_equal(hp_net_build(a, all_nets[i], side - 1, 300, 10, &g, NULL), HP_EPLAN);
            assert_int_equal(hp_net_build(a, all_nets[i], 300, side - 1, 10, &g, NULL), HP_EPLAN);
        }
        hp_arena_free(a);
    }
}

/* --- names --- */

/* Keys and sizes of torchvision's state dicts. */
static void parameters_have_torchvisions_names_and_sizes(void **state) {
    static const struct {
        const char *net, *name;
        int32_t dim[4];
    } known[] = {
        {"mobilenetv3", "features.0.0.weight", {16, 3, 3, 3}},
        {"mobilenetv3", "features.1.block.0.0.weight", {16, 1, 3, 3}},
        {"mobilenetv3", "features.1.block.1.0.weight", {16, 16, 1, 1}},
        {"mobilenetv3", "features.4.block.2.fc1.weight", {24, 72, 1, 1}},
        {"mobilenetv3", "features.4.block.2.fc2.bias", {72}},
        {"mobilenetv3", "features.15.block.3.1.running_var", {160}},
        {"mobilenetv3", "features.16.0.weight", {960, 160, 1, 1}},
        {"mobilenetv3", "classifier.0.weight", {1280, 960}},
        {"mobilenetv3", "classifier.3.weight", {1000, 1280}},
        {"mobilenetv3-small", "features.1.block.1.fc1.weight", {8, 16, 1, 1}},
        {"mobilenetv3-small", "features.1.block.2.0.weight", {16, 16, 1, 1}},
        {"mobilenetv3-small", "features.12.0.weight", {576, 96, 1, 1}},
        {"mobilenetv3-small", "classifier.0.weight", {1024, 576}},
        {"efficientnet-b0", "features.1.0.block.1.fc1.weight", {8, 32, 1, 1}},
        {"efficientnet-b0", "features.2.0.block.0.0.weight", {96, 16, 1, 1}},
        {"efficientnet-b0", "features.2.0.block.2.fc1.weight", {4, 96, 1, 1}},
        {"efficientnet-b0", "features.7.0.block.3.0.weight", {320, 1152, 1, 1}},
        {"efficientnet-b0", "features.8.0.weight", {1280, 320, 1, 1}},
        {"efficientnet-b0", "classifier.1.weight", {1000, 1280}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, known[i].net, 224, 224, 1000);
        int found = 0;
        for (int p = 0; p < g->n_param; p++) {
            if (strcmp(g->param[p].name, known[i].name) != 0) continue;
            found++;
            for (int d = 0; d < g->param[p].n_dim; d++) assert_int_equal(g->param[p].dim[d], known[i].dim[d]);
        }
        if (found != 1) fail_msg("%s has %d parameters %s", known[i].net, found, known[i].name);
        hp_arena_free(a);
    }
}

/* They can be trained, as all built-in networks. */
static void every_net_trains(void **state) {
    (void)state;
    for (int i = 0; i < N_NETS; i++) {
        hp_arena *a = hp_arena_new();
        assert_true(hp_graph_trains(build(a, all_nets[i], 64, 64, 7), NULL));
        hp_arena_free(a);
    }
}

typedef struct refused {
    const char *net;
    int side, classes;
    hp_status status;
    const char *message;
} refused;

static void wrong_requests_are_refused_with_the_fix(void **state) {
    (void)state;
    static const refused rows[] = {
        {"resnet19", 64, 10, HP_EUSAGE, "known are cnn"},
        {"", 64, 10, HP_EUSAGE, "mobilenetv2"},
        {"resnet18 ", 64, 10, HP_EUSAGE, "unknown"},
        {"resnet-v1-21", 64, 10, HP_EUSAGE, "resnet-v1-20"},
        {"resnet-v1-2", 64, 10, HP_EUSAGE, "resnet-v1-8"},
        {"resnet-v2-1000", 64, 10, HP_EUSAGE, "resnet-v2-992"},
        {"resnet-v2-", 64, 10, HP_EUSAGE, "depth"},
        {"resnet-v2-+20", 64, 10, HP_EUSAGE, "depth"},
        {"resnet-v2-99999999999999999999", 64, 10, HP_EUSAGE, "depth"},
        {"resnet-v2-020", 64, 10, HP_EUSAGE, "zero"},
        {"resnet-v2-20:313", 64, 10, HP_EUSAGE, "resnet-v2-N:131"},
        {"resnet-v1-20:131", 64, 10, HP_EUSAGE, "resnet-v1-N"},
        {"amoebanetd", 64, 10, HP_EUSAGE, "amoebanetd:18,208"},
        {"amoebanetd:18", 64, 10, HP_EUSAGE, "amoebanetd:18,208"},
        {"amoebanetd:7,208", 64, 10, HP_EUSAGE, "amoebanetd:6,208"},
        {"amoebanetd:0,208", 64, 10, HP_EUSAGE, "layers"},
        {"amoebanetd:6,7", 64, 10, HP_EUSAGE, "filters"},
        {"amoebanetd:6,16,2", 64, 10, HP_EUSAGE, "unexpected"},
        {"amoebanetd18", 64, 10, HP_EUSAGE, "unknown"},
        {"unet:", 64, 10, HP_EUSAGE, "filters"},
        {"unet:8:2", 64, 10, HP_EUSAGE, "unexpected"},
        {"unet", 15, 10, HP_EPLAN, "16x16"},
        {"moe-gpt:1", 64, 10, HP_EUNAVAIL, "this version"},
        {"resnet18", 0, 10, HP_EUSAGE, "image"},
        {"resnet18", 1 << 30, 10, HP_EUSAGE, "image"},
        {"resnet18", 64, 0, HP_EUSAGE, "classes"},
        {"resnet-v2-20", 100000, 10, HP_EPLAN, "smaller image"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hp_arena *a = hp_arena_new();
        hp_graph *g = NULL;
        hp_error err = {0};
        const int side = rows[i].side;
        assert_int_equal(hp_net_build(a, rows[i].net, side, side, rows[i].classes, &g, &err), rows[i].status);
        if (!strstr(err.text, rows[i].message)) fail_msg("'%s' is not in '%s'", rows[i].message, err.text);
        hp_arena_free(a);
    }
}

static void default_classes_are_imagenets_or_cifars(void **state) {
    (void)state;
    assert_int_equal(hp_net_default_classes("resnet101"), 1000);
    assert_int_equal(hp_net_default_classes("cnn"), 10);
    assert_int_equal(hp_net_default_classes("resnet-v1-20"), 10);
    assert_int_equal(hp_net_default_classes("resnet-v2-110"), 10);
    assert_int_equal(hp_net_default_classes("amoebanetd:18,208"), 1000);
    assert_int_equal(hp_net_default_classes("unet:8"), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torchvision_nets_have_the_published_counts),
        cmocka_unit_test(parameters_have_torchvisions_names_and_sizes),
        cmocka_unit_test(every_net_trains),
        cmocka_unit_test(cifar_family_has_the_published_counts),
        cmocka_unit_test(amoebanet_has_the_published_counts),
        cmocka_unit_test(unet_has_the_counts_of_its_formula),
        cmocka_unit_test(attention_unet_has_the_counts_of_its_formula),
        cmocka_unit_test(amoebanet_has_l_plus_6_units),
        cmocka_unit_test(amoebanet_takes_every_image_size),
        cmocka_unit_test(cnn_has_the_counts_of_its_formula),
        cmocka_unit_test(cifar_family_has_3n_plus_2_units),
        cmocka_unit_test(every_net_is_ordered_fused_and_cut_where_few_tensors_are_live),
        cmocka_unit_test(parameter_names_are_unique_and_counts_are_products),
        cmocka_unit_test(text_is_equal_exactly_for_equal_structure),
        cmocka_unit_test(smallest_image_named_in_the_error_works_and_one_less_does_not),
        cmocka_unit_test(wrong_requests_are_refused_with_the_fix),
        cmocka_unit_test(default_classes_are_imagenets_or_cifars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
