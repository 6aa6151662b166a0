/* order.c - sorts nodes topologically, because converters to float16 do not keep them sorted. Every node
 * follows the makers of its inputs, and otherwise keeps its place in the file. Depth-first search with an
 * explicit stack, linear in the file. */
#include "networks/onnx/onnx_inside.h"

#include "networks/onnx/onnx_file.h"

typedef enum visit { UNSEEN, OPEN, PLACED } visit;

typedef struct sorting {
    hp_arena *arena;
    const Onnx__GraphProto *g;
    onnx_names made;      /* outputs of nodes */
    const int32_t *maker; /* maker of each value */
    uint8_t *visit;       /* per node */
    size_t *next_input;   /* per node: inputs before this one are placed */
    int32_t *stack;
    Onnx__NodeProto **order;
    size_t n;
} sorting;

/* An output of two nodes counts as the first one's here; the reader rejects it. */
static sorting start_sorting(hp_arena *arena, const Onnx__GraphProto *g) {
    size_t outputs = 0;
    for (size_t n = 0; n < g->n_node; n++) outputs += g->node[n]->n_output;
    int32_t *maker = HP_NEW(arena, int32_t, outputs + 1);
    sorting s = {.arena = arena,
                 .g = g,
                 .made = {.arena = arena},
                 .maker = maker,
                 .visit = HP_NEW(arena, uint8_t, g->n_node + 1),
                 .next_input = HP_NEW(arena, size_t, g->n_node + 1),
                 .stack = HP_NEW(arena, int32_t, g->n_node + 1),
                 .order = HP_NEW(arena, Onnx__NodeProto *, g->n_node + 1)};
    for (size_t n = 0; n < g->n_node; n++)
        for (size_t k = 0; k < g->node[n]->n_output; k++) {
            bool added = false;
            const char *name = g->node[n]->output[k];
            const int32_t i = *name ? onnx_names_add(&s.made, name, &added) : -1;
            if (added) maker[i] = (int32_t)n;
        }
    return s;
}

/* The node's next input whose maker is not placed yet; NULL if the node can be placed. */
static const char *next_missing(sorting *s, int32_t node, int32_t *maker) {
    const Onnx__NodeProto *n = s->g->node[node];
    while (s->next_input[node] < n->n_input) {
        const char *name = n->input[s->next_input[node]];
        const int32_t i = *name ? onnx_names_find(&s->made, name) : -1;
        if (i >= 0 && s->visit[s->maker[i]] != PLACED) {
            *maker = s->maker[i];
            return name;
        }
        s->next_input[node]++;
    }
    return NULL;
}

static hp_status place(sorting *s, int32_t node, const char *file, hp_error *err) {
    int depth = 0;
    s->stack[depth++] = node;
    s->visit[node] = OPEN;
    while (depth > 0) {
        const int32_t at = s->stack[depth - 1];
        int32_t maker = -1;
        const char *missing = next_missing(s, at, &maker);
        if (missing && s->visit[maker] == OPEN)
            return hp_fail(err, HP_EDATA,
                           "%s: %s: reads '%s', which is made of its own result: a cycle, which no order of "
                           "nodes can compute; export the model again",
                           file, onnx_title(s->arena, s->g->node[at]), onnx_clean(s->arena, missing));
        if (missing) {
            s->visit[maker] = OPEN;
            s->stack[depth++] = maker;
            continue;
        }
        s->visit[at] = PLACED;
        s->order[s->n++] = s->g->node[at];
        depth--;
    }
    return HP_OK;
}

hp_status onnx_sort(hp_arena *arena, const char *file, Onnx__GraphProto *g, hp_error *err) {
    sorting s = start_sorting(arena, g);
    for (size_t n = 0; n < g->n_node; n++)
        if (s.visit[n] == UNSEEN) HP_TRY(place(&s, (int32_t)n, file, err));
    g->node = s.order;
    return HP_OK;
}
