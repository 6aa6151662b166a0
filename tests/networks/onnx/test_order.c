/* test_order.c - the order of a file's nodes: any order is read and computes the same; a topological one is
 * kept. */
#include "networks/graph/graph_check.h"
#include "tests/support/onnx/onnx_odd.h"
#include "tests/support/onnx/plain_graph.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static hp_graph *parsed(onnx_writer *w, hp_onnx_model *m) {
    hp_error err = {0};
    if (odd_parse(w, 6, 7, m, &err) != HP_OK) fail_msg("%s", err.text);
    if (hp_graph_check(m->graph, &err) != HP_OK) fail_msg("%s", err.text);
    return m->graph;
}

static const double *computed(hp_arena *a, const hp_onnx_model *m) {
    const hp_graph *g = m->graph;
    const int64_t n = (int64_t)g->image_h * g->image_w * g->image_c;
    double *image = HP_NEW(a, double, n);
    const float **param = HP_NEW(a, const float *, g->n_param);
    for (int64_t i = 0; i < n; i++) image[i] = 2 * hp_rng_uniform(3, 9, (uint64_t)i) - 1;
    for (int i = 0; i < g->n_param; i++) param[i] = m->param[i].data;
    plain p = {.g = g, .param = param};
    return plain_run(a, &p, image);
}

static void shuffle(onnx_writer *w, uint64_t seed) {
    for (size_t n = w->graph.n_node - 1; n > 0; n--) {
        const size_t k = (size_t)(hp_rng_uniform(seed, 5, n) * (double)(n + 1));
        Onnx__NodeProto *node = w->graph.node[n];
        w->graph.node[n] = w->graph.node[k];
        w->graph.node[k] = node;
    }
}

static void any_order_computes_the_same(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    onnx_writer w = odd_model(a);
    hp_onnx_model m;
    const hp_graph *g = parsed(&w, &m);
    const double *wanted = computed(a, &m);
    for (uint64_t i = 0; i < law_cases(200); i++) {
        hp_onnx_model other;
        shuffle(&w, i);
        const hp_graph *h = parsed(&w, &other);
        assert_int_equal(h->n_layer, g->n_layer);
        assert_memory_equal(computed(a, &other), wanted,
                            sizeof *wanted * (size_t)hp_tensor_elems(g, g->n_tensor - 1));
    }
    hp_arena_free(a);
}

/* Two branches of two nodes: the layers of the branch that is first in the file come first, without any of
 * the other's in between. */
static void nodes_in_order_stay_where_they_are(void **state) {
    static const char *const orders[][5] = {
        {"a1", "a2", "b1", "b2", "sum"}, {"b1", "b2", "a1", "a2", "sum"}, {"a1", "b1", "b2", "a2", "sum"}};
    const int64_t dim[4] = {1, 3, 0, 0};
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        hp_arena *a = hp_arena_new();
        hp_onnx_model m;
        onnx_writer w = onnx_writer_start(a, 13);
        onnx_write_input(&w, "x", 4, dim);
        for (int k = 0; k < 5; k++) {
            const char *name = orders[i][k];
            const char *reads = *name == 's' ? "a2 b2" : name[1] == '1' ? "x" : name[0] == 'a' ? "a1" : "b1";
            onnx_write_node(&w, *name == 's' ? "Add" : name[0] == 'a' ? "Tanh" : "Sigmoid", reads, name);
        }
        onnx_write_output(&w, "sum");
        const hp_graph *g = parsed(&w, &m);
        for (int k = 0; k < 5; k++) assert_string_equal(g->layer[k + 1].name, orders[i][k]);
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_computes_the_same),
        cmocka_unit_test(nodes_in_order_stay_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
