/* onnx_write.c - ONNX models written piece by piece in a test. */
#include "tests/support/onnx/onnx_write.h"

/* Appends one element to the array. */
static void *onnx_write_more(hp_arena *a, void *list, size_t n, void *item) {
    void **longer = HP_NEW(a, void *, n + 1);
    if (n) memcpy(longer, list, n * sizeof *longer);
    longer[n] = item;
    return longer;
}

#define ONNX_WRITE_APPEND(w, list, n, item) ((list) = onnx_write_more((w)->arena, (list), (n)++, (item)))

onnx_writer onnx_writer_start(hp_arena *a, int opset) {
    onnx_writer w = {
        a, ONNX__MODEL_PROTO__INIT, ONNX__GRAPH_PROTO__INIT, ONNX__OPERATOR_SET_ID_PROTO__INIT, {NULL}};
    w.model.has_ir_version = 1;
    w.model.ir_version = 8;
    w.opset.has_version = 1;
    w.opset.version = opset;
    return w;
}

onnx_writer onnx_writer_from(hp_arena *a, const Onnx__ModelProto *m) {
    onnx_writer w = onnx_writer_start(a, 1);
    w.model = *m;
    w.graph = *m->graph;
    return w;
}

void *onnx_writer_pack(onnx_writer *w, size_t *size) {
    Onnx__ModelProto m = w->model;
    m.graph = &w->graph;
    if (!m.n_opset_import) {
        w->opset_list[0] = &w->opset;
        m.n_opset_import = 1;
        m.opset_import = w->opset_list;
    }
    *size = onnx__model_proto__get_packed_size(&m);
    void *data = hp_arena_alloc(w->arena, *size + 1);
    onnx__model_proto__pack(&m, data);
    return data;
}

/* --- nodes --- */

/* "a b c" */
static size_t onnx_write_words(hp_arena *a, const char *text, char ***list) {
    size_t n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(hp_arena_strdup(a, text), " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        *list = onnx_write_more(a, *list, n++, strcmp(word, "-") == 0 ? word + 1 : word); /* "-": left out */
    return n;
}

Onnx__NodeProto *onnx_write_node(onnx_writer *w, const char *op, const char *inputs, const char *outputs) {
    Onnx__NodeProto *n = HP_NEW(w->arena, Onnx__NodeProto, 1);
    onnx__node_proto__init(n);
    n->op_type = hp_arena_strdup(w->arena, op);
    n->n_input = onnx_write_words(w->arena, inputs, &n->input);
    n->n_output = onnx_write_words(w->arena, outputs, &n->output);
    ONNX_WRITE_APPEND(w, w->graph.node, w->graph.n_node, n);
    return n;
}

Onnx__AttributeProto *onnx_write_attribute(onnx_writer *w, Onnx__NodeProto *n, const char *name,
                                           Onnx__AttributeProto__AttributeType type) {
    Onnx__AttributeProto *a = HP_NEW(w->arena, Onnx__AttributeProto, 1);
    onnx__attribute_proto__init(a);
    a->name = hp_arena_strdup(w->arena, name);
    a->has_type = 1;
    a->type = type;
    ONNX_WRITE_APPEND(w, n->attribute, n->n_attribute, a);
    return a;
}

void onnx_write_int(onnx_writer *w, Onnx__NodeProto *n, const char *name, int64_t v) {
    Onnx__AttributeProto *a = onnx_write_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = v;
}

void onnx_write_text(onnx_writer *w, Onnx__NodeProto *n, const char *name, const char *v) {
    Onnx__AttributeProto *a = onnx_write_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s.len = strlen(v);
    a->s.data = (uint8_t *)hp_arena_strdup(w->arena, v);
}

void onnx_write_ints(onnx_writer *w, Onnx__NodeProto *n, const char *name, size_t count, const int64_t *v) {
    Onnx__AttributeProto *a = onnx_write_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = count;
    a->ints = memcpy(HP_NEW(w->arena, int64_t, count), v, count * sizeof *v);
}

/* --- constants, inputs, outputs --- */

void onnx_write_tensor(onnx_writer *w, Onnx__TensorProto *t) {
    ONNX_WRITE_APPEND(w, w->graph.initializer, w->graph.n_initializer, t);
}

bool onnx_writer_has_constant(const onnx_writer *w, const char *name) {
    for (size_t i = 0; i < w->graph.n_initializer; i++)
        if (strcmp(w->graph.initializer[i]->name, name) == 0) return true;
    return false;
}

static Onnx__TensorProto *onnx_write_constant(onnx_writer *w, const char *name, int type, size_t n_dim,
                                              const int64_t *dim) {
    Onnx__TensorProto *t = HP_NEW(w->arena, Onnx__TensorProto, 1);
    onnx__tensor_proto__init(t);
    t->name = hp_arena_strdup(w->arena, name);
    t->has_data_type = 1;
    t->data_type = type;
    t->n_dims = n_dim;
    t->dims = HP_NEW(w->arena, int64_t, n_dim + 1);
    if (n_dim) memcpy(t->dims, dim, n_dim * sizeof *dim);
    onnx_write_tensor(w, t);
    return t;
}

size_t onnx_write_count(size_t n_dim, const int64_t *dim) {
    size_t n = 1;
    for (size_t d = 0; d < n_dim; d++) n *= (size_t)dim[d];
    return n;
}

void onnx_write_floats(onnx_writer *w, const char *name, size_t n_dim, const int64_t *dim, const float *v) {
    Onnx__TensorProto *t = onnx_write_constant(w, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, n_dim, dim);
    t->n_float_data = onnx_write_count(n_dim, dim);
    t->float_data = memcpy(HP_NEW(w->arena, float, t->n_float_data), v, t->n_float_data * sizeof *v);
}

void onnx_write_integers(onnx_writer *w, const char *name, size_t n_dim, const int64_t *dim,
                         const int64_t *v) {
    Onnx__TensorProto *t = onnx_write_constant(w, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, n_dim, dim);
    t->n_int64_data = onnx_write_count(n_dim, dim);
    t->int64_data = memcpy(HP_NEW(w->arena, int64_t, t->n_int64_data), v, t->n_int64_data * sizeof *v);
}

void onnx_write_bytes(onnx_writer *w, const char *name, int type, size_t n_dim, const int64_t *dim,
                      const void *v, size_t size) {
    Onnx__TensorProto *t = onnx_write_constant(w, name, type, n_dim, dim);
    t->has_raw_data = 1;
    t->raw_data.len = size;
    t->raw_data.data = memcpy(hp_arena_alloc(w->arena, size + 1), v, size);
}

static Onnx__ValueInfoProto *onnx_write_value(onnx_writer *w, const char *name) {
    Onnx__ValueInfoProto *v = HP_NEW(w->arena, Onnx__ValueInfoProto, 1);
    onnx__value_info_proto__init(v);
    v->name = hp_arena_strdup(w->arena, name);
    return v;
}

void onnx_write_input(onnx_writer *w, const char *name, size_t n_dim, const int64_t *dim) {
    Onnx__ValueInfoProto *v = onnx_write_value(w, name);
    v->type = HP_NEW(w->arena, Onnx__TypeProto, 1);
    onnx__type_proto__init(v->type);
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    Onnx__TypeProto__Tensor *t = v->type->tensor_type = HP_NEW(w->arena, Onnx__TypeProto__Tensor, 1);
    onnx__type_proto__tensor__init(t);
    t->has_elem_type = 1;
    t->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    t->shape = HP_NEW(w->arena, Onnx__TensorShapeProto, 1);
    onnx__tensor_shape_proto__init(t->shape);
    for (size_t d = 0; d < n_dim; d++) {
        Onnx__TensorShapeProto__Dimension *size = HP_NEW(w->arena, Onnx__TensorShapeProto__Dimension, 1);
        onnx__tensor_shape_proto__dimension__init(size);
        size->value_case = dim[d] ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                                  : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        if (dim[d])
            size->dim_value = dim[d];
        else
            size->dim_param = hp_arena_strdup(w->arena, "open");
        ONNX_WRITE_APPEND(w, t->shape->dim, t->shape->n_dim, size);
    }
    ONNX_WRITE_APPEND(w, w->graph.input, w->graph.n_input, v);
}

void onnx_write_output(onnx_writer *w, const char *name) {
    w->graph.n_output = 0;
    w->graph.output = NULL;
    ONNX_WRITE_APPEND(w, w->graph.output, w->graph.n_output, onnx_write_value(w, name));
}
