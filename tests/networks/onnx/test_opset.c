/* test_opset.c - opsets 22 to 24: which are accepted, and their operators that are whole layers (Attention's
 * spellings: test_tokens.c). */
#include "networks/graph/graph_check.h"
#include "networks/nets/net_act.h"
#include "tests/support/onnx/onnx_odd.h"
#include "tests/support/onnx/plain_graph.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { C = 8, SIDE = 4 };

static onnx_writer start(hp_arena *a, int opset, int64_t channels) {
    const int64_t dim[4] = {1, channels, SIDE, SIDE};
    onnx_writer w = onnx_writer_start(a, opset);
    onnx_write_input(&w, "x", 4, dim);
    return w;
}

static const hp_graph *parsed(onnx_writer *w, hp_onnx_model *m) {
    hp_error err = {0};
    onnx_write_output(w, "y");
    if (odd_parse(w, 0, 0, m, &err) != HP_OK) fail_msg("%s", err.text);
    if (hp_graph_check(m->graph, &err) != HP_OK) fail_msg("%s", err.text);
    return m->graph;
}

static void opsets_up_to_24_are_read(void **state) {
    (void)state;
    for (int opset = 7; opset <= 26; opset++) {
        hp_arena *a = hp_arena_new();
        hp_onnx_model m;
        hp_error err = {0};
        onnx_writer w = start(a, opset, 3);
        onnx_write_node(&w, "Relu", "x", "y");
        onnx_write_output(&w, "y");
        const hp_status s = odd_parse(&w, 0, 0, &m, &err);
        assert_int_equal(s, opset <= 24 ? HP_OK : HP_EDATA);
        if (s != HP_OK) assert_non_null(strstr(err.text, "export with opset 13 to 24"));
        hp_arena_free(a);
    }
}

static void swish_is_x_times_its_sigmoid(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_onnx_model m;
    double image[3 * SIDE * SIDE];
    onnx_writer w = start(a, 24, 3);
    onnx_write_node(&w, "Swish", "x", "y");
    const hp_graph *g = parsed(&w, &m);
    for (int i = 0; i < 3 * SIDE * SIDE; i++) image[i] = (i - 20) / 4.0;
    plain p = {.g = g};
    const double *y = plain_run(a, &p, image);
    for (int i = 0; i < 3 * SIDE * SIDE; i++)
        assert_true(fabs(y[i] - image[i] / (1 + exp(-image[i]))) <= 1e-12);
    hp_arena_free(a);
}

/* Writes tokens (1, 16, C). */
static void write_tokens(onnx_writer *w) {
    onnx_write_integers(w, "flat", 1, (const int64_t[1]){3}, (const int64_t[3]){1, C, -1});
    onnx_write_node(w, "Reshape", "x flat", "rows");
    onnx_write_ints(w, onnx_write_node(w, "Transpose", "rows", "tokens"), "perm", 3,
                    (const int64_t[3]){0, 2, 1});
}

static void rms_normalization_is_a_layer(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_onnx_model m;
    onnx_writer w = start(a, 23, C);
    const float *gamma = drawn(a, 1, C);
    onnx_write_floats(&w, "gamma", 1, (const int64_t[1]){C}, gamma);
    write_tokens(&w);
    onnx_write_node(&w, "RMSNormalization", "tokens gamma", "y");
    const hp_graph *g = parsed(&w, &m);
    const hp_layer *l = &g->layer[g->n_layer - 1];
    assert_int_equal(l->op, HP_RMSNORM);
    assert_true(fabs(l->eps - 1e-5) < 1e-11);
    assert_memory_equal(m.param[l->param[0]].data, gamma, C * sizeof *gamma);
    hp_arena_free(a);
}

/* Q, K, V computed from `tokens`. */
static void write_qkv(onnx_writer *w, int64_t kv_wide) {
    onnx_write_floats(w, "wq", 2, (const int64_t[2]){C, C}, drawn(w->arena, 1, C * C));
    onnx_write_floats(w, "wk", 2, (const int64_t[2]){C, kv_wide}, drawn(w->arena, 2, C * kv_wide));
    onnx_write_floats(w, "wv", 2, (const int64_t[2]){C, kv_wide}, drawn(w->arena, 3, C * kv_wide));
    onnx_write_node(w, "MatMul", "tokens wq", "q");
    onnx_write_node(w, "MatMul", "tokens wk", "k");
    onnx_write_node(w, "MatMul", "tokens wv", "v");
}

/* Four heads of queries, two or one of keys and values. */
static void heads_share_keys_and_values(void **state) {
    (void)state;
    for (int kv = 1; kv <= 4; kv *= 2) {
        hp_arena *a = hp_arena_new();
        hp_onnx_model m;
        onnx_writer w = start(a, 23, C);
        write_tokens(&w);
        write_qkv(&w, C / 4 * kv);
        Onnx__NodeProto *n = onnx_write_node(&w, "Attention", "q k v", "y");
        onnx_write_int(&w, n, "q_num_heads", 4);
        onnx_write_int(&w, n, "kv_num_heads", kv);
        const hp_graph *g = parsed(&w, &m);
        const hp_layer *l = &g->layer[g->n_layer - 1];
        assert_int_equal(l->op, HP_ATTENTION);
        assert_true(l->groups == 4 && l->attention.kv_heads == kv && !l->attention.causal);
        assert_int_equal(g->tensor[l->in[0]].c, C);
        assert_int_equal(g->tensor[l->in[1]].c, C / 4 * kv);
        assert_int_equal(g->tensor[l->in[2]].c, C / 4 * kv);
        assert_true(m.output.n_dim == 3 && m.output.dim[1] == SIDE * SIDE && m.output.dim[2] == C);
        hp_arena_free(a);
    }
}

/* A bias by relative position, like Swin's: for heads, tokens, tokens. */
static void an_attn_mask_may_be_a_bias(void **state) {
    enum { HEADS = 2, PLACES = 2 * SIDE - 1, L = SIDE * SIDE };
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_onnx_model m;
    onnx_writer w = start(a, 23, C);
    const float *table = drawn(a, 9, HEADS * PLACES * PLACES);
    float bias[HEADS * L * L];
    for (int e = 0; e < HEADS * L * L; e++) {
        const int i = e / L % L, j = e % L;
        bias[e] = table[e / L / L * PLACES * PLACES + (i / SIDE - j / SIDE + SIDE - 1) * PLACES + i % SIDE -
                        j % SIDE + SIDE - 1];
    }
    write_tokens(&w);
    write_qkv(&w, C);
    onnx_write_floats(&w, "bias", 3, (const int64_t[3]){HEADS, L, L}, bias);
    Onnx__NodeProto *n = onnx_write_node(&w, "Attention", "q k v bias", "y");
    onnx_write_int(&w, n, "q_num_heads", HEADS);
    onnx_write_int(&w, n, "kv_num_heads", HEADS);
    const hp_graph *g = parsed(&w, &m);
    const hp_layer *l = &g->layer[g->n_layer - 1];
    assert_true(l->op == HP_ATTENTION && l->n_param == 1 && !l->attention.causal);
    assert_int_equal(g->param[l->param[0]].kind, HP_PARAM_TABLE);
    assert_memory_equal(m.param[l->param[0]].data, table, HEADS * PLACES * PLACES * sizeof *table);
    hp_arena_free(a);
}

/* Column by column: a later token in the file is not later in row order. */
static void later_tokens_of_another_order_are_refused(void **state) {
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        hp_arena *a = hp_arena_new();
        hp_onnx_model m;
        hp_error err = {0};
        onnx_writer w = start(a, 23, C);
        onnx_write_integers(&w, "flat", 1, (const int64_t[1]){3}, (const int64_t[3]){1, SIDE * SIDE, C});
        onnx_write_ints(&w, onnx_write_node(&w, "Transpose", "x", "turned"), "perm", 4,
                        turned ? (const int64_t[4]){0, 3, 2, 1} : (const int64_t[4]){0, 2, 3, 1});
        onnx_write_node(&w, "Reshape", "turned flat", "tokens");
        write_qkv(&w, C);
        Onnx__NodeProto *n = onnx_write_node(&w, "Attention", "q k v", "y");
        onnx_write_int(&w, n, "q_num_heads", 1);
        onnx_write_int(&w, n, "kv_num_heads", 1);
        onnx_write_int(&w, n, "is_causal", 1);
        onnx_write_output(&w, "y");
        const hp_status s = odd_parse(&w, 0, 0, &m, &err);
        if (turned) {
            assert_int_equal(s, HP_EDATA);
            assert_non_null(strstr(err.text, "masks attention over tokens that are not in one order"));
        } else if (s != HP_OK) {
            fail_msg("%s", err.text);
        }
        hp_arena_free(a);
    }
}

/* Norms of a map whose samples are not the first dimension. */
static void norms_of_turned_maps_are_refused(void **state) {
    static const int64_t perm[3][4] = {{0, 2, 1, 3}, {2, 1, 0, 3}, {0, 2, 3, 1}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        hp_arena *a = hp_arena_new();
        hp_onnx_model m;
        hp_error err = {0};
        onnx_writer w = start(a, 21, C);
        onnx_write_floats(&w, "one", 1, (const int64_t[1]){i == 1 ? C : SIDE}, drawn(a, 5, C));
        onnx_write_ints(&w, onnx_write_node(&w, "Transpose", "x", "turned"), "perm", 4, perm[i]);
        onnx_write_node(&w, "InstanceNormalization", "turned one one", "y");
        onnx_write_output(&w, "y");
        assert_int_equal(odd_parse(&w, 0, 0, &m, &err), HP_EDATA);
        assert_non_null(strstr(err.text, "needs an input of (N, C, H, W)"));
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opsets_up_to_24_are_read),
        cmocka_unit_test(swish_is_x_times_its_sigmoid),
        cmocka_unit_test(rms_normalization_is_a_layer),
        cmocka_unit_test(heads_share_keys_and_values),
        cmocka_unit_test(an_attn_mask_may_be_a_bias),
        cmocka_unit_test(later_tokens_of_another_order_are_refused),
        cmocka_unit_test(norms_of_turned_maps_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
