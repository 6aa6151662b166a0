/* op_image.c - turns the model's input into the graph's image. */
#include "networks/onnx/onnx_inside.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_BATCH = 1 << 14 }; /* keeps elements within 62 bits */

/* Finds the only input that the output needs and that is not a constant. */
static hp_status find_image(const onnx_reader *r, const Onnx__GraphProto *g, onnx_value **v,
                            const Onnx__ValueInfoProto **info) {
    *v = NULL;
    for (size_t i = 0; i < g->n_input; i++) {
        onnx_value *at = &r->value[onnx_names_find(&r->names, g->input[i]->name)];
        if (!at->needed || at->kind != ONNX_NOTHING) continue;
        if (*v)
            return hp_fail(r->err, HP_EDATA,
                           "%s: it has two inputs, '%s' and '%s', and one can be given: make the others "
                           "constants of the model",
                           r->file, onnx_clean(r->scratch, (*v)->name), onnx_clean(r->scratch, at->name));
        *v = at;
        *info = g->input[i];
    }
    if (*v) return HP_OK;
    return hp_fail(r->err, HP_EDATA, "%s: its first output depends on no input", r->file);
}

/* Declared dimensions; 0: left open. */
static hp_status read_declared_size(const onnx_reader *r, const Onnx__ValueInfoProto *info, onnx_value *v) {
    const Onnx__TypeProto *type = info->type;
    const char *name = onnx_clean(r->scratch, info->name);
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type->shape)
        return hp_fail(r->err, HP_EDATA, "%s: input '%s' must be a tensor with dimensions", r->file, name);
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    v->type = type->tensor_type->elem_type;
    if (!onnx_type_of(v->type) || v->type == ONNX_BOOL)
        return hp_fail(r->err, HP_EDATA, "%s: input '%s' holds elements of an unsupported type: use float",
                       r->file, name);
    if (shape->n_dim < 1 || shape->n_dim > 4)
        return hp_fail(r->err, HP_EDATA,
                       "%s: input '%s' has %zu dimensions; images have up to 4 (N, C, H, W)", r->file, name,
                       shape->n_dim);
    v->n_dim = (int)shape->n_dim;
    for (int i = 0; i < v->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        const bool fixed = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        v->dim[i] = fixed ? d->dim_value : 0;
        if (v->dim[i] < 0) v->dim[i] = 0; /* -1 commonly means "open" */
        if (v->dim[i] > ONNX_MOST_SIZE)
            return hp_fail(r->err, HP_EDATA, "%s: input '%s' is larger than %d along dimension %d", r->file,
                           name, ONNX_MOST_SIZE, i);
    }
    return HP_OK;
}

/* Models exported from channels-last frameworks begin with Transpose(0, 3, 1, 2) for all readers of the
 * image. */
static bool is_channels_last(const onnx_reader *r, const Onnx__GraphProto *g, const bool *needed,
                             const onnx_value *v) {
    static const int64_t to_nchw[4] = {0, 3, 1, 2};
    bool any = false;
    for (size_t n = 0; n < g->n_node; n++) {
        const Onnx__NodeProto *node = g->node[n];
        for (size_t k = 0; needed[n] && k < node->n_input; k++) {
            if (strcmp(node->input[k], v->name) != 0) continue;
            int64_t perm[4];
            int n_perm = 0;
            const onnx_call c = {.r = (onnx_reader *)(uintptr_t)r, .node = node};
            if (!node->op_type || strcmp(node->op_type, "Transpose") != 0 ||
                onnx_attr_ints(&c, "perm", 4, perm, &n_perm) != HP_OK || n_perm != 4 ||
                memcmp(perm, to_nchw, sizeof perm) != 0)
                return false;
            any = true;
        }
    }
    return any && v->n_dim == 4;
}

static hp_status need_size(const onnx_reader *r, int64_t size, const char *what, const char *fix,
                           int32_t *out) {
    if (size < 1) return hp_fail(r->err, HP_EUSAGE, "%s: the model leaves %s open: %s", r->file, what, fix);
    *out = (int32_t)size;
    return HP_OK;
}

/* Assigns an axis to each dimension of the input; ids are (N, tokens), a column with one channel. */
static void set_order(const onnx_reader *r, const Onnx__GraphProto *g, const bool *needed, onnx_value *v) {
    static const int8_t nchw[HP_AXES] = {HP_AXIS_N, HP_AXIS_C, HP_AXIS_H, HP_AXIS_W},
                        nhwc[HP_AXES] = {HP_AXIS_N, HP_AXIS_H, HP_AXIS_W, HP_AXIS_C},
                        nhcw[HP_AXES] = {HP_AXIS_N, HP_AXIS_H, HP_AXIS_C, HP_AXIS_W},
                        cnhw[HP_AXES] = {HP_AXIS_C, HP_AXIS_N, HP_AXIS_H, HP_AXIS_W};
    const bool ids = v->n_dim == 2 && (v->type == ONNX_INT64 || v->type == ONNX_INT32);
    const int8_t *order = is_channels_last(r, g, needed, v) ? nhwc : nchw;
    if (r->channels_last && v->n_dim == 3) order = nhcw;
    if (r->channels_last && v->n_dim == 1) order = cnhw;
    memcpy(v->order, ids ? nhwc : order, sizeof nchw);
}

hp_status onnx_read_image(onnx_reader *r, const Onnx__GraphProto *g, const bool *needed, int image_h,
                          int image_w, hp_onnx_model *m) {
    onnx_value *v;
    const Onnx__ValueInfoProto *info = NULL;
    int64_t extent[HP_AXES] = {1, 1, 1, 1};
    HP_TRY(find_image(r, g, &v, &info));
    HP_TRY(read_declared_size(r, info, v));
    set_order(r, g, needed, v);
    for (int i = 0; i < v->n_dim; i++) extent[v->order[i]] = v->dim[i];
    m->declared_h = (int32_t)extent[HP_AXIS_H];
    m->declared_w = (int32_t)extent[HP_AXIS_W];
    for (int i = 0; i < v->n_dim; i++) {
        if (image_h > 0 && v->order[i] == HP_AXIS_H) extent[HP_AXIS_H] = image_h;
        if (image_w > 0 && v->order[i] == HP_AXIS_W) extent[HP_AXIS_W] = image_w;
    }
    r->batch = extent[HP_AXIS_N] > 0 ? extent[HP_AXIS_N] : 1;
    if (r->batch > MOST_BATCH)
        return hp_fail(r->err, HP_EDATA, "%s: a batch of %" PRId64 " is not supported: leave it open",
                       r->file, r->batch);
    extent[HP_AXIS_N] = r->batch;
    hp_graph *graph = r->graph = HP_NEW(r->arena, hp_graph, 1);
    const bool tokens = v->n_dim == 2 && v->order[1] == HP_AXIS_H;
    HP_TRY(need_size(r, extent[HP_AXIS_H], tokens ? "how many tokens there are" : "the image's height",
                     tokens ? "give --image TOKENS" : "give --image HxW", &graph->image_h));
    HP_TRY(need_size(r, extent[HP_AXIS_W], "the image's width", "give --image HxW", &graph->image_w));
    HP_TRY(need_size(r, extent[HP_AXIS_C], "its channels", "export it with fixed ones", &graph->image_c));
    for (int i = 0; i < v->n_dim; i++) v->dim[i] = extent[v->order[i]];
    v->kind = ONNX_TENSOR;
    const onnx_call c = {.r = r};
    m->input_name = onnx_clean(r->arena, v->name);
    m->input.n_dim = v->n_dim;
    memcpy(m->input.dim, v->dim, sizeof m->input.dim);
    for (int i = 0; i < HP_AXES; i++) m->input.order[i] = v->order[i];
    return onnx_emit(&c, (hp_layer){.op = HP_INPUT}, 0, &v->tensor);
}
