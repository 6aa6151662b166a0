/* op_pool.c - MaxPool, AveragePool, global pools; ReduceMean and ReduceMax over rows, columns and channels;
 * ArgMax over channels. */
#include "networks/onnx/onnx_inside.h"
#include "networks/onnx/ops/op_window.h"

#include <inttypes.h>

static hp_status read_window(onnx_call *c, onnx_value **x, onnx_window *w, int64_t *ceil_mode) {
    HP_TRY(onnx_need_map(c, 0, x));
    HP_TRY(onnx_window_read(c, *x, NULL, w));
    HP_TRY(onnx_attr_int(c, "ceil_mode", 0, 1, ceil_mode));
    HP_TRY(onnx_window_pads(c, *ceil_mode != 0, w));
    for (int i = 0; i < 2; i++)
        if (w->begin[i] >= w->k[i] * w->dil[i] || w->end[i] >= w->k[i] * w->dil[i])
            return onnx_fail(c, "its padding is as large as its window, so that some windows hold nothing");
    return HP_OK;
}

/* The output keeps the input's quantisation. */
static hp_status emit_pool(onnx_call *c, const onnx_value *x, hp_layer l) {
    int32_t y;
    HP_TRY(onnx_emit(c, l, 0, &y));
    onnx_result(c, y, x->n_dim);
    c->out->type = x->type;
    c->out->quant = x->quant;
    if (x->quant) onnx_note_as(c->r, y, x->tensor);
    return HP_OK;
}

hp_status onnx_read_maxpool(onnx_call *c) {
    onnx_value *x;
    onnx_window w;
    int64_t ceil_mode = 0, order = 0;
    HP_TRY(read_window(c, &x, &w, &ceil_mode));
    /* storage_order concerns the second output, which is not supported */
    HP_TRY(onnx_attr_int(c, "storage_order", 0, 1, &order));
    return emit_pool(c, x, onnx_window_layer(HP_MAXPOOL, x->tensor, &w));
}

/* Inserts explicit zeros around the map, which the mean counts as pixels, where symmetric padding cannot
 * express them. */
static hp_status pad_before(const onnx_call *c, const onnx_window *w, int32_t *tensor) {
    const hp_layer l = {.op = HP_PAD,
                        .n_in = 1,
                        .in = {*tensor},
                        .window.pad_h = (int32_t)w->begin[0],
                        .window.pad_w = (int32_t)w->begin[1],
                        .out_h = (int32_t)(w->in[0] + w->begin[0] + w->end[0]),
                        .out_w = (int32_t)(w->in[1] + w->begin[1] + w->end[1])};
    return onnx_emit(c, l, 0, tensor);
}

hp_status onnx_read_averagepool(onnx_call *c) {
    onnx_value *x;
    onnx_window w;
    int64_t ceil_mode = 0, count_pad = 0;
    HP_TRY(read_window(c, &x, &w, &ceil_mode));
    HP_TRY(onnx_attr_int(c, "count_include_pad", 0, 1, &count_pad));
    int32_t tensor = x->tensor;
    if (count_pad && (w.begin[0] || w.begin[1] || w.end[0] || w.end[1])) {
        HP_TRY(pad_before(c, &w, &tensor));
        for (int i = 0; i < 2; i++) {
            w.in[i] += w.begin[i] + w.end[i];
            w.begin[i] = w.end[i] = 0;
        }
    }
    return emit_pool(c, x, onnx_window_layer(HP_AVGPOOL, tensor, &w));
}

/* A pool over all rows and columns, or over one of the two. */
static hp_layer pool_over(const onnx_reader *r, const onnx_value *x, hp_layer_op op, bool rows,
                          bool columns) {
    const int32_t h = rows ? (int32_t)onnx_extent(r, x, HP_AXIS_H) : 1,
                  w = columns ? (int32_t)onnx_extent(r, x, HP_AXIS_W) : 1;
    if (op == HP_AVGPOOL && rows && columns)
        return (hp_layer){.op = HP_ADAPTPOOL, .n_in = 1, .in = {x->tensor}, .out_h = 1, .out_w = 1};
    return (hp_layer){.op = op,
                      .n_in = 1,
                      .in = {x->tensor},
                      .window.kh = h,
                      .window.kw = w,
                      .window.stride_h = 1,
                      .window.stride_w = 1,
                      .window.dil_h = 1,
                      .window.dil_w = 1,
                      .groups = 1};
}

hp_status onnx_read_globalaveragepool(onnx_call *c) {
    onnx_value *x;
    HP_TRY(onnx_need_map(c, 0, &x));
    return emit_pool(c, x, pool_over(c->r, x, HP_AVGPOOL, true, true));
}

hp_status onnx_read_globalmaxpool(onnx_call *c) {
    onnx_value *x;
    HP_TRY(onnx_need_map(c, 0, &x));
    return emit_pool(c, x, pool_over(c->r, x, HP_MAXPOOL, true, true));
}

/* Reduced dimensions become 1, or are removed unless `keep`. */
static void drop_dims(onnx_value *v, const bool *reduced, bool keep) {
    int n = 0;
    for (int d = 0; d < v->n_dim; d++) {
        if (reduced[d] && !keep) continue;
        v->dim[n++] = reduced[d] ? 1 : v->dim[d];
    }
    v->n_dim = n;
}

static hp_status emit_reduce(const onnx_call *c, hp_channel_reduction kind, int32_t *tensor) {
    return onnx_emit(c, (hp_layer){.op = HP_REDUCE, .n_in = 1, .in = {*tensor}, .reduction = (int32_t)kind},
                     0, tensor);
}

static hp_status reduce(onnx_call *c, hp_layer_op op) {
    onnx_value *x;
    int64_t axes[ONNX_MOST_DIMS], keep = 1;
    int n, of[HP_AXES];
    bool reduced[ONNX_MOST_DIMS] = {0};
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_ints(c, "axes", 1, ONNX_MOST_DIMS, axes, &n));
    HP_TRY(onnx_attr_int(c, "keepdims", 0, 1, &keep));
    for (int d = 0; d < x->n_dim && n == 0; d++) reduced[d] = true;
    for (int i = 0; i < n; i++) {
        int axis;
        HP_TRY(onnx_axis(c, axes[i], x->n_dim, &axis));
        reduced[axis] = true;
    }
    if (!onnx_axes(c->r, x, of)) return onnx_fail(c, "reduces something that was reshaped");
    if (of[HP_AXIS_N] >= 0 && reduced[of[HP_AXIS_N]])
        return onnx_fail(c, "over samples is not supported: only over rows, columns and channels");
    const bool rows = of[HP_AXIS_H] >= 0 && reduced[of[HP_AXIS_H]],
               columns = of[HP_AXIS_W] >= 0 && reduced[of[HP_AXIS_W]];
    int32_t y = x->tensor;
    if (rows || columns) HP_TRY(onnx_emit(c, pool_over(c->r, x, op, rows, columns), 0, &y));
    if (of[HP_AXIS_C] >= 0 && reduced[of[HP_AXIS_C]])
        HP_TRY(emit_reduce(c, op == HP_MAXPOOL ? HP_CHANNELS_MAX : HP_CHANNELS_MEAN, &y));
    onnx_value like = *x;
    drop_dims(&like, reduced, keep != 0);
    onnx_result_like(c, y, &like);
    return HP_OK;
}

hp_status onnx_read_reducemean(onnx_call *c) {
    return reduce(c, HP_AVGPOOL);
}

hp_status onnx_read_reducemax(onnx_call *c) {
    return reduce(c, HP_MAXPOOL);
}

/* Whole numbers, as reals. */
hp_status onnx_read_argmax(onnx_call *c) {
    onnx_value *x;
    int64_t given = 0, keep = 1, last = 0;
    int32_t y;
    bool reduced[ONNX_MOST_DIMS] = {0};
    int axis;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_attr_int(c, "keepdims", 0, 1, &keep));
    HP_TRY(onnx_attr_int(c, "select_last_index", 0, 1, &last));
    HP_TRY(onnx_axis(c, given, x->n_dim, &axis));
    if (last || !onnx_is_channel_dim(c->r, x, axis))
        return onnx_fail(
            c, "takes something else than the first largest of the channels, which is not supported");
    y = x->tensor;
    HP_TRY(emit_reduce(c, HP_CHANNELS_ARGMAX, &y));
    onnx_value like = *x;
    reduced[axis] = true;
    drop_dims(&like, reduced, keep != 0);
    like.type = ONNX_INT64;
    onnx_result_like(c, y, &like);
    return HP_OK;
}
