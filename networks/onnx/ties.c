/* ties.c - finds a language model's head that is its table of ids: two equal float matrices, one read by
 * Gather and one by MatMul. */
#include "networks/onnx/onnx_file.h"
#include "networks/onnx/onnx_names.h"

#include <stdint.h>
#include <string.h>

/* The elements, 4 bytes each; NULL if there are not `count` of them. */
static const unsigned char *floats_of(const Onnx__TensorProto *t, uint64_t count) {
    if (t->has_raw_data) return (uint64_t)t->raw_data.len == 4 * count ? t->raw_data.data : NULL;
    return (uint64_t)t->n_float_data == count ? (const unsigned char *)t->float_data : NULL;
}

static bool is_matrix(const Onnx__TensorProto *t) {
    return t->n_dims == 2 && t->dims[0] > 1 && t->dims[1] > 1 && t->dims[0] <= INT32_MAX &&
           t->dims[1] <= INT32_MAX && t->name && *t->name &&
           t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
           floats_of(t, (uint64_t)t->dims[0] * (uint64_t)t->dims[1]);
}

static bool is_transposed(const Onnx__TensorProto *a, const Onnx__TensorProto *b) {
    const int64_t rows = a->dims[0], cols = a->dims[1];
    const unsigned char *x = floats_of(a, (uint64_t)(rows * cols)),
                        *y = floats_of(b, (uint64_t)(rows * cols));
    if (b->dims[0] != cols || b->dims[1] != rows) return false;
    for (int64_t i = 0; i < rows * cols; i++)
        if (memcmp(x + 4 * i, y + 4 * (i % cols * rows + i / cols), 4) != 0) return false;
    return true;
}

/* The file's matrices by name. */
typedef struct matrices {
    onnx_names names;
    const size_t *initializer;
} matrices;

static matrices list_matrices(hp_arena *arena, const Onnx__GraphProto *g) {
    size_t *initializer = HP_NEW(arena, size_t, g->n_initializer + 1);
    matrices m = {{.arena = arena}, initializer};
    bool added;
    for (size_t i = 0; i < g->n_initializer; i++)
        if (is_matrix(g->initializer[i]))
            initializer[onnx_names_add(&m.names, g->initializer[i]->name, &added)] = i;
    return m;
}

/* The matrix that is input k of such a node; NULL if it is none. */
static const size_t *matrix_of(const matrices *m, const Onnx__NodeProto *n, const char *op, size_t k) {
    if (!n->op_type || strcmp(n->op_type, op) != 0 || n->n_input != 2) return NULL;
    const int32_t i = onnx_names_find(&m->names, n->input[k]);
    return i < 0 ? NULL : &m->initializer[i];
}

/* Replaces initializer `copy` by the graph's first node. */
static void replace(hp_arena *arena, Onnx__GraphProto *g, const Onnx__TensorProto *table, size_t copy) {
    Onnx__NodeProto *n = HP_NEW(arena, Onnx__NodeProto, 1),
                    **all = HP_NEW(arena, Onnx__NodeProto *, g->n_node + 1);
    onnx__node_proto__init(n);
    n->op_type = hp_arena_strdup(arena, "Transpose");
    n->n_input = n->n_output = 1;
    n->input = HP_NEW(arena, char *, 1);
    n->output = HP_NEW(arena, char *, 1);
    n->input[0] = table->name;
    n->output[0] = g->initializer[copy]->name;
    all[0] = n;
    memcpy(all + 1, g->node, sizeof *all * g->n_node);
    g->node = all;
    g->n_node++;
    g->initializer[copy] = g->initializer[--g->n_initializer];
}

static bool is_input(const Onnx__GraphProto *g, const char *name) {
    for (size_t i = 0; i < g->n_input; i++)
        if (g->input[i]->name && strcmp(g->input[i]->name, name) == 0) return true;
    return false;
}

void onnx_tie(hp_arena *arena, Onnx__GraphProto *g) {
    const matrices m = list_matrices(arena, g);
    const size_t *table = NULL;
    for (size_t n = 0; n < g->n_node; n++) {
        const size_t *ids = matrix_of(&m, g->node[n], "Gather", 0),
                     *head = matrix_of(&m, g->node[n], "MatMul", 1);
        if (!table) table = ids;
        if (!table || !head || is_input(g, g->initializer[*head]->name) ||
            !is_transposed(g->initializer[*table], g->initializer[*head]))
            continue;
        replace(arena, g, g->initializer[*table], *head);
        return;
    }
}
