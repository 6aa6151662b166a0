/* fuzz_graph.c - any text in place of a network as JSON: an error with a message, or a graph that passes
 * every check and whose JSON is the same graph. */
#include "tests/fuzz/fuzz_text.h"

#include "networks/graph/graph_check.h"
#include "networks/graph/graph_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hp_arena *a = hp_arena_new();
    hp_graph *g, *back;
    hp_error err = {0};
    const hp_status s = hp_graph_from_json(a, fuzz_text(a, data, size), &g, &err);
    if (s != HP_OK) {
        fuzz_refused(s, HP_EDATA, HP_EPLAN, &err);
    } else {
        if (hp_graph_check(g, &err) != HP_OK) abort();
        if (hp_graph_from_json(a, hp_graph_json(a, g), &back, &err) != HP_OK) abort();
        if (strcmp(hp_graph_text(a, back), hp_graph_text(a, g)) != 0) abort();
    }
    hp_arena_free(a);
    return 0;
}
