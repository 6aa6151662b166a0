/* fuzz_onnx.c - whatever bytes: an error with a message, or a graph that passes every check, whose weights
 * can be read and whose JSON is the same graph. */
#include "networks/graph/graph_check.h"
#include "networks/graph/graph_json.h"
#include "networks/onnx/onnx.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_graph(hp_arena *a, const hp_onnx_model *m) {
    hp_error err = {0};
    hp_graph *back;
    const hp_graph *g = m->graph;
    if (hp_graph_check(g, &err) != HP_OK) abort();
    if (hp_graph_from_json(a, hp_graph_json(a, g), &back, &err) != HP_OK) abort();
    if (strcmp(hp_graph_text(a, back), hp_graph_text(a, g)) != 0) abort();
}

static void read_weights(const hp_onnx_model *m) {
    volatile float sum = 0;
    for (int p = 0; m->param && p < m->graph->n_param; p++)
        for (int64_t i = 0; i < m->graph->param[p].count; i++) sum = sum + m->param[p].data[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int structure = 0; structure < 2; structure++) {
        hp_arena *a = hp_arena_new();
        hp_onnx_model m;
        hp_error err = {0};
        const hp_status s = hp_onnx_parse(a, "x.onnx", data, size, structure, 16, 24, !structure, &m, &err);
        if (s != HP_OK && (!err.text[0] || (s != HP_EDATA && s != HP_EPLAN && s != HP_EUSAGE))) abort();
        if (s == HP_OK) check_graph(a, &m);
        if (s == HP_OK) read_weights(&m);
        hp_arena_free(a);
    }
    return 0;
}
