/* test_plans.c - without a GPU: cuDNN has an acceptable engine for every convolution of every built-in
 * network, in every precision and direction; choices survive being written down.
 *
 * The GPU is the H100 whose description by cuDNN is tests/data/h100.json; nothing runs on it. By hand:
 * HPLAN_CUDA_PLANS=compile also compiles what cuDNN compiles at run time (minutes); HPLAN_CUDA_PLANS_EACH=N
 * tries one problem in N, whatever the tier; HPLAN_CUDA_PLANS_CSV=FILE keeps the table. */
#include "networks/graph/acts.h"
#include "plan/memory/memory_device.h"
#include "tests/support/plan/built/whole_shape.h"
#include "tests/support/dnn/described_dnn.h"
#include "tests/support/plan/law_cases.h"

static const int64_t WORKSPACE = 64 << 20;
static hp_dnn *dnn;

static bool compiles(void) {
    const char *how = getenv("HPLAN_CUDA_PLANS");
    return how && strcmp(how, "compile") == 0;
}

static int open_described(void **state) {
    (void)state;
    dnn = described_dnn(compiles());
    return 0;
}

static int close_described(void **state) {
    (void)state;
    hp_dnn_close(dnn);
    return 0;
}

/* --- every convolution of every network --- */

static const char *const NETS[] = {"cnn",          "resnet18",    "resnet50",        "resnet101",
                                   "vgg19",        "mobilenetv2", "densenet121",     "resnet-v1-20",
                                   "resnet-v2-29", "unet:64",     "amoebanetd:6,190"};

typedef enum variant { FORWARD, FUSED, JOINED, DGRAD, WGRAD, VARIANTS } variant;
static const char *const VARIANT_NAMES[] = {"forward", "fused", "joined", "dgrad", "wgrad"};

typedef struct precision {
    const char *name;
    hp_dtype dtype;
    hp_dnn_math math;
} precision;
static const precision PRECISIONS[] = {{"strict", HP_F32, HP_DNN_STRICT},
                                       {"tf32", HP_F32, HP_DNN_TF32},
                                       {"bf16", HP_BF16, HP_DNN_STRICT},
                                       {"f16", HP_F16, HP_DNN_STRICT}};
enum { N_PRECISION = sizeof PRECISIONS / sizeof *PRECISIONS, MOST_CONVS = 4096, BATCH = 8 };

static int32_t padding_after(int32_t in, int32_t out, int32_t k, int32_t stride, int32_t dil,
                             int32_t before) {
    return (out - 1) * stride + (k - 1) * dil + 1 - before - in;
}

/* A transposed convolution is the data gradient of one from its output to its input. */
static hp_dnn_conv conv_of(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    const hp_tensor *x = &g->tensor[l->in[0]], *y = &g->tensor[l->out];
    if (l->op == HP_CONVT) {
        const hp_tensor *t = x;
        x = y;
        y = t;
    }
    return (hp_dnn_conv){.n = BATCH,
                         .ih = x->h,
                         .iw = x->w,
                         .ic = x->c,
                         .oh = y->h,
                         .ow = y->w,
                         .oc = y->c,
                         .kh = l->window.kh,
                         .kw = l->window.kw,
                         .stride_h = l->window.stride_h,
                         .stride_w = l->window.stride_w,
                         .dil_h = l->window.dil_h,
                         .dil_w = l->window.dil_w,
                         .groups = l->groups,
                         .pad.top = l->window.pad_h,
                         .pad.left = l->window.pad_w,
                         .pad.bottom = padding_after(x->h, y->h, l->window.kh, l->window.stride_h,
                                                     l->window.dil_h, l->window.pad_h),
                         .pad.right = padding_after(x->w, y->w, l->window.kw, l->window.stride_w,
                                                    l->window.dil_w, l->window.pad_w)};
}

typedef struct planned {
    hp_dnn_conv conv;
    int64_t workspace[HP_DTYPES]; /* workspace that plans reserve for it */
    bool learns;                  /* its input's gradient is wanted, because the input is not the image */
} planned;

static void add_distinct(planned *all, int *n, const hp_graph *g, int layer) {
    const hp_shape s = whole_shape(g, layer, BATCH);
    const hp_dnn_conv c = conv_of(g, layer);
    const bool learns = g->tensor[g->layer[layer].in[0]].producer != 0;
    for (int i = 0; i < *n; i++) {
        if (memcmp(&all[i].conv, &c, sizeof c) != 0) continue;
        all[i].learns |= learns;
        return;
    }
    assert_true(*n < MOST_CONVS);
    all[*n].conv = c;
    all[*n].learns = learns;
    for (int t = 0; t < HP_DTYPES; t++)
        all[*n].workspace[t] = hp_gpu_workspace_bytes(g, layer, &s, (hp_dtype)t);
    ++*n;
}

static int distinct_convs(planned *all) {
    int n = 0;
    for (size_t i = 0; i < sizeof NETS / sizeof *NETS; i++) {
        hp_arena *arena = hp_arena_new();
        hp_graph *g = NULL;
        hp_error err = {0};
        const int side = strncmp(NETS[i], "resnet-v", 8) == 0 || !strcmp(NETS[i], "cnn") ? 32 : 224;
        if (hp_net_build(arena, NETS[i], side, side, hp_net_default_classes(NETS[i]), &g, &err) != HP_OK)
            fail_msg("%s: %s", NETS[i], err.text);
        for (int l = 0; l < g->n_layer; l++) {
            if (g->layer[l].op != HP_CONV && g->layer[l].op != HP_CONVT) continue;
            add_distinct(all, &n, g, l);
        }
        hp_arena_free(arena);
    }
    return n;
}

static hp_dnn_conv problem(const hp_dnn_conv *c, const precision *p, variant v) {
    hp_dnn_conv q = *c;
    q.kind = v == DGRAD ? HP_DNN_DGRAD : v == WGRAD ? HP_DNN_WGRAD : HP_DNN_FORWARD;
    q.dtype = p->dtype;
    q.math = p->math;
    q.bias = v == FUSED || v == JOINED;
    q.add = v == JOINED;
    q.act = q.bias ? HP_ACT_RELU : HP_ACT_NONE;
    return q;
}

typedef struct tally {
    int tried, generic, unfused, pieces;
    int64_t most_workspace;
} tally;

static void record(FILE *csv, const hp_dnn_conv *c, const precision *p, variant v, const hp_dnn_plan *plan) {
    if (csv)
        fprintf(csv, "%s,%s,%dx%dx%d,%dx%dx%d,%dx%d,%d,%d,\"%s\",%lld,%lld\n", p->name, VARIANT_NAMES[v],
                c->ih, c->iw, c->ic, c->oh, c->ow, c->oc, c->kh, c->kw, c->stride_h, c->groups,
                hp_dnn_plan_name(plan), (long long)hp_dnn_plan_workspace(plan),
                (long long)hp_dnn_plan_fused(plan));
}

static void try_problem(const planned *c, const precision *p, variant v, tally *t, FILE *csv) {
    const hp_dnn_conv q = problem(&c->conv, p, v);
    const int64_t cap = c->workspace[p->dtype];
    hp_dnn_plan *plan = NULL;
    hp_error err = {0};
    if (hp_dnn_plan_conv(dnn, &q, cap, &plan, &err) != HP_OK) fail_msg("%s", err.text);
    assert_in_range(hp_dnn_plan_workspace(plan), 0, cap);
    t->tried++;
    t->unfused += !hp_dnn_plan_fused(plan);
    t->generic += hp_dnn_plan_engine(plan) == 0;
    t->pieces += strstr(hp_dnn_plan_name(plan), "pieces") != NULL;
    if (hp_dnn_plan_workspace(plan) > t->most_workspace) t->most_workspace = hp_dnn_plan_workspace(plan);
    record(csv, &c->conv, p, v, plan);
}

/* One problem in this many is tried, each convolution in another precision and direction. */
static int one_in(void) {
    const char *each = getenv("HPLAN_CUDA_PLANS_EACH");
    if (each) return atoi(each) < 1 ? 1 : atoi(each);
    return law_all("every convolution in every precision and direction, not one in twelve") ? 1 : 12;
}

static void every_convolution_of_every_network_has_an_engine(void **state) {
    (void)state;
    static planned conv[MOST_CONVS];
    const int n = distinct_convs(conv), each = one_in();
    const char *path = getenv("HPLAN_CUDA_PLANS_CSV");
    FILE *csv = path ? fopen(path, "we") : NULL;
    print_message("%d distinct convolutions of %d networks\n", n, (int)(sizeof NETS / sizeof *NETS));
    for (int p = 0; p < N_PRECISION; p++) {
        for (int v = 0; v < VARIANTS; v++) {
            tally t = {0};
            for (int i = 0; i < n; i++)
                if ((i + 5 * (p * VARIANTS + v)) % each == 0 && (v != DGRAD || conv[i].learns))
                    try_problem(&conv[i], &PRECISIONS[p], (variant)v, &t, csv);
            print_message(
                "%-6s %-7s: %4d tried, %3d generic, %3d not fused, %3d in pieces, workspace up to %lld\n",
                PRECISIONS[p].name, VARIANT_NAMES[v], t.tried, t.generic, t.unfused, t.pieces,
                (long long)t.most_workspace);
            assert_int_equal(t.generic, 0);
        }
    }
    if (csv) fclose(csv);
}

/* --- more than 2^31 elements --- */

/* ResNet's first convolution on a 32768 x 32768 image. */
static void tensors_of_2_to_the_31_elements_are_cut(void **state) {
    (void)state;
    const hp_dnn_conv stem = {.kind = HP_DNN_FORWARD,
                              .dtype = HP_BF16,
                              .n = 1,
                              .ih = 32768,
                              .iw = 32768,
                              .ic = 3,
                              .oh = 16384,
                              .ow = 16384,
                              .oc = 64,
                              .kh = 7,
                              .kw = 7,
                              .stride_h = 2,
                              .stride_w = 2,
                              .dil_h = 1,
                              .dil_w = 1,
                              .groups = 1,
                              .pad.top = 3,
                              .pad.left = 3,
                              .pad.bottom = 2,
                              .pad.right = 2};
    for (int kind = HP_DNN_FORWARD; kind <= HP_DNN_WGRAD; kind++) {
        hp_dnn_conv c = stem;
        hp_dnn_plan *plan = NULL;
        hp_error err = {0};
        c.kind = kind;
        if (hp_dnn_plan_conv(dnn, &c, WORKSPACE, &plan, &err) != HP_OK) fail_msg("%s", err.text);
        print_message("%d: %s\n", kind, hp_dnn_plan_name(plan));
        assert_int_not_equal(hp_dnn_plan_engine(plan), 0);
        assert_non_null(strstr(hp_dnn_plan_name(plan), " pieces"));
    }
}

/* --- choices --- */

/* Another hplan-exec that adopts the choices uses the same engines without asking heuristics, and has none of
 * its own to announce. */
static void choices_written_down_are_the_choices(void **state) {
    (void)state;
    const hp_dnn_conv c = square_conv(HP_DNN_WGRAD, HP_BF16, 2, 28, 64);
    hp_dnn_plan *plan = NULL, *again = NULL;
    hp_error err = {0};
    assert_int_equal(hp_dnn_plan_conv(dnn, &c, WORKSPACE, &plan, &err), HP_OK);
    assert_int_equal(hp_dnn_plan_conv(dnn, &c, WORKSPACE, &again, &err), HP_OK);
    assert_ptr_equal(plan, again);
    char *text = hp_dnn_choices_export(dnn);
    assert_non_null(text);
    hp_dnn *other = described_dnn(false);
    if (hp_dnn_choices_import(other, text, &err) != HP_OK) fail_msg("%s", err.text);
    assert_int_equal(hp_dnn_plan_conv(other, &c, WORKSPACE, &again, &err), HP_OK);
    assert_string_equal(hp_dnn_plan_name(plan), hp_dnn_plan_name(again));
    assert_null(hp_dnn_choices_export(other));
    free(text);
    hp_dnn_close(other);
}

static void damaged_choices_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"gpu\": \"a\", \"cudnn\": 91900}",
        "{\"gpu\": 1, \"cudnn\": 91900, \"engines\": {}}",
        "{\"gpu\": \"a\", \"cudnn\": 91900, \"engines\": {\"k\": 3}}",
        "{\"gpu\": \"a\", \"cudnn\": 91900, \"engines\": {\"k\": {\"engine\": 1, \"knobs\": {\"x\": 1}}}}",
        ("{\"gpu\": \"a\", \"cudnn\": 91900, \"engines\": {\"k\": {\"engine\": 1, \"knobs\": {\"2\": "
         "\"1\"}}}}")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hp_error err = {0};
        assert_int_equal(hp_dnn_choices_import(dnn, texts[i], &err), HP_EDATA);
        assert_true(strlen(err.text) > 0);
    }
}

/* Impossible operations are refused by name. */
static void sizes_that_do_not_belong_together_are_refused(void **state) {
    (void)state;
    hp_dnn_conv c = square_conv(HP_DNN_FORWARD, HP_F32, 1, 8, 4);
    c.oh = 9;
    hp_dnn_plan *plan = NULL;
    hp_error err = {0};
    assert_int_equal(hp_dnn_plan_conv(dnn, &c, WORKSPACE, &plan, &err), HP_EUNAVAIL);
    assert_non_null(strstr(err.text, "do not belong together"));
}

/* With a sum, only an engine of last resort fuses these convolutions, at a fiftieth of the speed of the
 * convolution alone: the residual blocks of ResNet-101 in strict float32. */
static void what_only_a_last_resort_fuses_stays_alone(void **state) {
    (void)state;
    hp_dnn_conv c = square_conv(HP_DNN_FORWARD, HP_F32, 64, 16, 256);
    hp_dnn_plan *joined = NULL, *fused = NULL;
    hp_error err;
    c.bias = true;
    c.act = HP_ACT_RELU;
    if (hp_dnn_plan_conv(dnn, &c, WORKSPACE, &fused, &err) != HP_OK) fail_msg("%s", err.text);
    c.add = true;
    if (hp_dnn_plan_conv(dnn, &c, WORKSPACE, &joined, &err) != HP_OK) fail_msg("%s", err.text);
    assert_true(hp_dnn_plan_fused(fused));
    assert_false(hp_dnn_plan_fused(joined));
    c.dtype = HP_BF16;
    if (hp_dnn_plan_conv(dnn, &c, WORKSPACE, &joined, &err) != HP_OK) fail_msg("%s", err.text);
    assert_true(hp_dnn_plan_fused(joined));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_only_a_last_resort_fuses_stays_alone),
                                       cmocka_unit_test(tensors_of_2_to_the_31_elements_are_cut),
                                       cmocka_unit_test(choices_written_down_are_the_choices),
                                       cmocka_unit_test(damaged_choices_are_refused),
                                       cmocka_unit_test(sizes_that_do_not_belong_together_are_refused),
                                       cmocka_unit_test(every_convolution_of_every_network_has_an_engine)};
    return cmocka_run_group_tests(tests, open_described, close_described);
}
