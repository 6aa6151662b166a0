/* op_linear.c - Gemm and MatMul with constant weights: a linear layer over the whole sample, or a 1x1
 * convolution if the matrix multiplies every pixel's channels. */
#include "networks/graph/layer.h"
#include "networks/onnx/ops/op_conv.h"
#include "networks/onnx/onnx_weights.h"

#include <inttypes.h>
#include <string.h>

/* Which axes does the last dimension hold? */
typedef enum last_dim { LAST_SAMPLE, LAST_CHANNELS, LAST_OTHER } last_dim;

static last_dim last_of(const onnx_reader *r, const onnx_value *x) {
    int of[HP_AXES];
    const int last = x->n_dim - 1;
    if (last < 0 || !onnx_axes(r, x, of)) return LAST_OTHER;
    bool whole = of[HP_AXIS_N] != last, channels = whole;
    for (int a = 1; a < HP_AXES; a++) {
        whole &= of[a] < 0 || of[a] == last;
        if (a != HP_AXIS_C) channels &= of[a] != last;
    }
    if (whole) return LAST_SAMPLE;
    return channels && (of[HP_AXIS_C] == last || x->dim[last] == 1) ? LAST_CHANNELS : LAST_OTHER;
}

/* Position of element (c, h, w) of a sample in the model's order; NULL if the orders are the same. */
static const int32_t *places(const onnx_call *c, const onnx_value *x) {
    const int64_t extent[3] = {onnx_extent(c->r, x, HP_AXIS_C), onnx_extent(c->r, x, HP_AXIS_H),
                               onnx_extent(c->r, x, HP_AXIS_W)};
    static const int axis[3] = {HP_AXIS_C, HP_AXIS_H, HP_AXIS_W};
    int64_t step[3] = {1, 1, 1}, n = 1;
    bool plain = true;
    for (int i = HP_AXES - 1; i >= 0; i--)
        for (int a = 0; a < 3; a++)
            if (x->order[i] == axis[a]) {
                step[a] = n;
                n *= extent[a];
            }
    plain = (extent[0] == 1 || step[0] == extent[1] * extent[2]) &&
            (extent[1] == 1 || step[1] == extent[2]) && (extent[2] == 1 || step[2] == 1);
    if (plain || !c->r->weights) return NULL;
    int32_t *place = HP_NEW(c->r->scratch, int32_t, n);
    for (int64_t i = 0; i < n; i++)
        place[i] = (int32_t)(i / (extent[1] * extent[2]) * step[0] + i / extent[2] % extent[1] * step[1] +
                             i % extent[2] * step[2]);
    return place;
}

static hp_status linear_layer(onnx_call *c, const onnx_value *x, int32_t tensor, const onnx_const *w,
                              bool outs_first, double factor, int64_t outs, int32_t *y) {
    const int64_t ins = hp_tensor_elems(c->r->graph, tensor), dim[2] = {outs, ins};
    if (ins > INT32_MAX) return onnx_fail(c, "has %" PRId64 " inputs: give a smaller --image", ins);
    HP_TRY(onnx_emit(c, (hp_layer){.op = HP_LINEAR, .n_in = 1, .in = {tensor}}, outs, y));
    return onnx_emit_param(c, HP_PARAM_LINEAR_W, w->name, "weight", 2, dim, ins,
                           onnx_weights_matrix(c, w, outs_first, places(c, x), factor));
}

static hp_status pixel_layer(onnx_call *c, int32_t tensor, const onnx_const *w, bool outs_first,
                             double factor, int64_t outs, int32_t *y) {
    const int64_t ins = c->r->graph->tensor[tensor].c, dim[2] = {outs, ins};
    HP_TRY(onnx_emit(c, hp_pixel_layer(tensor), outs, y));
    return onnx_emit_param(c, HP_PARAM_LINEAR_W, w->name, "weight", 2, dim, ins,
                           onnx_weights_matrix(c, w, outs_first, NULL, factor));
}

hp_status onnx_linear_with(onnx_call *c, const onnx_value *x, int32_t tensor, const onnx_const *w,
                           bool outs_first, double factor, const onnx_const *bias) {
    const last_dim last = last_of(c->r, x);
    if (w->n_dim != 2 || w->count < 1) return onnx_fail(c, "multiplies by a constant that is not a matrix");
    const int64_t outs = w->dim[outs_first ? 0 : 1], ins = w->dim[outs_first ? 1 : 0];
    if (last == LAST_OTHER)
        return onnx_fail(c, "multiplies along a dimension that is neither the channels nor a whole sample");
    if (ins != x->dim[x->n_dim - 1])
        return onnx_fail(c,
                         "has weights for %" PRId64 " inputs and %" PRId64 " of them: is the --image the one "
                         "that the model was made for?",
                         ins, x->dim[x->n_dim - 1]);
    int32_t y = -1;
    if (last == LAST_SAMPLE)
        HP_TRY(linear_layer(c, x, tensor, w, outs_first, factor, outs, &y));
    else
        HP_TRY(pixel_layer(c, tensor, w, outs_first, factor, outs, &y));
    HP_TRY(onnx_emit_bias(c, bias, outs));
    onnx_value like = *x;
    like.dim[like.n_dim - 1] = outs;
    like.type = ONNX_FLOAT;
    onnx_result_like(c, y, &like);
    return HP_OK;
}

hp_status onnx_read_matmul(onnx_call *c) {
    onnx_value *x;
    const onnx_const *w;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_need_const(c, 1, "second matrix", &w));
    return onnx_linear_with(c, x, x->tensor, w, false, 1, NULL);
}

/* Gemm's C: one number, (O), (1, O), or (M, O) with M = 1, as (O). */
static hp_status gemm_bias(const onnx_call *c, int64_t outs, double beta, onnx_const *room,
                           const onnx_const **bias) {
    const onnx_const *k;
    *bias = NULL;
    if (!onnx_in(c, 2) || beta == 0) return HP_OK;
    HP_TRY(onnx_need_const(c, 2, "bias", &k));
    if (k->n_dim > 2 || (k->count != 1 && k->count != outs) ||
        (k->n_dim == 2 && k->count != 1 && k->dim[1] != outs))
        return onnx_fail(c, "its bias differs from sample to sample, which is not supported");
    *room = (onnx_const){.name = k->name, .type = ONNX_FLOAT, .n_dim = 1, .dim = {outs}, .count = outs};
    *bias = room;
    if (!k->data) return HP_OK;
    float *f = HP_NEW(c->r->arena, float, outs);
    for (int64_t o = 0; o < outs; o++) f[o] = (float)(beta * onnx_real(k, k->count == 1 ? 0 : o));
    room->data = f;
    return HP_OK;
}

hp_status onnx_read_gemm(onnx_call *c) {
    onnx_value *x;
    const onnx_const *w, *bias;
    onnx_const room;
    int64_t trans_a = 0, trans_b = 0;
    double alpha = 1, beta = 1;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_need_const(c, 1, "second matrix", &w));
    HP_TRY(onnx_attr_int(c, "transA", 0, 1, &trans_a));
    HP_TRY(onnx_attr_int(c, "transB", 0, 1, &trans_b));
    HP_TRY(onnx_attr_float(c, "alpha", &alpha));
    HP_TRY(onnx_attr_float(c, "beta", &beta));
    if (trans_a) return onnx_fail(c, "transA = 1, a transposed batch, is not supported");
    if (x->n_dim != 2 || w->n_dim != 2) return onnx_fail(c, "multiplies something that is not a matrix");
    HP_TRY(gemm_bias(c, w->dim[trans_b ? 0 : 1], beta, &room, &bias));
    return onnx_linear_with(c, x, x->tensor, w, trans_b, alpha, bias);
}
