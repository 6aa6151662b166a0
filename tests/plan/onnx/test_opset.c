/* test_opset.c - what opsets 22 to 24 brought: which are read, and their operators that are layers (Attention's spellings:
 * test_tokens.c). */
#include "plan/graph/check.h"
#include "plan/nets/act.h"
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

/* Of tokens (1, 16, C). */
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

/* Four heads of queries, two or one of keys and values. */
static void heads_share_keys_and_values(void **state) {
    (void)state;
    for (int kv = 1; kv <= 4; kv *= 2) {
        hp_arena *a = hp_arena_new();
        hp_onnx_model m;
        onnx_writer w = start(a, 23, C);
        const int64_t wide = C / 4 * kv;
        write_tokens(&w);
        onnx_write_floats(&w, "wq", 2, (const int64_t[2]){C, C}, drawn(a, 1, C * C));
        onnx_write_floats(&w, "wk", 2, (const int64_t[2]){C, wide}, drawn(a, 2, C * wide));
        onnx_write_floats(&w, "wv", 2, (const int64_t[2]){C, wide}, drawn(a, 3, C * wide));
        onnx_write_node(&w, "MatMul", "tokens wq", "q");
        onnx_write_node(&w, "MatMul", "tokens wk", "k");
        onnx_write_node(&w, "MatMul", "tokens wv", "v");
        Onnx__NodeProto *n = onnx_write_node(&w, "Attention", "q k v", "y");
        onnx_write_int(&w, n, "q_num_heads", 4);
        onnx_write_int(&w, n, "kv_num_heads", kv);
        const hp_graph *g = parsed(&w, &m);
        const hp_layer *l = &g->layer[g->n_layer - 1];
        assert_int_equal(l->op, HP_ATTENTION);
        assert_true(l->groups == 4 && l->kv_heads == kv && !l->causal);
        assert_int_equal(g->tensor[l->in[0]].c, C);
        assert_int_equal(g->tensor[l->in[1]].c, wide);
        assert_int_equal(g->tensor[l->in[2]].c, wide);
        assert_true(m.output.n_dim == 3 && m.output.dim[1] == SIDE * SIDE && m.output.dim[2] == C);
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opsets_up_to_24_are_read),
        cmocka_unit_test(swish_is_x_times_its_sigmoid),
        cmocka_unit_test(rms_normalization_is_a_layer),
        cmocka_unit_test(heads_share_keys_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
