/* test_token_nets.c - transformers: published parameter counts, shapes, and names in files. */
#include "networks/nets/nets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static hp_graph *build(hp_arena *a, const char *net, int image) {
    hp_graph *g = NULL;
    hp_error err = {0};
    if (hp_net_build(a, net, image, image, 1000, &g, &err) != HP_OK) fail_msg("%s: %s", net, err.text);
    return g;
}

/* torchvision's documentation (num_params), and the contents of GPT-2's files. */
static void counts_are_the_published_ones(void **state) {
    (void)state;
    static const struct {
        const char *net;
        int image;
        int64_t params;
    } rows[] = {{"vit-b16", 224, 86567656},     {"vit-b16", 384, 86859496},  {"vit-l16", 224, 304326632},
                {"vit-h14", 224, 632045800},    {"vit-h14", 518, 633470440}, {"swin-t", 224, 28288354},
                {"swin-b", 224, 87768224},      {"gpt2", 224, 124439808},    {"gpt2-medium", 224, 354823168},
                {"gpt2-large", 224, 774030080}, {"gpt2-xl", 224, 1557611200}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, rows[i].net, rows[i].image);
        if (hp_graph_param_count(g) != rows[i].params)
            fail_msg("%s at %d: %lld parameters, not %lld", rows[i].net, rows[i].image,
                     (long long)hp_graph_param_count(g), (long long)rows[i].params);
        hp_arena_free(a);
    }
}

/* 12 L C^2 + 13 L C for the blocks, (V + S) C for the tables, 2 C for the last norm. */
static void gpts_follow_the_formula(void **state) {
    (void)state;
    static const struct {
        const char *net;
        int64_t l, c, s, v;
    } rows[] = {{"gpt3-175b", 96, 12288, 2048, 50257},
                {"gpt3-13b", 40, 5120, 2048, 50257},
                {"gpt3-6.7b", 32, 4096, 2048, 50257},
                {"gpt:3,24,4,40,300", 3, 24, 40, 300}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = build(a, rows[i].net, 224);
        const int64_t l = rows[i].l, c = rows[i].c;
        assert_int_equal(hp_graph_param_count(g),
                         12 * l * c * c + 13 * l * c + (rows[i].v + rows[i].s) * c + 2 * c);
        assert_int_equal(g->n_unit, l + 1);
        assert_int_equal(hp_graph_ids(g), rows[i].v);
        assert_int_equal(g->image_h, rows[i].s);
        assert_int_equal(g->image_w * g->image_c, 1);
        assert_int_equal(g->classes, rows[i].v);
        hp_arena_free(a);
    }
}

static const hp_param *stored_as(const hp_graph *g, const char *name, int nth) {
    for (int i = 0; i < g->n_param; i++) {
        const char *file = g->param[i].stored.name ? g->param[i].stored.name : g->param[i].name;
        if (strcmp(file, name) == 0 && nth-- == 0) return &g->param[i];
    }
    fail_msg("no parameter in %s", name);
    return NULL;
}

static void files_have_queries_keys_and_values_together(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *vit = build(a, "vit-b16", 224), *gpt = build(a, "gpt2", 224),
                   *swin = build(a, "swin-t", 224);
    for (int k = 0; k < 3; k++) {
        const hp_param *p =
            stored_as(vit, "encoder.layers.encoder_layer_11.self_attention.in_proj_weight", k);
        assert_int_equal(p->stored.dim[0], 3 * 768);
        assert_int_equal(p->stored.first, k * 768 * 768);
        p = stored_as(gpt, "h.11.attn.c_attn.weight", k);
        assert_int_equal(p->stored.dim[1], 3 * 768);
        assert_true(p->stored.turned);
    }
    assert_true(stored_as(swin, "features.5.3.attn.relative_position_bias_table", 0)->stored.turned);
    assert_int_equal(stored_as(vit, "class_token", 0)->stored.n_dim, 3);
    hp_arena_free(a);
}

static void sides_are_multiples_of_the_patch(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err = {0};
    assert_int_equal(hp_net_build(a, "vit-b16", 230, 224, 1000, &g, &err), HP_EPLAN);
    assert_non_null(strstr(err.text, "240x224"));
    assert_int_equal(hp_net_build(a, "vit:2,30,4,4", 28, 28, 10, &g, &err), HP_EUSAGE);
    assert_int_equal(hp_net_build(a, "gpt:2,32,4", 28, 28, 10, &g, &err), HP_EUSAGE);
    assert_int_equal(hp_net_build(a, "swin-t", 225, 300, 1000, &g, &err), HP_OK);
    hp_arena_free(a);
}

/* torchvision.models.convnext_tiny's state dict: 3, 3, 9 and 3 blocks of 9 tensors each. */
static void convnext_has_torchvisions_names(void **state) {
    static const struct {
        const char *name;
        int32_t dim[4];
    } some[] = {{"features.0.0.weight", {96, 3, 4, 4}},
                {"features.1.0.block.0.weight", {96, 1, 7, 7}},
                {"features.1.2.block.2.bias", {96}},
                {"features.3.0.block.3.weight", {768, 192}},
                {"features.4.1.weight", {384, 192, 2, 2}},
                {"features.5.8.layer_scale", {384, 1, 1, 1}},
                {"features.7.2.block.5.weight", {768, 3072}},
                {"classifier.0.weight", {768}},
                {"classifier.2.bias", {1000}}};
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = build(a, "convnext-t", 224);
    assert_int_equal(g->n_param, 4 + 18 * 9 + 3 * 4 + 4);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        int p = 0;
        while (p < g->n_param && strcmp(g->param[p].name, some[i].name) != 0) p++;
        if (p == g->n_param) fail_msg("no %s", some[i].name);
        assert_memory_equal(g->param[p].dim, some[i].dim, sizeof some[i].dim);
        const bool factor =
            strstr(some[i].name, "layer_scale") != NULL; /* files store (C, 1, 1), initialised to 1e-6 */
        assert_int_equal(g->param[p].stored.n_dim, factor ? 3 : 0);
        if (factor) assert_true(g->param[p].init == HP_INIT_CONSTANT && g->param[p].init_scale == 1e-6);
    }
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convnext_has_torchvisions_names),
        cmocka_unit_test(counts_are_the_published_ones),
        cmocka_unit_test(gpts_follow_the_formula),
        cmocka_unit_test(files_have_queries_keys_and_values_together),
        cmocka_unit_test(sides_are_multiples_of_the_patch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
