/* test_acts.c - activations from ONNX: as operators, and as exporters' sequences of nodes. Each becomes one
 * layer that computes what the nodes define. */
#include "networks/graph/acts.h"
#include "networks/graph/graph_check.h"
#include "networks/onnx/onnx.h"
#include "tests/support/onnx/onnx_write.h"
#include "tests/support/onnx/plain_graph.h"
#include "tests/support/plan/exact_activation.h"

#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef void nodes_fn(onnx_writer *w);

/* "x op constant": a node with its own constant. */
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

static void mish_operator(onnx_writer *w) {
    onnx_write_node(w, "Mish", "x", "y");
}

/* torch.onnx before opset 18 */
static void mish_of_torch(onnx_writer *w) {
    onnx_write_node(w, "Softplus", "x", "softplus");
    onnx_write_node(w, "Tanh", "softplus", "gate");
    onnx_write_node(w, "Mul", "x gate", "y");
}

static void mish_swapped(onnx_writer *w) {
    onnx_write_node(w, "Softplus", "x", "softplus");
    onnx_write_node(w, "Tanh", "softplus", "gate");
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

static void softplus_of_another(onnx_writer *w) {
    with_number(w, "Mul", "x", 2, "other");
    onnx_write_node(w, "Softplus", "other", "softplus");
    onnx_write_node(w, "Tanh", "softplus", "gate");
    onnx_write_node(w, "Mul", "x gate", "y");
}

static void gate_of_another(onnx_writer *w) {
    with_number(w, "Mul", "x", 2, "other");
    onnx_write_node(w, "Sigmoid", "other", "gate");
    onnx_write_node(w, "Mul", "x gate", "y");
}

/* --- laws --- */

enum { SIDE = 5, CHANNELS = 3 };

static onnx_writer writer_of_map(hp_arena *a) {
    const int64_t shape[4] = {1, CHANNELS, SIDE, SIDE};
    onnx_writer w = onnx_writer_start(a, 20);
    onnx_write_input(&w, "x", 4, shape);
    return w;
}

static hp_onnx_model parse_written(hp_arena *a, onnx_writer *w) {
    hp_onnx_model m;
    hp_error err = {0};
    size_t size;
    onnx_write_output(w, "y");
    const void *data = onnx_writer_pack(w, &size);
    if (hp_onnx_parse(a, "acts.onnx", data, size, false, 0, 0, true, &m, &err) != HP_OK)
        fail_msg("%s", err.text);
    if (hp_graph_check(m.graph, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

static hp_onnx_model parse(hp_arena *a, nodes_fn *nodes) {
    onnx_writer w = writer_of_map(a);
    nodes(&w);
    return parse_written(a, &w);
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
                           *const silu[] = {silu_of_torch, silu_swapped},
                           *const mish[] = {mish_operator, mish_of_torch, mish_swapped};
    (void)state;
    become_one_layer(HP_ACT_GELU, gelu, 4);
    become_one_layer(HP_ACT_GELU_TANH, by_tanh, 3);
    become_one_layer(HP_ACT_SILU, silu, 2);
    become_one_layer(HP_ACT_MISH, mish, 3);
}

static double by_hand(int k, double x) {
    if (k == 0) return x * (1 + erf(x / 1.5)) / 2;
    if (k == 1) return x * (1 + erf(x / sqrt(2)));
    if (k == 2) return x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x))) / 2;
    if (k == 3) return x / (1 + exp(-2 * x));
    return x * tanh(log(1 + exp(2 * x)));
}

static void what_looks_like_one_stays_what_it_is(void **state) {
    static nodes_fn *const nodes[] = {another_factor, not_halved, another_cube, gate_of_another,
                                      softplus_of_another};
    (void)state;
    for (int k = 0; k < 5; k++) {
        hp_arena *a = hp_arena_new();
        const hp_onnx_model m = parse(a, nodes[k]);
        const double *image = drawn_image(a), *y = run_model(a, &m, image);
        for (int i = 0; i < SIDE * SIDE * CHANNELS; i++)
            assert_true(fabs(y[i] - by_hand(k, image[i])) <= 1e-5 * (1 + fabs(y[i])));
        hp_arena_free(a);
    }
}

/* --- operators, by the formulas of ONNX's operator schemas --- */

typedef struct act_operator {
    const char *name, *attribute[2];
    float value[2];
    double (*says)(double x, double a, double b);
} act_operator;

static double says_elu(double x, double a, double b) {
    (void)b;
    return x < 0 ? a * (exp(x) - 1) : x;
}

static double says_celu(double x, double a, double b) {
    (void)b;
    return fmax(0, x) + fmin(0, a * (exp(x / a) - 1));
}

static double says_selu(double x, double a, double b) {
    return x <= 0 ? b * (a * exp(x) - a) : b * x;
}

static double says_softplus(double x, double a, double b) {
    (void)a, (void)b;
    return log(exp(x) + 1);
}

static double says_softsign(double x, double a, double b) {
    (void)a, (void)b;
    return x / (1 + fabs(x));
}

static double says_thresholded(double x, double a, double b) {
    (void)b;
    return x > a ? x : 0;
}

static double says_hardsigmoid(double x, double a, double b) {
    return fmax(0, fmin(1, a * x + b));
}

static double says_leaky(double x, double a, double b) {
    (void)b;
    return x < 0 ? a * x : x;
}

static const act_operator operators[] = {
    {"Elu", {"alpha", NULL}, {1.5f, 0}, says_elu},
    {"Elu", {NULL, NULL}, {1, 0}, says_elu},
    {"Celu", {"alpha", NULL}, {2.5f, 0}, says_celu},
    {"Celu", {NULL, NULL}, {1, 0}, says_celu},
    {"Selu", {"alpha", "gamma"}, {2, 3}, says_selu},
    {"Selu", {NULL, NULL}, {1.67326319217681884765625f, 1.05070102214813232421875f}, says_selu},
    {"Softplus", {NULL, NULL}, {0, 0}, says_softplus},
    {"Softsign", {NULL, NULL}, {0, 0}, says_softsign},
    {"ThresholdedRelu", {"alpha", NULL}, {2, 0}, says_thresholded},
    {"ThresholdedRelu", {NULL, NULL}, {1, 0}, says_thresholded},
    {"HardSigmoid", {"alpha", "beta"}, {0.5f, 0.6f}, says_hardsigmoid},
    {"HardSigmoid", {NULL, NULL}, {0.2f, 0.5f}, says_hardsigmoid},
    {"LeakyRelu", {"alpha", NULL}, {0.1f, 0}, says_leaky},
    {"LeakyRelu", {NULL, NULL}, {0.01f, 0}, says_leaky},
};

static void write_float(onnx_writer *w, Onnx__NodeProto *n, const char *name, float v) {
    Onnx__AttributeProto *a = onnx_write_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = v;
}

static void operators_are_what_onnx_says(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof operators / sizeof *operators; k++) {
        const act_operator *o = &operators[k];
        hp_arena *a = hp_arena_new();
        onnx_writer w = writer_of_map(a);
        Onnx__NodeProto *node = onnx_write_node(&w, o->name, "x", "y");
        for (int i = 0; i < 2; i++)
            if (o->attribute[i]) write_float(&w, node, o->attribute[i], o->value[i]);
        const hp_onnx_model m = parse_written(a, &w);
        const double *image = drawn_image(a), *y = run_model(a, &m, image);
        for (int i = 0; i < SIDE * SIDE * CHANNELS; i++) {
            const double want = o->says(image[i], (double)o->value[0], (double)o->value[1]);
            if (fabs(y[i] - want) > 1e-6 * (1 + fabs(want)))
                fail_msg("%s of %g is %g, not %g", o->name, image[i], y[i], want);
        }
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_way_of_writing_is_one_layer),
                                       cmocka_unit_test(what_looks_like_one_stays_what_it_is),
                                       cmocka_unit_test(operators_are_what_onnx_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
