/* test_kernels.c - library kernels on GPUs: measurements of a few shapes agree with the shipped rows, and
 * laws hold for any shape. */
#include "costmodels/gpu/gpu_attention.h"
#include "costmodels/gpu/gpu_kernel.h"
#include "costmodels/gpu/tiles.h"
#include "costmodels/models.h"
#include "base/rng.h"
#include "networks/graph/precision.h"
#include "networks/nets/nets.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/sim/search_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Microseconds of y (m x n) = x (m x k) w (k x n) in bf16, a sample of the measurements of
 * ai-dynamo/aiconfigurator (Apache-2.0, commit 095f58a51c4c, gemm of vLLM: torch.nn.functional.linear). */
static const struct {
    const char *class;
    double m, n, k, us;
} PRODUCTS[] = {{"a100-40", 128, 5120, 512, 8.807},
                {"a100-40", 192, 256, 7168, 11.22},
                {"a100-40", 2048, 1024, 3072, 72.29},
                {"a100-40", 48, 768, 3584, 9.453},
                {"a100-40", 512, 7168, 12288, 405.9},
                {"a100-40", 768, 128, 16384, 31.13},
                {"a100-40", 8, 2560, 16384, 56.76},
                {"a100-40", 8, 2560, 64, 3.229},
                {"a100-40", 8, 65536, 64, 9.197},
                {"a100-40", 96, 1024, 1024, 7.894},
                {"b200", 1024, 768, 128, 2.516},
                {"b200", 1537, 768, 2048, 6.637},
                {"b200", 193, 256, 65536, 18.37},
                {"b200", 193, 4096, 8192, 20.22},
                {"b200", 2304, 6144, 51200, 947.2},
                {"b200", 2305, 3072, 32, 4.93},
                {"b200", 3329, 2560, 16384, 166},
                {"b200", 4352, 16384, 128, 35.31},
                {"b200", 65, 64, 6144, 5.959},
                {"b200", 97, 16384, 256, 3.546},
                {"h100", 129, 8192, 10240, 61.02},
                {"h100", 13, 8192, 5120, 30.65},
                {"h100", 16384, 7168, 3072, 1129},
                {"h100", 2049, 64, 12288, 23.33},
                {"h100", 32768, 64, 32, 4.527},
                {"h100", 3840, 65536, 5120, 3381},
                {"h100", 3841, 12288, 64, 40.24},
                {"h100", 4097, 32, 8192, 28.79},
                {"h100", 49, 51200, 4096, 154.2},
                {"h100", 80, 16384, 4096, 48.81},
                {"h200", 1281, 64, 12288, 11.33},
                {"h200", 13, 12288, 64, 2.938},
                {"h200", 1537, 768, 2048, 10.83},
                {"h200", 2304, 768, 65536, 293.5},
                {"h200", 3072, 2560, 12288, 232.8},
                {"h200", 32, 2048, 51200, 55.06},
                {"h200", 3584, 4096, 1024, 48.54},
                {"h200", 49, 64, 128, 2.692},
                {"h200", 5, 16384, 8192, 63.97},
                {"h200", 7, 5120, 2048, 8.705},
                {"l40s", 160, 768, 3072, 9.643},
                {"l40s", 1793, 8192, 3584, 483.5},
                {"l40s", 192, 256, 6144, 8.078},
                {"l40s", 192, 6144, 3072, 63.05},
                {"l40s", 2048, 51200, 7168, 5588},
                {"l40s", 4097, 6144, 7168, 1623},
                {"l40s", 4097, 768, 10240, 325.8},
                {"l40s", 7, 2048, 51200, 297.2},
                {"l40s", 768, 7168, 7168, 371.4},
                {"l40s", 96, 10240, 768, 18.15},
                {"rtx-pro-6000", 1024, 51200, 7168, 1779},
                {"rtx-pro-6000", 1280, 5120, 2048, 99.95},
                {"rtx-pro-6000", 129, 3584, 65536, 334.7},
                {"rtx-pro-6000", 14, 12288, 8192, 141.9},
                {"rtx-pro-6000", 2048, 1024, 51200, 548.5},
                {"rtx-pro-6000", 225, 256, 64, 2.172},
                {"rtx-pro-6000", 4096, 128, 51200, 334.2},
                {"rtx-pro-6000", 6, 512, 51200, 37.59},
                {"rtx-pro-6000", 768, 1536, 1024, 12.89},
                {"rtx-pro-6000", 96, 5120, 3584, 31.79}};

/* The same for attention (encoder_attention, context_attention): samples, tokens, heads, heads of keys, their
 * channels. */
static const struct {
    const char *class, *attends;
    double samples, tokens, heads, kv_heads, channels, us;
} ATTENTION[] = {{"a100-40", "causal", 1, 1024, 48, 48, 128, 147.7},
                 {"a100-40", "causal", 128, 256, 12, 4, 128, 688.9},
                 {"a100-40", "causal", 16, 3072, 16, 16, 128, 4279},
                 {"a100-40", "causal", 2, 16, 16, 16, 128, 11.93},
                 {"a100-40", "causal", 4, 1024, 4, 4, 128, 87.4},
                 {"a100-40", "causal", 4, 4096, 32, 4, 128, 3364},
                 {"b200", "attention", 1, 10240, 4, 4, 72, 280.3},
                 {"b200", "attention", 1, 1296, 8, 8, 80, 21.94},
                 {"b200", "attention", 1, 1500, 5, 5, 72, 21.31},
                 {"b200", "attention", 1, 24576, 8, 8, 64, 1496},
                 {"b200", "attention", 64, 1296, 1, 1, 72, 88.87},
                 {"b200", "attention", 8, 16, 2, 2, 80, 9.067},
                 {"b200", "causal", 4, 128, 24, 4, 64, 12.99},
                 {"b200", "causal", 4, 16, 8, 1, 512, 12.81},
                 {"b200", "causal", 64, 16, 20, 4, 128, 41.45},
                 {"b200", "causal", 8, 128, 2, 2, 64, 10.85},
                 {"b200", "causal", 8, 3072, 8, 1, 256, 286.5},
                 {"b200", "causal", 8, 512, 16, 2, 128, 33.55},
                 {"h100", "attention", 1, 49152, 4, 4, 80, 5667},
                 {"h100", "attention", 2, 26, 14, 14, 72, 11.98},
                 {"h100", "attention", 32, 64, 4, 4, 72, 12.37},
                 {"h100", "attention", 4, 12544, 5, 5, 80, 1750},
                 {"h100", "attention", 4, 9216, 5, 5, 64, 878.1},
                 {"h100", "attention", 8, 26, 8, 8, 72, 11.18},
                 {"h100", "causal", 1, 6144, 12, 4, 128, 242.5},
                 {"h100", "causal", 256, 128, 3, 1, 256, 138},
                 {"h100", "causal", 32, 64, 10, 2, 128, 23.22},
                 {"h100", "causal", 4, 2048, 40, 1, 64, 256},
                 {"h100", "causal", 4, 4096, 32, 8, 128, 1011},
                 {"h100", "causal", 8, 1536, 32, 2, 192, 462.9},
                 {"h200", "attention", 1, 2304, 24, 24, 80, 108.1},
                 {"h200", "attention", 1, 49152, 14, 14, 80, 2.106e+04},
                 {"h200", "attention", 1, 65536, 4, 4, 72, 1.09e+04},
                 {"h200", "attention", 1, 9216, 2, 2, 80, 147.8},
                 {"h200", "attention", 64, 1024, 2, 2, 80, 141.7},
                 {"h200", "attention", 8, 52, 32, 32, 64, 11.16},
                 {"h200", "causal", 1, 256, 24, 4, 256, 20.39},
                 {"h200", "causal", 16, 4096, 16, 16, 128, 2290},
                 {"h200", "causal", 2, 1536, 4, 1, 64, 28.57},
                 {"h200", "causal", 256, 32, 20, 4, 128, 139.5},
                 {"h200", "causal", 4, 4096, 40, 2, 128, 1213},
                 {"h200", "causal", 8, 1024, 96, 8, 128, 589.7},
                 {"l40s", "attention", 16, 1536, 8, 8, 80, 521.4},
                 {"l40s", "attention", 16, 2048, 32, 32, 64, 2744},
                 {"l40s", "attention", 2, 576, 14, 14, 80, 23.2},
                 {"l40s", "attention", 4, 2304, 24, 24, 64, 693.6},
                 {"l40s", "attention", 64, 192, 5, 5, 72, 37.72},
                 {"l40s", "attention", 8, 1500, 8, 8, 64, 185.5},
                 {"l40s", "causal", 128, 16, 12, 2, 64, 58.03},
                 {"l40s", "causal", 4, 128, 32, 8, 64, 15.87},
                 {"l40s", "causal", 4, 512, 40, 2, 128, 95.57},
                 {"l40s", "causal", 4, 64, 64, 4, 192, 15.02},
                 {"l40s", "causal", 64, 64, 40, 2, 128, 92.67},
                 {"l40s", "causal", 8, 1024, 16, 2, 64, 172.7},
                 {"rtx-pro-6000", "attention", 1, 512, 4, 4, 64, 14.95},
                 {"rtx-pro-6000", "attention", 16, 32, 14, 14, 64, 8.704},
                 {"rtx-pro-6000", "attention", 2, 12288, 8, 8, 80, 2711},
                 {"rtx-pro-6000", "attention", 32, 13, 12, 12, 64, 13.03},
                 {"rtx-pro-6000", "attention", 4, 2048, 1, 1, 72, 62.03},
                 {"rtx-pro-6000", "attention", 64, 52, 14, 14, 72, 19.05},
                 {"rtx-pro-6000", "causal", 128, 256, 4, 1, 192, 137.5},
                 {"rtx-pro-6000", "causal", 2, 512, 32, 1, 64, 25.44},
                 {"rtx-pro-6000", "causal", 2, 64, 5, 1, 128, 8.875},
                 {"rtx-pro-6000", "causal", 8, 4096, 2, 1, 64, 191.4},
                 {"rtx-pro-6000", "causal", 8, 4096, 64, 1, 128, 7619},
                 {"rtx-pro-6000", "causal", 8, 64, 24, 4, 128, 14.97}};

#define COUNT(rows) (int)(sizeof(rows) / sizeof *(rows))

static hp_machine machine_of(const char *class) {
    bool sure;
    hp_machine m;
    assert_int_equal(hp_machine_load("dgx-h100", &m, NULL), HP_OK);
    m.device = hp_gpu_model_find(class, 0, &sure)->device;
    assert_string_equal(m.device.name, class);
    return m;
}

static hp_cost_table *shipped(hp_arena *arena) {
    hp_cost_table *t = NULL;
    assert_int_equal(hp_rows_parse(arena, hp_shipped_table(), "shipped", &t, NULL), HP_OK);
    return t;
}

static hp_work product(double m, double n, double k) {
    return (hp_work){.key = "fwd.conv k1x1 s1 d1 g1 i8 o8 bf16 w1",
                     .size = m,
                     .flops = 2 * m * n * k,
                     .bytes = 2 * (m * k + k * n + m * n),
                     .rows = m,
                     .cols = n,
                     .depth = k,
                     .rates = "dense",
                     .library = true};
}

static hp_work attention(const char *attends, double samples, double tokens, double heads, double kv_heads,
                         double channels) {
    const double keys = strcmp(attends, "causal") == 0 ? (tokens + 1) / 2 : tokens,
                 kept = 2 * 2 * samples * tokens * kv_heads * channels;
    return (hp_work){.key = "fwd.attention d64 c64 bf16 w1",
                     .size = samples * tokens,
                     .flops = 4 * samples * tokens * keys * heads * channels,
                     .bytes = 2 * 2 * samples * tokens * heads * channels + kept,
                     .rows = tokens,
                     .cols = channels,
                     .depth = keys,
                     .attends = attends,
                     .groups = samples * heads,
                     .products = 2,
                     .kept_bytes = kept,
                     .library = true};
}

static hp_cost cost_of(const hp_cost_table *t, const char *class, const hp_work *w) {
    const hp_machine m = machine_of(class);
    return hp_cost_compute(t, &m, w);
}

/* Nine of ten are within the stated error. */
typedef struct tally {
    int n, near;
} tally;
static void add(tally *t, double said, double us, double within) {
    const double error = fabs(said * 1e6 / us - 1);
    t->n++;
    t->near += error <= within;
}

static void published_products_come_back(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_cost_table *t = shipped(arena);
    tally all = {0, 0};
    for (int i = 0; i < COUNT(PRODUCTS); i++) {
        const hp_work w = product(PRODUCTS[i].m, PRODUCTS[i].n, PRODUCTS[i].k);
        add(&all, cost_of(t, PRODUCTS[i].class, &w).seconds, PRODUCTS[i].us, 0.25);
    }
    if (all.near < 0.9 * all.n) fail_msg("%d of %d within 25 %%", all.near, all.n);
    hp_arena_free(arena);
}

static void published_attention_comes_back(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_cost_table *t = shipped(arena);
    tally all = {0, 0};
    for (int i = 0; i < COUNT(ATTENTION); i++) {
        const hp_work w = attention(ATTENTION[i].attends, ATTENTION[i].samples, ATTENTION[i].tokens,
                                    ATTENTION[i].heads, ATTENTION[i].kv_heads, ATTENTION[i].channels);
        add(&all, cost_of(t, ATTENTION[i].class, &w).seconds, ATTENTION[i].us, 0.35);
    }
    if (all.near < 0.9 * all.n) fail_msg("%d of %d within 35 %%", all.near, all.n);
    hp_arena_free(arena);
}

static hp_work random_product(uint64_t seed) {
    return product(1 + (double)hp_rng_below(seed, 1, 0, 5000), 1 + (double)hp_rng_below(seed, 2, 0, 5000),
                   1 + (double)hp_rng_below(seed, 3, 0, 9000));
}

/* On every GPU of the table, no product finishes faster than its data sheet's peak allows, nor does
 * attention. */
static void nothing_is_faster_than_the_peak(void **state) {
    (void)state;
    static const char *const attends[] = {"attention", "causal"};
    hp_arena *arena = hp_arena_new();
    const hp_cost_table *t = shipped(arena);
    for (uint64_t seed = 0; seed < law_cases(300); seed++)
        for (int i = 0; hp_gpu_model_at(i); i++) {
            const hp_device_class *d = &hp_gpu_model_at(i)->device;
            const hp_work p = random_product(seed),
                          a = attention(attends[seed % 2], 1 + (double)hp_rng_below(seed, 4, 0, 64),
                                        1 + (double)hp_rng_below(seed, 5, 0, 9000),
                                        1 + (double)hp_rng_below(seed, 6, 0, 64), 1,
                                        8 * (1 + (double)hp_rng_below(seed, 7, 0, 32)));
            const double peak = hp_device_class_peak(d, HP_PREC_BF16);
            if (cost_of(t, d->name, &p).seconds < p.flops / peak)
                fail_msg("%s: %g x %g x %g", d->name, p.rows, p.cols, p.depth);
            if (cost_of(t, d->name, &a).seconds < a.flops / peak)
                fail_msg("%s: %g x %g", d->name, a.rows, a.depth);
        }
    hp_arena_free(arena);
}

/* One more row, column or term never makes a product that fills the device faster. Where the sums of a few
 * tiles are split, more terms may give more parts, none of them shorter than half. */
static void more_work_takes_more_time(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_cost_table *t = shipped(arena);
    for (uint64_t seed = 0; seed < law_cases(600); seed++) {
        const hp_work w = random_product(seed);
        const char *class = hp_gpu_model_at((int)(seed % 13))->device.name;
        const double was = cost_of(t, class, &w).seconds, slack = w.rows * w.cols > 1.7e6 ? 1 - 1e-12 : 0.5;
        for (int axis = 0; axis < 3; axis++) {
            const hp_work more = product(w.rows + (axis == 0), w.cols + (axis == 1), w.depth + (axis == 2));
            const double is = cost_of(t, class, &more).seconds;
            if (is < was * slack)
                fail_msg("%s, %g x %g x %g: %g us, with more %g", class, w.rows, w.cols, w.depth, was * 1e6,
                         is * 1e6);
        }
    }
    hp_arena_free(arena);
}

/* On a device shared by several ranks, a product that fills it takes all of it except during its launch; one
 * of a single tile takes little. */
static void small_products_leave_room(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_cost_table *t = shipped(arena);
    const hp_machine m = machine_of("h100");
    const hp_work large = product(8192, 8192, 8192), small = product(64, 64, 64);
    assert_true(hp_cost_share(t, &m, &large) > 0.9 && hp_cost_share(t, &m, &large) <= 1);
    assert_true(hp_cost_share(t, &m, &small) > 0 && hp_cost_share(t, &m, &small) < 0.01);
    hp_arena_free(arena);
}

static void close_to(double a, double b) {
    if (!(fabs(a / b - 1) < 1e-12)) fail_msg("%.15g is not %.15g", a, b);
}

/* Blocks of 128 queries on 100 multiprocessors, 64 channels, without start-up costs: 100 blocks are one wave,
 * 101 two. */
static void attention_goes_in_waves(void **state) {
    (void)state;
    const hp_attend_rates a = {.rows = 128, .penalty = 0.01, .units = 100, .flops_per_s = 1e12};
    const hp_attend_shape whole = {
        .queries = 1280, .keys = 1280, .channels = 64, .groups = 10, .products = 2};
    const double peak_s = 4. * 1280 * 1280 * 64 * 10 / 1e12;
    close_to(hp_attend_seconds(&a, &whole), peak_s);
    close_to(hp_attend_busy(&a, &whole), 1);
    hp_attend_shape more = whole;
    more.queries = 1281; /* a block of one query for every head */
    close_to(hp_attend_seconds(&a, &more), 2 * peak_s);
    close_to(hp_attend_busy(&a, &more), 110 / 200.);
    more = whole;
    more.keys = 1; /* 64 are multiplied */
    close_to(hp_attend_seconds(&a, &more), peak_s / 20);
    more = whole;
    more.products = 5;
    close_to(hp_attend_seconds(&a, &more), peak_s * 5 / 2);
    more = whole;
    more.causal = true;
    more.keys = 640; /* and half a block */
    close_to(hp_attend_seconds(&a, &more), peak_s * (640 + 64) / 1280);
}

/* A higher power means that arithmetic hides more of the memory time. */
static void a_kernel_is_longer_than_its_parts(void **state) {
    (void)state;
    hp_kernel k = {.launch_s = 1, .power = 1, .bytes_per_s = 10, .cache_bytes = 60, .cached = 2};
    close_to(hp_kernel_seconds(&k, 3, 4), 8);
    k.power = 2;
    close_to(hp_kernel_seconds(&k, 3, 4), 6);
    close_to(hp_kernel_maps_s(&k, 50), 2.5); /* they fit */
    close_to(hp_kernel_maps_s(&k, 60), 6);
    close_to(hp_kernel_weights_s(&k, 9), 0.45);
    close_to(hp_kernel_weights_s(&k, 50), 5); /* six of them do not */
}

static const hp_layer *attention_of(const hp_graph *g, int *layer) {
    for (*layer = 1; *layer < g->n_layer; ++*layer)
        if (g->layer[*layer].op == HP_ATTENTION) return &g->layer[*layer];
    fail_msg("no attention");
    return NULL;
}

static hp_work attention_work(const hp_graph *g, hp_task_op op) {
    int layer;
    const hp_tensor *y = &g->tensor[g->layer[(attention_of(g, &layer), layer)].out];
    const hp_box out = {{0, 0, 0, 0}, {8, y->h, y->w, y->c}};
    const hp_work_case c = hp_work_case_at(g, layer, op, &out);
    return hp_work_of_case(g, HP_F32, &c);
}

/* Attention over all tokens, over preceding tokens, and within windows: products of groups x queries x keys x
 * channels equal the task's operations. */
static void attention_of_networks_has_its_shape(void **state) {
    (void)state;
    static const struct {
        const char *net, *attends;
        int image;
        double rows, cols, groups, products;
        hp_task_op op;
    } rows[] = {{"vit-b16", "attention", 224, 197, 64, 8 * 12, 2, HP_TASK_FWD},
                {"vit-b16", "attention", 224, 197, 64, 8 * 12, 5, HP_TASK_BWD},
                {"gpt2", "causal", 1024, 1024, 64, 8 * 12, 2, HP_TASK_FWD},
                {"swin-t", "attention", 224, 49, 32, 8 * 3 * 64, 2, HP_TASK_FWD}};
    for (int i = 0; i < COUNT(rows); i++) {
        world w = make_world("dgx-h200", rows[i].net, rows[i].image, 8);
        const hp_work a = attention_work(w.g, rows[i].op);
        assert_string_equal(a.attends, rows[i].attends);
        close_to(a.rows, rows[i].rows);
        close_to(a.cols, rows[i].cols);
        close_to(a.groups, rows[i].groups);
        close_to(a.products, rows[i].products);
        close_to(2 * a.products * a.groups * a.rows * a.depth * a.cols, a.flops);
        close_to(a.kept_bytes, 2 * 4 * a.groups * a.rows * a.cols);
        hp_arena_free(w.arena);
    }
}

/* Rows of a similar GPU at this GPU's data-sheet rates: a device with the same number of multiprocessors and
 * twice the rates takes half as long for a wave, apart from the launch. H200 and A100 have rows of their own;
 * variants of H100 use H100's. */
static void kernels_of_relatives_stand_in(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"h100-nvl", "h100"}, {"h100-pcie", "h100"},        {"h200", "h200"},        {"a100-80", "a100-40"},
        {"rtx-4090", "l40s"}, {"rtx-5090", "rtx-pro-6000"}, {"rtx-3090", "a100-40"}, {"b200", "b200"}};
    hp_arena *arena = hp_arena_new();
    const hp_cost_table *t = shipped(arena);
    for (int i = 0; i < COUNT(rows); i++) {
        const hp_work p = product(512, 512, 512), a = attention("causal", 2, 512, 8, 8, 64);
        const hp_machine m = machine_of(rows[i][0]);
        hp_library_kernel k;
        assert_true(hp_library_kernel_find(t, &m, &p, "bf16", m.device.bf16_flops_per_s, &k));
        assert_string_equal(k.row->class, rows[i][1]);
        assert_true(hp_library_kernel_find(t, &m, &a, "f16", m.device.fp16_flops_per_s, &k));
        assert_string_equal(k.row->class, rows[i][1]);
    }
    const hp_machine none = machine_of("v100-16");
    const hp_work p = product(512, 512, 512);
    hp_library_kernel k;
    assert_false(hp_library_kernel_find(t, &none, &p, "f16", none.device.fp16_flops_per_s, &k));
    hp_arena_free(arena);
}

/* What was measured of hplan's own kernels says nothing of a library's. */
static void a_librarys_kernel_is_not_hplans(void **state) {
    (void)state;
    static const char own[] = "hplan-cost 2\nmachine m\ndate d\n"
                              "fit a100-40 fwd.conv bf16 | measured 0.1 9 | launch:1 flops:0 bytes:0\n";
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_cost_table *t;
    assert_int_equal(hp_rows_parse(arena, own, "own", &t, &err), HP_OK);
    const hp_cost_table *base = shipped(arena);
    t->base = base;
    hp_work w = product(512, 512, 512);
    assert_true(w.library);
    close_to(cost_of(t, "a100-40", &w).seconds, cost_of(base, "a100-40", &w).seconds);
    w.library = false;
    assert_true(cost_of(t, "a100-40", &w).seconds > 10 * cost_of(base, "a100-40", &w).seconds);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_products_come_back),
        cmocka_unit_test(published_attention_comes_back),
        cmocka_unit_test(nothing_is_faster_than_the_peak),
        cmocka_unit_test(more_work_takes_more_time),
        cmocka_unit_test(small_products_leave_room),
        cmocka_unit_test(attention_goes_in_waves),
        cmocka_unit_test(a_kernel_is_longer_than_its_parts),
        cmocka_unit_test(attention_of_networks_has_its_shape),
        cmocka_unit_test(kernels_of_relatives_stand_in),
        cmocka_unit_test(a_librarys_kernel_is_not_hplans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
