/* test_acts.c - activations from ONNX: as operators, and as the nodes that exporters write for them. One layer is
 * left, and it computes what the nodes say. */
#include "plan/graph/acts.h"
#include "plan/graph/check.h"
#include "plan/onnx/onnx.h"
#include "tests/support/onnx/onnx_write.h"
#include "tests/support/onnx/plain_graph.h"
#include "tests/support/plan/exact_activation.h"

#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef void nodes_fn(onnx_writer *w);

/* "x op constant": a node with a constant of its own. */
static void with_number(onnx_writer *w, const char *op, const char *x, float value, const char *y) {
    const char *name = hp_arena_printf(w->arena, "%s.number", y);
    onnx_write_floats(w, name, 0, NULL, &value);
    onnx_write_node(w, op, hp_arena_printf(w->arena, "%s %s", x, name), y);
}

static void gelu_operator(onnx_writer *w) {
    onnx_write_node(w, "Gelu", "x", "y");
}

static void gelu_tanh_operator(onnx_writer *w) {
    onnx_write_text(w, onnx_write_node(w, "Gelu", "x", "y"), "approximate", "tanh");
}

/* torch.onnx before opset 20 */
static void gelu_of_torch(onnx_writer *w) {
    with_number(w, "Div", "x", 1.41421356f, "scaled");
    onnx_write_node(w, "Erf", "scaled", "erf");
    with_number(w, "Add", "erf", 1, "one");
    onnx_write_node(w, "Mul", "x one", "twice");
    with_number(w, "Mul", "twice", 0.5f, "y");
}

/* x / 2 first, a factor instead of the quotient, operands swapped */
static void gelu_swapped(onnx_writer *w) {
    with_number(w, "Mul", "x", 0.70710678f, "scaled");
    with_number(w, "Mul", "x", 0.5f, "half");
    onnx_write_node(w, "Erf", "scaled", "erf");
    with_number(w, "Add", "erf", 1, "one");
    onnx_write_node(w, "Mul", "one half", "y");
}

static void gelu_half_gate(onnx_writer *w) {
    with_number(w, "Div", "x", 1.41421356f, "scaled");
    onnx_write_node(w, "Erf", "scaled", "erf");
    with_number(w, "Add", "erf", 1, "one");
    with_number(w, "Mul", "one", 0.5f, "half");
    onnx_write_node(w, "Mul", "x half", "y");
}

static void tanh_of_cube(onnx_writer *w) {
    with_number(w, "Mul", "cube", 0.044715f, "small");
    onnx_write_node(w, "Add", "x small", "sum");
    with_number(w, "Mul", "sum", 0.79788456f, "argument");
    onnx_write_node(w, "Tanh", "argument", "tanh");
    with_number(w, "Add", "tanh", 1, "one");
}

static void gelu_tanh_of_torch(onnx_writer *w) {
    onnx_write_node(w, "Mul", "x x", "square");
    onnx_write_node(w, "Mul", "x square", "cube");
    tanh_of_cube(w);
    onnx_write_node(w, "Mul", "x one", "twice");
    with_number(w, "Mul", "twice", 0.5f, "y");
}

static void gelu_tanh_of_power(onnx_writer *w) {
    with_number(w, "Pow", "x", 3, "cube");
    tanh_of_cube(w);
    with_number(w, "Mul", "x", 0.5f, "half");
    onnx_write_node(w, "Mul", "half one", "y");
}

static void silu_of_torch(onnx_writer *w) {
    onnx_write_node(w, "Sigmoid", "x", "gate");
    onnx_write_node(w, "Mul", "x gate", "y");
}

static void silu_swapped(onnx_writer *w) {
    onnx_write_node(w, "Sigmoid", "x", "gate");
    onnx_write_node(w, "Mul", "gate x", "y");
}

/* --- what looks like them --- */

static void another_factor(onnx_writer *w) {
    with_number(w, "Div", "x", 1.5f, "scaled");
    onnx_write_node(w, "Erf", "scaled", "erf");
    with_number(w, "Add", "erf", 1, "one");
    onnx_write_node(w, "Mul", "x one", "twice");
    with_number(w, "Mul", "twice", 0.5f, "y");
}

static void not_halved(onnx_writer *w) {
    with_number(w, "Div", "x", 1.41421356f, "scaled");
    onnx_write_node(w, "Erf", "scaled", "erf");
    with_number(w, "Add", "erf", 1, "one");
    onnx_write_node(w, "Mul", "x one", "y");
}

static void another_cube(onnx_writer *w) {
    with_number(w, "Pow", "x", 2, "cube");
    tanh_of_cube(w);
    with_number(w, "Mul", "x", 0.5f, "half");
    onnx_write_node(w, "Mul", "half one", "y");
}

static void gate_of_another(onnx_writer *w) {
    with_number(w, "Mul", "x", 2, "other");
    onnx_write_node(w, "Sigmoid", "other", "gate");
    onnx_write_node(w, "Mul", "x gate", "y");
}

/* --- laws --- */

enum { SIDE = 5, CHANNELS = 3 };

static hp_onnx_model parse(hp_arena *a, nodes_fn *nodes) {
    const int64_t shape[4] = {1, CHANNELS, SIDE, SIDE};
    onnx_writer w = onnx_writer_start(a, 20);
    hp_onnx_model m;
    hp_error err = {0};
    size_t size;
    onnx_write_input(&w, "x", 4, shape);
    nodes(&w);
    onnx_write_output(&w, "y");
    const void *data = onnx_writer_pack(&w, &size);
    if (hp_onnx_parse(a, "acts.onnx", data, size, false, 0, 0, true, &m, &err) != HP_OK)
        fail_msg("%s", err.text);
    if (hp_graph_check(m.graph, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

static const double *run_model(hp_arena *a, const hp_onnx_model *m, const double *image) {
    const float **param = HP_NEW(a, const float *, m->graph->n_param + 1);
    for (int i = 0; i < m->graph->n_param; i++) param[i] = m->param[i].data;
    plain p = {.g = m->graph, .param = param};
    return plain_run(a, &p, image);
}

static double *drawn_image(hp_arena *a) {
    double *image = HP_NEW(a, double, SIDE *SIDE *CHANNELS);
    for (int i = 0; i < SIDE * SIDE * CHANNELS; i++) image[i] = (i - 37) / 8.0;
    return image;
}

static void become_one_layer(hp_act act, nodes_fn *const *nodes, int n) {
    for (int k = 0; k < n; k++) {
        hp_arena *a = hp_arena_new();
        const hp_onnx_model m = parse(a, nodes[k]);
        const double *image = drawn_image(a), *y = run_model(a, &m, image);
        if (m.graph->n_layer != 2 || m.graph->layer[1].act != (int32_t)act)
            fail_msg("nodes %d: %d layers, the last one %s", k, m.graph->n_layer,
                     hp_act_names[m.graph->layer[m.graph->n_layer - 1].act]);
        for (int i = 0; i < SIDE * SIDE * CHANNELS; i++) /* the constants are float32 */
            assert_true(fabs(y[i] - exact_activation(&(hp_layer){.act = act}, image[i])) <=
                        1e-6 * (1 + fabs(y[i])));
        hp_arena_free(a);
    }
}

static void every_way_of_writing_is_one_layer(void **state) {
    static nodes_fn *const gelu[] = {gelu_operator, gelu_of_torch, gelu_swapped, gelu_half_gate},
                           *const by_tanh[] = {gelu_tanh_operator, gelu_tanh_of_torch, gelu_tanh_of_power},
                           *const silu[] = {silu_of_torch, silu_swapped};
    (void)state;
    become_one_layer(HP_ACT_GELU, gelu, 4);
    become_one_layer(HP_ACT_GELU_TANH, by_tanh, 3);
    become_one_layer(HP_ACT_SILU, silu, 2);
}

static double by_hand(int k, double x) {
    if (k == 0) return x * (1 + erf(x / 1.5)) / 2;
    if (k == 1) return x * (1 + erf(x / sqrt(2)));
    if (k == 2) return x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x))) / 2;
    return x / (1 + exp(-2 * x));
}

static void what_looks_like_one_stays_what_it_is(void **state) {
    static nodes_fn *const nodes[] = {another_factor, not_halved, another_cube, gate_of_another};
    (void)state;
    for (int k = 0; k < 4; k++) {
        hp_arena *a = hp_arena_new();
        const hp_onnx_model m = parse(a, nodes[k]);
        const double *image = drawn_image(a), *y = run_model(a, &m, image);
        for (int i = 0; i < SIDE * SIDE * CHANNELS; i++)
            assert_true(fabs(y[i] - by_hand(k, image[i])) <= 1e-5 * (1 + fabs(y[i])));
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_way_of_writing_is_one_layer),
                                       cmocka_unit_test(what_looks_like_one_stays_what_it_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
