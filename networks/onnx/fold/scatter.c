/* scatter.c - ScatterND of constants: the data with some slices replaced. */
#include "networks/onnx/fold/fold.h"

#include <string.h>

/* Index of the element where slice i of the updates goes; -1 if out of range. */
static int64_t place_of(const onnx_const *x, const onnx_const *index, int64_t i, int64_t depth,
                        int64_t slice) {
    int64_t at = 0;
    for (int64_t d = 0; d < depth; d++) {
        int64_t k = onnx_integer(index, i * depth + d);
        k += k < 0 ? x->dim[d] : 0;
        if (k < 0 || k >= x->dim[d]) return -1;
        at = at * x->dim[d] + k;
    }
    return at * slice;
}

hp_status onnx_fold_scatternd(onnx_call *c, onnx_const *out) {
    const onnx_const *x, *index, *update;
    const char *reduction = "none";
    int64_t slice = 1;
    void *data;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_need_const(c, 1, "indices", &index));
    HP_TRY(onnx_need_const(c, 2, "updates", &update));
    HP_TRY(onnx_attr_text(c, "reduction", &reduction));
    const int64_t depth = index->n_dim > 0 ? index->dim[index->n_dim - 1] : 0;
    if (strcmp(reduction, "none") != 0) return onnx_fail(c, "that reduces is not supported");
    if (depth < 1 || depth > x->n_dim || update->type != x->type)
        return onnx_fail(c, "its indices do not fit its input");
    for (int64_t d = depth; d < x->n_dim; d++) slice *= x->dim[d];
    const int64_t n = index->count / depth;
    if (slice < 1 || update->count / slice != n || update->count % slice)
        return onnx_fail(c, "its updates do not fit");
    const bool known = x->data && index->data && update->data;
    *out = (onnx_const){.name = "", .type = onnx_result_type(x->type), .n_dim = x->n_dim};
    memcpy(out->dim, x->dim, sizeof out->dim);
    HP_TRY(onnx_const_room(c, known, out, &data));
    if (!known) return HP_OK;
    for (int64_t i = 0; i < x->count; i++) onnx_put(out, data, i, x, i);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = place_of(x, index, i, depth, slice);
        if (at < 0) return onnx_fail(c, "its index is out of range");
        for (int64_t k = 0; k < slice; k++) onnx_put(out, data, at + k, update, i * slice + k);
    }
    return HP_OK;
}
