/* test_json.c - graphs as JSON: the round trip changes nothing, and invalid text never makes a graph. */
#include "networks/graph/graph_check.h"
#include "networks/graph/graph_json.h"
#include "networks/graph/graph_resize.h"
#include "networks/nets/net_act.h"
#include "tests/support/plan/built/append_layers.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* --- the round trip --- */

static void assert_same(hp_arena *a, const hp_graph *g) {
    hp_graph *back = NULL;
    hp_error err = {0};
    const char *json = hp_graph_json(a, g);
    if (hp_graph_from_json(a, json, &back, &err) != HP_OK) fail_msg("%s: %s", g->net, err.text);
    assert_string_equal(hp_graph_text(a, back), hp_graph_text(a, g));
    assert_string_equal(hp_graph_json(a, back), json);
    assert_int_equal(back->n_param, g->n_param);
    assert_int_equal(back->n_unit, g->n_unit);
    for (int p = 0; p < g->n_param; p++) { /* plans store parameters by number */
        assert_string_equal(back->param[p].name, g->param[p].name);
        assert_true(back->param[p].fan_in == g->param[p].fan_in && back->param[p].count == g->param[p].count);
    }
    for (int u = 0; u <= g->n_unit; u++) assert_int_equal(back->unit_first[u], g->unit_first[u]);
}

static void built_in_networks_survive_the_round_trip(void **state) {
    static const char *const nets[] = {"cnn",         "resnet18",       "resnet101",   "vgg19",
                                       "mobilenetv2", "densenet121",    "resnet-v1-8", "resnet-v2-20:131",
                                       "unet:4",      "amoebanetd:3,32"};
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        hp_arena *a = hp_arena_new();
        hp_graph *g = NULL;
        assert_int_equal(hp_net_build(a, nets[i], 97, 64, 7, &g, NULL), HP_OK);
        assert_same(a, g);
        hp_arena_free(a);
    }
}

/* --- another size --- */

/* The oracle: the network built at that size. */
static void a_resized_network_is_the_one_built_at_that_size(void **state) {
    static const char *const nets[] = {"cnn",         "resnet18",    "resnet101",   "vgg19",
                                       "mobilenetv2", "densenet121", "resnet-v1-8", "unet:4"};
    static const int sizes[][2] = {{97, 64}, {225, 224}, {160, 133}},
                     even[][2] = {{97, 64}, {225, 224}, {161, 128}};
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        hp_arena *a = hp_arena_new();
        hp_graph *built[3], *other;
        hp_error err = {0};
        const int(*size)[2] = strncmp(nets[i], "unet", 4) == 0 ? even : sizes; /* maps meet after 4 pools */
        for (int k = 0; k < 3; k++)
            assert_int_equal(hp_net_build(a, nets[i], size[k][0], size[k][1], 7, &built[k], NULL), HP_OK);
        for (int k = 0; k < 9; k++) {
            if (hp_graph_resize(a, built[k / 3], size[k % 3][0], size[k % 3][1], &other, &err) != HP_OK)
                fail_msg("%s: %s", nets[i], err.text);
            assert_string_equal(hp_graph_json(a, other), hp_graph_json(a, built[k % 3]));
        }
        hp_arena_free(a);
    }
}

/* Every operator, activation and number that built-in networks do not have. */
static hp_graph *odd_graph(hp_arena *a) {
    hp_builder b = hp_builder_start(a, "odd", 33, 20, 6, NULL);
    const hp_layer conv = {.op = HP_CONV,
                           .window.kh = 3,
                           .window.kw = 2,
                           .window.stride_h = 2,
                           .window.pad_h = 1,
                           .window.dil_w = 3,
                           .out_h = 18,
                           .out_w = 16,
                           .n_param = 2},
                   convt = {.op = HP_CONVT,
                            .window.kh = 3,
                            .window.kw = 3,
                            .window.stride_h = 2,
                            .window.stride_w = 2,
                            .groups = 2,
                            .window.pad_h = 1};
    int x = append_conv_as(&b, 0, "conv", 4, &conv);
    x = hp_build_act_with(&b, x, "clip", HP_ACT_CLIP, -0.1, 1e30);
    x = append_conv_as(&b, x, "convt", 6, &convt);
    x = append_scale(&b, x, "scale", true);
    const int gate = hp_build_act(&b, hp_build_adaptpool(&b, x, "pool", 1, 1), "sigmoid", HP_ACT_SIGMOID);
    hp_build_unit(&b);
    x = hp_build_mul(&b, x, gate, "mul");
    x = hp_build_resize(&b, x, "resize", 50, 31, HP_BILINEAR, HP_CORNERS_ALIGN);
    x = hp_build_dropout(&b, hp_build_pad(&b, x, "pad", 52, 32), "drop", 0.3);
    append_softmax(&b, x, "softmax");
    hp_graph *g = NULL;
    assert_int_equal(hp_builder_finish(&b, &g), HP_OK);
    return g;
}

/* Resizing by whole strides and back, including windows with counted outputs, pads and resizes. */
static void resizing_back_changes_nothing(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *g = odd_graph(a);
    hp_graph *large, *back;
    hp_error err = {0};
    if (hp_graph_resize(a, g, 103, 53, &large, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_tensor *y = &large->tensor[large->n_tensor - 1];
    assert_int_equal(y->h,
                     3 * 50 + 2); /* resized from 35 x 33 to 50 x 31, now three times that; padded by 2 and
                                   * 1 */
    assert_int_equal(y->w, 3 * 31 + 1);
    assert_int_equal(hp_graph_resize(a, large, 33, 20, &back, &err), HP_OK);
    assert_string_equal(hp_graph_json(a, back), hp_graph_json(a, g));
    assert_int_equal(hp_graph_resize(a, g, 34, 21, &large, &err), HP_EPLAN);
    assert_non_null(strstr(err.text, "resize"));
    hp_arena_free(a);
}

static void odd_graphs_survive_the_round_trip(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    assert_same(a, odd_graph(a));
    hp_arena_free(a);
}

/* --- text from strangers --- */

/* Either rejected with a message, or a graph that passes every check and can be written again. */
static void assert_harmless(const char *json) {
    hp_arena *a = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err = {0};
    const hp_status s = hp_graph_from_json(a, json, &g, &err);
    if (s == HP_OK) {
        assert_int_equal(hp_graph_check(g, &err), HP_OK);
        assert_same(a, g);
    } else {
        assert_int_equal(s, HP_EDATA);
        assert_true(err.text[0] != 0);
    }
    hp_arena_free(a);
}

static void no_changed_byte_and_no_cut_is_harmful(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    char *text = hp_arena_strdup(a, hp_graph_json(a, odd_graph(a)));
    static const char with[] = "\"{},[-9e\xff";
    const size_t n = strlen(text);
    const bool all = law_all("each byte of a graph becomes each of nine others, not one of them");
    for (size_t i = 0; i < n; i++) {
        const char old = text[i];
        for (const char *c = with; *c; c++) {
            if (!all && i % (sizeof with - 1) != (size_t)(c - with)) continue;
            text[i] = *c;
            assert_harmless(text);
        }
        text[i] = 0;
        assert_harmless(text);
        text[i] = old;
    }
    hp_arena_free(a);
}

/* Every number becomes an extreme one. */
static void no_number_is_harmful(void **state) {
    static const char *const extremes[] = {"-1",         "0",           "1",        "7",          "65536",
                                           "2147483647", "-2147483648", "16777216", "4294967297", "1e308",
                                           "0.5",        "\"1\"",       "null"};
    (void)state;
    hp_arena *a = hp_arena_new();
    const char *text = hp_graph_json(a, odd_graph(a));
    for (const char *at = text; *at; at++) {
        if (!strchr(":[,", *at) || !strchr("-0123456789", at[1]) || !at[1]) continue;
        const char *end = at + 1 + strspn(at + 1, "-+.e0123456789");
        for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
            char *changed = hp_arena_alloc(a, strlen(text) + 16);
            sprintf(changed, "%.*s%s%s", (int)(at + 1 - text), text, extremes[i], end);
            assert_harmless(changed);
        }
    }
    hp_arena_free(a);
}

static void the_message_names_the_layer(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err = {0};
    const char *json = "{\"net\":\"x\",\"image\":[8,8,3],\"classes\":3,\"layers\":["
                       "{\"name\":\"image\",\"op\":\"input\",\"in\":[],\"shape\":[8,8,3]},"
                       "{\"name\":\"relu\",\"op\":\"act\",\"in\":[1],\"shape\":[8,8,3],\"act\":\"relu\"}]}";
    assert_int_equal(hp_graph_from_json(a, json, &g, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "layer 1"));
    assert_non_null(strstr(err.text, "not computed before"));
    hp_arena_free(a);
}

/* Tensor-parallel ranks hold summands of a row layer's output, which only a sum may read. */
static void only_sums_read_row_layers(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_error err = {0};
    hp_graph *g = NULL;
    int refused = 0;
    assert_int_equal(hp_net_build(a, "gpt:1,8,2,4,11", 4, 1, 11, &g, &err), HP_OK);
    assert_int_equal(hp_graph_check(g, &err), HP_OK);
    for (int l = 1; l < g->n_layer; l++) {
        hp_layer *layer = &g->layer[l];
        const hp_layer kept = *layer;
        for (int k = 0; k < layer->n_in; k++) /* past the sum */
            if (g->layer[layer->in[k]].op == HP_SUM) layer->in[k] = g->layer[layer->in[k]].in[0];
        if (layer->op == HP_EMBEDDING) layer->tp = HP_TP_NONE;
        if (memcmp(&kept, layer, sizeof kept) == 0) continue;
        assert_int_equal(hp_graph_check(g, &err), HP_EDATA);
        assert_non_null(strstr(err.text, "row layer"));
        *layer = kept;
        refused++;
    }
    assert_true(refused >= 3);
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_networks_survive_the_round_trip),
        cmocka_unit_test(odd_graphs_survive_the_round_trip),
        cmocka_unit_test(a_resized_network_is_the_one_built_at_that_size),
        cmocka_unit_test(resizing_back_changes_nothing),
        cmocka_unit_test(no_changed_byte_and_no_cut_is_harmful),
        cmocka_unit_test(no_number_is_harmful),
        cmocka_unit_test(the_message_names_the_layer),
        cmocka_unit_test(only_sums_read_row_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
