/* test_deploy.c - inference graphs: what is folded, how tensors are stored, what fits; and their programs,
 * proved. */
#include "networks/graph/acts.h"
#include "networks/deploy/deploy.h"
#include "plan/program/program.h"
#include "plan/lower/lower.h"
#include "plan/check/check.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static hp_graph *deployed(hp_arena *a, const char *net, int h, int w, int prec) {
    hp_error err;
    hp_graph *g = NULL, *d = NULL;
    assert_int_equal(hp_net_build(a, net, h, w, hp_net_default_classes(net), &g, &err), HP_OK);
    const hp_deploy_options o = {.prec = prec};
    assert_int_equal(hp_graph_deploy(a, g, &o, &d, &err), HP_OK);
    return d;
}

static const char *const nets[] = {"cnn",    "resnet18",        "resnet50",    "resnet101",
                                   "vgg19",  "densenet121",     "mobilenetv2", "resnet-v2-29",
                                   "unet:8", "amoebanetd:3,32", "swin-t"};
enum { N_NETS = sizeof nets / sizeof *nets };

static int count(const hp_graph *g, int op) {
    int n = 0;
    for (int l = 0; l < g->n_layer; l++) n += g->layer[l].op == op;
    return n;
}

/* Multiply-adds and the network's ends do not change; norms after convolutions are gone. */
static void folding_keeps_the_work(void **state) {
    (void)state;
    for (int i = 0; i < N_NETS; i++) {
        hp_arena *a = hp_arena_new();
        hp_error err;
        hp_graph *g = NULL;
        assert_int_equal(hp_net_build(a, nets[i], 64, 64, 10, &g, &err), HP_OK);
        const hp_deploy_options o = {.prec = HP_PREC_FP32};
        hp_graph *d = NULL;
        assert_int_equal(hp_graph_deploy(a, g, &o, &d, &err), HP_OK);
        int64_t before = 0, after = 0;
        for (int l = 0; l < g->n_layer; l++) before += hp_layer_macs(g, l);
        for (int l = 0; l < d->n_layer; l++) after += hp_layer_macs(d, l);
        assert_int_equal(before, after);
        assert_int_equal(count(d, HP_DROPOUT), 0);
        assert_true(count(d, HP_BN) <= count(g, HP_BN));
        assert_int_equal(d->tensor[d->layer[d->n_layer - 1].out].c,
                         g->tensor[g->layer[g->n_layer - 1].out].c);
        for (int l = 0; l < d->n_layer; l++)
            for (int k = 0; k < d->layer[l].n_in; k++) assert_true(d->tensor[d->layer[l].in[k]].producer < l);
        hp_arena_free(a);
    }
}

/* DenseNet-121 (Huang et al., table 1): 58 dense layers and 3 transitions. Each map is stored once: no layer
 * joins without scaling, and a block stores its input and the 32 channels that each layer adds. The four
 * blocks' first norms read a single map. */
static void densenet_joins_nothing(void **state) {
    (void)state;
    static const int layers[] = {6, 12, 24, 16}, enters[] = {64, 128, 256, 512};
    hp_arena *a = hp_arena_new();
    const hp_graph *d = deployed(a, "densenet121", 224, 224, HP_PREC_FP32);
    int widest = 0, joins = 0;
    for (int l = 0; l < d->n_layer; l++) {
        const hp_layer *layer = &d->layer[l];
        if (layer->op != HP_CONCAT) continue;
        const int block = d->tensor[layer->out].h == 56   ? 0
                          : d->tensor[layer->out].h == 28 ? 1
                          : d->tensor[layer->out].h == 14 ? 2
                                                          : 3;
        assert_int_equal(layer->n_param, HP_NORM_PARAMS);
        assert_int_equal(layer->act, HP_ACT_RELU);
        assert_int_equal(d->tensor[layer->out].c, enters[block] + 32 * (layer->n_in - 1));
        assert_int_equal(d->tensor[layer->in[0]].c, enters[block]);
        for (int k = 1; k < layer->n_in; k++) assert_int_equal(d->tensor[layer->in[k]].c, 32);
        assert_true(layer->n_in <= 1 + layers[block]);
        widest = layer->n_in > widest ? layer->n_in : widest;
        joins++;
    }
    assert_int_equal(joins, 58 + 3 + 1 - 4);
    assert_int_equal(count(d, HP_BN), 4);
    assert_int_equal(widest, 25);
    hp_arena_free(a);
}

/* Convolutions read a U-Net's skips and need them joined. */
static void convolutions_read_joined_maps(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *d = deployed(a, "unet:8", 64, 64, HP_PREC_FP32);
    assert_int_equal(count(d, HP_CONCAT), 4);
    for (int l = 0; l < d->n_layer; l++)
        if (d->layer[l].op == HP_CONCAT) assert_int_equal(d->layer[l].n_param, 0);
    hp_arena_free(a);
}

/* torchvision's ResNet-101: 104 convolutions, their 104 norms, 33 additions and all relus become 104 layers.
 */
static void resnet101_is_convolutions(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *d = deployed(a, "resnet101", 224, 224, HP_PREC_FP32);
    assert_int_equal(count(d, HP_CONV), 104);
    assert_int_equal(d->n_layer, 104 + 5); /* input, max-pool, global pool in two steps, linear */
    int added = 0;
    for (int l = 0; l < d->n_layer; l++) added += hp_layer_adds(&d->layer[l]);
    assert_int_equal(added, 33);
    hp_arena_free(a);
}

/* torchvision's ViT-B/16: patches, class token and positions; in each of 12 blocks, two norms, queries, keys
 * and values, attention, three more products, two of which add the residual, and GELU; then the last norm,
 * the class token and the head. */
static void vit_b16_is_products_norms_and_attention(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *d = deployed(a, "vit-b16", 224, 224, HP_PREC_FP32);
    assert_int_equal(d->n_layer, 1 + 3 + 12 * 10 + 3);
    assert_int_equal(count(d, HP_CONV) + count(d, HP_CONVT), 1 + 12 * 6);
    assert_int_equal(count(d, HP_SUM) + count(d, HP_ADD), 0);
    int added = 0;
    for (int l = 0; l < d->n_layer; l++) added += hp_layer_adds(&d->layer[l]);
    assert_int_equal(added, 12 * 2);
    hp_arena_free(a);
}

/* Products read bytes: norms' and attention's outputs are quantised once for all of their readers, including
 * a GPT's head. The inputs of norms and attention are real, and so is the residual stream. Ids are
 * numbers. */
static void int8_quantises_the_products_of_transformers(void **state) {
    static const char *const names[] = {"vit-b16", "gpt:12,24,3,16,32"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *d = deployed(a, names[i], 224, 224, HP_PREC_INT8);
        assert_int_equal(d->tensor[0].store, i ? HP_STORE_REAL : HP_STORE_U8);
        assert_int_equal(count(d, HP_QUANT), 12 * 3 + i);
        assert_int_equal(count(d, HP_DEQUANT), 0);
        for (int l = 1; l < d->n_layer; l++) {
            const hp_layer *layer = &d->layer[l];
            const bool product = layer->op == HP_CONV || layer->op == HP_CONVT;
            if (product) assert_int_equal(d->tensor[layer->in[0]].store, HP_STORE_U8);
            for (int k = 0; k < layer->n_in && hp_layer_as_trained(layer); k++)
                assert_int_equal(d->tensor[layer->in[k]].store, HP_STORE_REAL);
            if (hp_layer_adds(layer) || hp_layer_as_trained(layer))
                assert_int_equal(d->tensor[layer->out].store, HP_STORE_REAL);
        }
        hp_arena_free(a);
    }
}

/* The optimum at operator granularity, 8192^2: 6.98 GB (float32), 1.74 GB (8 bits). Counted by hand: layer2.0
 * with its input 256 x 2048^2, conv1's 128 x 2048^2 and conv2's 128 x 1024^2. */
static void resnet101_at_8192_needs_its_widest_block(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const int64_t side = 2048, peak = 256 * side * side + 128 * side * side + 128 * side * side / 4;
    assert_int_equal(hp_graph_live_bytes(deployed(a, "resnet101", 8192, 8192, HP_PREC_FP32)), 4 * peak);
    assert_int_equal(hp_graph_live_bytes(deployed(a, "resnet101", 8192, 8192, HP_PREC_INT8)), peak);
    hp_arena_free(a);
}

static void int8_keeps_ends_real(void **state) {
    (void)state;
    for (int i = 0; i < N_NETS; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *d = deployed(a, nets[i], 64, 64, HP_PREC_INT8);
        assert_int_equal(d->tensor[d->layer[d->n_layer - 1].out].store, HP_STORE_REAL);
        assert_int_equal(d->tensor[0].store, HP_STORE_U8);
        for (int l = 1; l < d->n_layer; l++) {
            const hp_layer *layer = &d->layer[l];
            const int x = d->tensor[layer->in[0]].store, y = d->tensor[layer->out].store;
            if (layer->op == HP_LINEAR) assert_true(x == HP_STORE_REAL && y == HP_STORE_REAL);
            if (layer->op == HP_QUANT) assert_true(x == HP_STORE_REAL && y == HP_STORE_U8);
            if (layer->op == HP_DEQUANT) assert_true(x == HP_STORE_U8 && y == HP_STORE_REAL);
            if (hp_layer_adds(layer)) assert_int_equal(d->tensor[layer->in[layer->n_in - 1]].store, y);
        }
        hp_arena_free(a);
    }
}

static void listed_layers_stay_real(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_error err;
    hp_graph *g = NULL, *d = NULL;
    assert_int_equal(hp_net_build(a, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    const hp_deploy_options o = {.prec = HP_PREC_INT8, .float_layers = "layer2.0.conv1,layer3.0.conv2"};
    assert_int_equal(hp_graph_deploy(a, g, &o, &d, &err), HP_OK);
    int seen = 0;
    for (int l = 0; l < d->n_layer; l++) {
        const char *name = d->layer[l].name;
        if (strcmp(name, "layer2.0.conv1") != 0 && strcmp(name, "layer3.0.conv2") != 0) continue;
        assert_int_equal(d->tensor[d->layer[l].out].store, HP_STORE_REAL);
        assert_int_equal(d->tensor[d->layer[l].in[0]].store, HP_STORE_REAL);
        seen++;
    }
    assert_int_equal(seen, 2);
    const hp_deploy_options wrong = {.prec = HP_PREC_INT8, .float_layers = "layer2.0.conv7"};
    assert_int_equal(hp_graph_deploy(a, g, &wrong, &d, &err), HP_EUSAGE);
    assert_non_null(strstr(err.text, "layer2.0.conv7"));
    hp_arena_free(a);
}

static hp_program *proved(hp_arena *a, const hp_graph *g, const char *text, int64_t batch) {
    hp_error err;
    hp_strategy s;
    hp_program *p = NULL;
    assert_int_equal(hp_strategy_parse(text, &s, &err), HP_OK);
    const hp_lower_options o = {.mode = HP_MODE_INFER, .dtype = HP_F32, .batch = batch, .place = true};
    if (hp_lower(a, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    if (hp_program_check(p, g, &err) != HP_OK) fail_msg("%s %s: %s", g->net, text, err.text);
    return p;
}

static const char *const strategies[] = {
    "dp=1",
    "sp=2x1",
    "sp=3x1,halo=3",
    "sp=2x2",
    "stages=3",
    "stages=2,sp=2x1",
    "dp=2",
    "strips=4",
    "strips=7,deep=3",
    "strips=64",
    "sp=2x1,strips=5",
    "sp=2x2,strips=9,deep=4",
    "stages=2,strips=8",
    "stages=2,sp=1x2,strips=3",
    "stages=2,sp=2x2,tail=shared,micro=4",
    "stages=3,micro=4",
};

static void programs_are_proved(void **state) {
    (void)state;
    const bool all = law_all("every strategy of every network in every precision");
    for (int i = 0; i < N_NETS; i++)
        for (int prec = 0; prec < HP_PRECS; prec++)
            for (size_t k = 0; k < sizeof strategies / sizeof *strategies; k++) {
                hp_arena *a = hp_arena_new();
                char text[128];
                hp_error err;
                hp_strategy s;
                snprintf(text, sizeof text, "%s,prec=%s", strategies[k], hp_prec_names[prec]);
                assert_int_equal(hp_strategy_parse(text, &s, &err), HP_OK);
                const bool cuts = s.sp.n || s.strips.n > 1; /* dynamic ranges cover whole maps */
                if ((all || (i + prec + (int)k) % 3 == 0) && (prec != HP_PREC_INT8_DYNAMIC || !cuts))
                    proved(a, deployed(a, nets[i], 67, 96, prec), text, hp_strategy_batch(&s, 1));
                hp_arena_free(a);
            }
}

/* Rows of several samples are not contiguous: strips need a batch that is split before the first stage. */
static void strips_are_of_one_image(void **state) {
    (void)state;
    static const struct {
        const char *strategy;
        int64_t batch;
        const char *fix; /* NULL: legal */
    } cases[] = {
        {"strips=4", 1, NULL},
        {"strips=4", 2, "micro=2"},
        {"strips=4,micro=3", 3, NULL},
        {"strips=4,ldp=2", 2, NULL},
        {"strips=4,ldp=2", 6, "micro=3"},
        {"strips=4,stages=2,sp=2x1,ldp=2", 2, "ldp=1"},
        {"strips=4,stages=2,sp=2x2,tail=shared", 4, "tail=own"},
    };
    hp_arena *a = hp_arena_new();
    const hp_graph *g = deployed(a, "resnet18", 64, 64, HP_PREC_FP32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_strategy s;
        hp_reject why;
        hp_error err;
        assert_int_equal(hp_strategy_parse(cases[i].strategy, &s, &err), HP_OK);
        const bool legal = hp_strategy_legal(&s, g, cases[i].batch, 0, &why);
        assert_int_equal(legal, cases[i].fix == NULL);
        if (legal) {
            proved(a, g, cases[i].strategy, cases[i].batch);
        } else {
            assert_int_equal(why.code, HP_REJECT_STRIPS);
            assert_string_equal(why.fix, cases[i].fix);
        }
    }
    hp_arena_free(a);
}

/* More strips need less memory, down to what follows the segment. */
static void strips_shrink_the_peak(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = deployed(a, "unet:8", 512, 512, HP_PREC_FP32);
    const int64_t whole = proved(a, g, "dp=1", 1)->role[0].arena_bytes,
                  eight = proved(a, g, "strips=8", 1)->role[0].arena_bytes,
                  many = proved(a, g, "strips=32", 1)->role[0].arena_bytes;
    assert_true(eight < whole && many < eight && many * 2 < whole);
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_keeps_the_work),
        cmocka_unit_test(densenet_joins_nothing),
        cmocka_unit_test(convolutions_read_joined_maps),
        cmocka_unit_test(resnet101_is_convolutions),
        cmocka_unit_test(resnet101_at_8192_needs_its_widest_block),
        cmocka_unit_test(vit_b16_is_products_norms_and_attention),
        cmocka_unit_test(int8_quantises_the_products_of_transformers),
        cmocka_unit_test(int8_keeps_ends_real),
        cmocka_unit_test(listed_layers_stay_real),
        cmocka_unit_test(programs_are_proved),
        cmocka_unit_test(strips_are_of_one_image),
        cmocka_unit_test(strips_shrink_the_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
