/* op_layout.c - which of hplan's axes N, C, H, W an ONNX dimension contains. Extents of 1 belong to no
 * dimension, so inserting or removing them changes nothing. */
#include "networks/onnx/onnx_inside.h"

#include <string.h>

static const int8_t nchw[HP_AXES] = {HP_AXIS_N, HP_AXIS_C, HP_AXIS_H, HP_AXIS_W};

int64_t onnx_extent(const onnx_reader *r, const onnx_value *v, int axis) {
    const hp_tensor *t = &r->graph->tensor[v->tensor];
    const int64_t extent[HP_AXES] = {
        [HP_AXIS_N] = r->batch, [HP_AXIS_H] = t->h, [HP_AXIS_W] = t->w, [HP_AXIS_C] = t->c};
    return extent[axis];
}

bool onnx_axes(const onnx_reader *r, const onnx_value *v, int of[HP_AXES]) {
    int next = 0;
    for (int a = 0; a < HP_AXES; a++) of[a] = -1;
    for (int d = 0; d < v->n_dim; d++) {
        int64_t held = 1;
        while (held < v->dim[d] && next < HP_AXES) {
            const int axis = v->order[next++];
            const int64_t extent = onnx_extent(r, v, axis);
            if (extent > 1) of[axis] = d;
            held *= extent;
        }
        if (held != v->dim[d]) return false;
    }
    for (; next < HP_AXES; next++)
        if (onnx_extent(r, v, v->order[next]) != 1) return false;
    return true;
}

bool onnx_is_canonical(const onnx_reader *r, const onnx_value *v, int rank) {
    int last = 0; /* index in N, C, H, W */
    if (v->n_dim != rank) return false;
    for (int i = 0; i < HP_AXES; i++)
        if (onnx_extent(r, v, nchw[i]) != (i < rank ? v->dim[i] : 1)) return false;
    for (int i = 0; i < HP_AXES; i++) {
        const int axis = v->order[i];
        const int place = axis == HP_AXIS_N ? 0 : axis == HP_AXIS_C ? 1 : axis == HP_AXIS_H ? 2 : 3;
        if (onnx_extent(r, v, axis) == 1) continue;
        if (place < last) return false;
        last = place;
    }
    return true;
}

bool onnx_is_channel_dim(const onnx_reader *r, const onnx_value *v, int dim) {
    int of[HP_AXES];
    bool other = false;
    if (!onnx_axes(r, v, of)) return false;
    for (int a = 0; a < HP_AXES; a++) other |= a != HP_AXIS_C && of[a] == dim;
    if (of[HP_AXIS_C] >= 0 || other) return of[HP_AXIS_C] == dim && !other;
    return v->order[HP_AXES - 1] == HP_AXIS_C ? dim == v->n_dim - 1 : dim == 1; /* one channel */
}

bool onnx_is_sample_dim(const onnx_reader *r, const onnx_value *v, int dim) {
    int of[HP_AXES];
    if (!onnx_axes(r, v, of)) return false;
    for (int a = 0; a < HP_AXES; a++)
        if (of[a] == dim && a != HP_AXIS_N) return false;
    return v->dim[dim] == r->batch;
}

hp_status onnx_need_map(const onnx_call *c, int k, onnx_value **x) {
    HP_TRY(onnx_need_tensor(c, k, x));
    if (onnx_is_canonical(c->r, *x, 3) || onnx_is_canonical(c->r, *x, 4)) return HP_OK;
    const Onnx__NodeProto *maker = onnx_maker_of(c->r, *x);
    return onnx_fail(
        c,
        "needs an input of dimensions (N, C, H, W) or (N, C, L) in that order, not transposed or "
        "reshaped, as %s gives it: %s",
        maker ? onnx_title(c->r->scratch, maker) : "the model's input", onnx_dims(c->r, *x));
}

static void set_result(onnx_call *c, int32_t tensor, int type) {
    c->out->kind = ONNX_TENSOR;
    c->out->tensor = tensor;
    c->out->type = type;
    c->out->quant = NULL;
    c->out->view = NULL;
    c->out->term = NULL;
}

void onnx_result_like(onnx_call *c, int32_t tensor, const onnx_value *like) {
    set_result(c, tensor, like->type);
    c->out->n_dim = like->n_dim;
    memcpy(c->out->dim, like->dim, sizeof c->out->dim);
    memcpy(c->out->order, like->order, sizeof c->out->order);
}

void onnx_result(onnx_call *c, int32_t tensor, int rank) {
    set_result(c, tensor, ONNX_FLOAT);
    memcpy(c->out->order, nchw, sizeof nchw);
    c->out->n_dim = rank;
    for (int i = 0; i < rank; i++) c->out->dim[i] = onnx_extent(c->r, c->out, nchw[i]);
}

bool onnx_regroup(const onnx_reader *r, onnx_value *v, const int64_t *dim, int n_dim) {
    int of[HP_AXES];
    onnx_value as = *v;
    as.n_dim = n_dim;
    memcpy(as.dim, dim, sizeof *dim * (size_t)n_dim);
    if (!onnx_axes(r, &as, of)) return false;
    *v = as;
    return true;
}

bool onnx_per_channel(const onnx_reader *r, const onnx_value *x, const onnx_const *k) {
    if (k->count == 1) return k->n_dim <= x->n_dim || k->n_dim <= 1;
    if (k->n_dim > x->n_dim) return false;
    for (int d = 0; d < k->n_dim; d++) {
        const int at = d + x->n_dim - k->n_dim;
        if (k->dim[d] != 1 && (k->dim[d] != x->dim[at] || !onnx_is_channel_dim(r, x, at))) return false;
    }
    return k->count == onnx_extent(r, x, HP_AXIS_C);
}

/* Compares the dimension of each axis, counted from the last, and the order of the axes that both have. */
bool onnx_same_axes(const onnx_reader *r, const onnx_value *x, const onnx_value *y) {
    int x_of[HP_AXES], y_of[HP_AXES], next = 0;
    if (!onnx_axes(r, x, x_of) || !onnx_axes(r, y, y_of)) return false;
    for (int a = 0; a < HP_AXES; a++)
        if (x_of[a] >= 0 && y_of[a] >= 0 && x_of[a] - x->n_dim != y_of[a] - y->n_dim) return false;
    for (int i = 0; i < HP_AXES; i++) {
        if (x_of[x->order[i]] < 0 || y_of[x->order[i]] < 0) continue;
        while (next < HP_AXES && (x_of[y->order[next]] < 0 || y_of[y->order[next]] < 0)) next++;
        if (y->order[next++] != x->order[i]) return false;
    }
    return true;
}
