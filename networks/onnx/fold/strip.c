/* strip.c - a model without its weights: the same messages with large constants left empty, except masks. It
 * still builds the graph for any image size, and fits into a database. */
#include "networks/onnx/onnx_inside.h"

#include "networks/onnx/onnx_file.h"

#include <string.h>

static bool is_large(const Onnx__TensorProto *t) {
    int64_t dim[ONNX_MOST_DIMS], count;
    if (t->n_dims > ONNX_MOST_DIMS) return false;
    for (size_t d = 0; d < t->n_dims; d++) dim[d] = t->dims[d];
    return onnx_count((int)t->n_dims, dim, &count) && count > ONNX_KEPT;
}

/* Booleans, or reals with two distinct values: what attention must not see. */
static bool is_mask(const Onnx__TensorProto *t) {
    const unsigned char *at = t->has_raw_data ? t->raw_data.data : (const unsigned char *)t->float_data,
                        *other = NULL;
    const size_t n = t->has_raw_data ? t->raw_data.len / 4 : t->n_float_data;
    if (t->data_type == ONNX_BOOL) return true;
    if (t->data_type != ONNX_FLOAT) return false;
    for (size_t i = 1; i < n; i++) {
        if (memcmp(at + 4 * i, at, 4) == 0 || (other && memcmp(at + 4 * i, other, 4) == 0)) continue;
        if (other) return false;
        other = at + 4 * i;
    }
    return other != NULL;
}

static void strip_tensor(Onnx__TensorProto *t) {
    if (!is_large(t) || is_mask(t)) return;
    t->has_raw_data = 0;
    t->raw_data = (ProtobufCBinaryData){0, NULL};
    t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data = 0;
}

static void strip_graph(Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_initializer; i++) strip_tensor(g->initializer[i]);
    for (size_t n = 0; n < g->n_node; n++)
        for (size_t a = 0; a < g->node[n]->n_attribute; a++)
            if (g->node[n]->attribute[a]->t) strip_tensor(g->node[n]->attribute[a]->t);
    g->n_value_info = 0;
}

hp_status hp_onnx_strip(hp_arena *arena, const char *path, void **data, size_t *size, hp_error *err) {
    const void *file = NULL;
    size_t bytes = 0;
    Onnx__ModelProto *m;
    hp_arena *scratch = hp_arena_new();
    hp_status s = onnx_file_open(path, &file, &bytes, err);
    if (s == HP_OK) s = onnx_file_parse(scratch, onnx_clean(scratch, path), file, bytes, &m, err);
    if (s == HP_OK) {
        strip_graph(m->graph);
        m->n_training_info = 0;
        *size = onnx__model_proto__get_packed_size(m);
        *data = hp_arena_alloc(arena, *size);
        onnx__model_proto__pack(m, *data);
    }
    onnx_file_close(file, bytes);
    hp_arena_free(scratch);
    return s;
}
