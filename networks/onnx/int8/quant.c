/* quant.c - quantised models: QuantizeLinear, DequantizeLinear and the operators on 8-bit numbers.
 *
 * Integers are read as the reals they represent; scale and zero point are noted at the tensor. A float
 * program computes without rounding between layers; an int8 program uses the noted parameters. Saturation at
 * real zero, which models use as their activation, becomes a clamp. */
#include "networks/onnx/ops/op_conv.h"
#include "networks/graph/acts.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- scales and zero points --- */

/* The inverse must be finite too. */
static hp_status check_scale(const onnx_call *c, const onnx_const *scale, int64_t i) {
    const double s = onnx_real(scale, i);
    if (!scale->data || (s >= (double)FLT_MIN && s <= 1 / (double)FLT_MIN)) return HP_OK;
    return onnx_fail(c, "its scale %" PRId64 " is %g: it must be positive and finite", i, s);
}

/* Zero points must have the type of the integers. */
static hp_status check_zero(const onnx_call *c, int type, const onnx_const *zero) {
    const onnx_type *of = onnx_type_of(type), *has = zero ? onnx_type_of(zero->type) : of;
    if (of == has) return HP_OK;
    return onnx_fail(c, "its zero point is %s, its integers are %s", has ? has->name : "of an unknown type",
                     of ? of->name : "of an unknown type");
}

/* Reads inputs k_scale and k_zero, with one element or `channels`; the type follows from the zero point. */
static hp_status read_quant(const onnx_call *c, int k_scale, int k_zero, int64_t channels, onnx_quant **out) {
    const onnx_const *scale, *zero = NULL;
    HP_TRY(onnx_need_const(c, k_scale, "scale", &scale));
    if (onnx_in(c, k_zero)) HP_TRY(onnx_need_const(c, k_zero, "zero point", &zero));
    if ((scale->count != 1 && scale->count != channels) || scale->count < 1 ||
        (zero && zero->count != scale->count && zero->count != 1))
        return onnx_fail(c, "has %" PRId64 " scales for %" PRId64 " channels", scale->count, channels);
    const int type = zero ? zero->type : ONNX_UINT8;
    onnx_quant *q = HP_NEW(c->r->arena, onnx_quant, 1);
    *q = (onnx_quant){
        .n = (int)scale->count, .low = type == ONNX_INT8 ? -128 : 0, .high = type == ONNX_INT8 ? 127 : 255};
    double *s = HP_NEW(c->r->arena, double, q->n), *z = HP_NEW(c->r->arena, double, q->n);
    for (int i = 0; i < q->n; i++) {
        s[i] = onnx_real(scale, i);
        z[i] = zero ? onnx_real(zero, zero->count == 1 ? 0 : i) : 0;
        HP_TRY(check_scale(c, scale, i));
    }
    q->scale = s;
    q->zero = z;
    *out = q;
    return HP_OK;
}

static bool is_8bit(const onnx_call *c, int k_zero) {
    const onnx_value *zero = onnx_in(c, k_zero);
    return !zero || zero->c.type == ONNX_UINT8 || zero->c.type == ONNX_INT8;
}

static double number_of(const double *v, int n, int64_t i) {
    return v[n == 1 ? 0 : i];
}

static bool same_quant(const onnx_quant *a, const onnx_quant *b) {
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->scale[i] != b->scale[i] || a->zero[i] != b->zero[i]) return false;
    return true;
}

/* --- integers to reals --- */

/* The reals that v's integers represent under `to`: unchanged for v's own quantisation, otherwise scaled and
 * shifted. Plain integers represent themselves. */
static hp_status reals_of(const onnx_call *c, const onnx_value *v, const onnx_quant *to, int32_t *tensor) {
    static const double one = 1, none = 0;
    const onnx_quant plain = {.n = 1, .scale = &one, .zero = &none}, *from = v->quant ? v->quant : &plain;
    const int64_t channels = onnx_extent(c->r, v, HP_AXIS_C);
    *tensor = v->tensor;
    if (!onnx_type_of(v->type)->whole) return onnx_fail(c, "takes whole numbers, and its input is real");
    if (same_quant(from, to)) return HP_OK;
    float *factor = HP_NEW(c->r->arena, float, channels), *bias = HP_NEW(c->r->arena, float, channels);
    for (int64_t i = 0; i < channels; i++) {
        const double scale = number_of(to->scale, to->n, i);
        factor[i] = (float)(scale / number_of(from->scale, from->n, i));
        bias[i] = (float)(scale * (number_of(from->zero, from->n, i) - number_of(to->zero, to->n, i)));
    }
    return onnx_emit_scale(c, v->tensor, factor, bias, tensor);
}

/* Input k, followed by the inputs of its scale and zero point. */
static hp_status read_quantised_input(const onnx_call *c, int k, onnx_value **x, int32_t *tensor) {
    onnx_quant *q;
    HP_TRY(onnx_need_tensor(c, k, x));
    HP_TRY(read_quant(c, k + 1, k + 2, 1, &q));
    HP_TRY(check_zero(c, (*x)->type, onnx_in(c, k + 2) ? &onnx_in(c, k + 2)->c : NULL));
    return reals_of(c, *x, q, tensor);
}

/* --- reals to integers --- */

/* Does the range act as an activation? A range that ends at real zero is ReLU, or ReLU6 together with its
 * other end. Other ends only reflect calibration. They need no clamp in the layer that computes the numbers,
 * but prevent fusing what follows into it, because the model rounds in between. */
static bool saturates(const onnx_call *c, const onnx_quant *q, int32_t tensor) {
    static const bool takes[HP_LAYER_OPS] = {
        [HP_CONV] = true, [HP_CONVT] = true, [HP_LINEAR] = true, [HP_BN] = true,
        [HP_ADD] = true,  [HP_MUL] = true,   [HP_SCALE] = true};
    const hp_graph *g = c->r->graph;
    const hp_layer *maker = &g->layer[g->tensor[tensor].producer];
    if (q->n != 1) return false;
    if ((q->zero[0] == q->low && !c->r->note[tensor].never_negative) || q->zero[0] == q->high) return true;
    return takes[maker->op] && !hp_layer_has_act(maker) && !c->r->note[tensor].has_qparam;
}

static hp_status emit_saturation(onnx_call *c, const onnx_quant *q, int32_t *tensor) {
    hp_layer l = {.op = HP_ACT, .act = HP_ACT_CLIP, .n_in = 1, .in = {*tensor}};
    if (!saturates(c, q, *tensor)) return HP_OK;
    l.act_arg.a = q->scale[0] * (q->low - q->zero[0]);
    l.act_arg.b = q->scale[0] * (q->high - q->zero[0]);
    if (l.act_arg.a == 0 && fabs(l.act_arg.b - 6) < 1e-5) l.act = HP_ACT_RELU6;
    if (l.act == HP_ACT_RELU6) l.act_arg.b = 0;
    return onnx_emit(c, l, 0, tensor);
}

static bool is_noted(const onnx_note *note, const onnx_quant *q) {
    return note->scale == (float)q->scale[0] && note->zero == (int32_t)q->zero[0] - q->low;
}

/* A tensor has one scale and zero point; for a second pair, it is copied. */
static hp_status note_quant(onnx_call *c, const onnx_quant *q, int32_t *tensor) {
    const hp_layer copy = {.op = HP_ACT, .n_in = 1, .in = {*tensor}};
    if (q->n != 1) return HP_OK;
    if (c->r->note[*tensor].has_qparam && !is_noted(&c->r->note[*tensor], q))
        HP_TRY(onnx_emit(c, copy, 0, tensor));
    onnx_note *note = &c->r->note[*tensor];
    note->has_qparam = true;
    note->scale = (float)q->scale[0];
    note->zero = (int32_t)q->zero[0] - q->low;
    return HP_OK;
}

/* Turns the node's output, real so far, into integers with quantisation `q`. */
static hp_status quantise_output(onnx_call *c, const onnx_quant *q) {
    onnx_value *v = c->out;
    HP_TRY(emit_saturation(c, q, &v->tensor));
    HP_TRY(note_quant(c, q, &v->tensor));
    v->quant = q;
    v->type = q->low < 0 ? ONNX_INT8 : ONNX_UINT8;
    return HP_OK;
}

static hp_status quantise_by(onnx_call *c, int k_scale, int k_zero) {
    onnx_quant *q;
    if (!is_8bit(c, k_zero)) return onnx_fail(c, "only 8-bit numbers are supported");
    HP_TRY(read_quant(c, k_scale, k_zero, 1, &q));
    return quantise_output(c, q);
}

/* --- QuantizeLinear, DequantizeLinear --- */

/* Checks attributes of opset 21 and later: no blocks, and only type `only`. */
static hp_status check_types(const onnx_call *c, int64_t only) {
    int64_t blocks = 0, type = 0;
    HP_TRY(onnx_attr_int(c, "block_size", 0, 0, &blocks));
    HP_TRY(onnx_attr_int(c, "output_dtype", 0, INT32_MAX, &type));
    if (type == 0 || type == only) return HP_OK;
    return onnx_fail(c, "attribute output_dtype = %" PRId64 " is not supported here", type);
}

/* The scale is one number, or one per channel along `axis`. */
static hp_status check_axis(const onnx_call *c, const onnx_value *x, const onnx_quant *q) {
    int64_t given = 1;
    int axis;
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    if (q->n == 1) return HP_OK;
    HP_TRY(onnx_axis(c, given, x->n_dim, &axis));
    if (onnx_is_channel_dim(c->r, x, axis)) return HP_OK;
    return onnx_fail(c, "has a scale per item of dimension %d, which is not the channels'", axis);
}

hp_status onnx_read_quantizelinear(onnx_call *c) {
    onnx_value *x;
    onnx_quant *q;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    if (!is_8bit(c, 2)) return onnx_fail(c, "only 8-bit numbers are supported");
    HP_TRY(check_types(c, onnx_in(c, 2) ? onnx_in(c, 2)->c.type : ONNX_UINT8));
    HP_TRY(read_quant(c, 1, 2, onnx_extent(c->r, x, HP_AXIS_C), &q));
    HP_TRY(check_axis(c, x, q));
    onnx_result_like(c, x->tensor, x);
    return quantise_output(c, q);
}

hp_status onnx_read_dequantizelinear(onnx_call *c) {
    onnx_value *x;
    onnx_quant *q;
    int32_t y;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(check_types(c, ONNX_FLOAT));
    HP_TRY(read_quant(c, 1, 2, onnx_extent(c->r, x, HP_AXIS_C), &q));
    HP_TRY(check_axis(c, x, q));
    HP_TRY(check_zero(c, x->type, onnx_in(c, 2) ? &onnx_in(c, 2)->c : NULL));
    HP_TRY(reals_of(c, x, q, &y));
    onnx_value like = *x;
    like.type = ONNX_FLOAT;
    onnx_result_like(c, y, &like);
    return HP_OK;
}

/* scale (q - zero); keeps the integers for 8-bit weights. */
static hp_status dequantise(onnx_call *c, const onnx_const *q, const onnx_const *scale,
                            const onnx_const *zero, int axis, onnx_const *out) {
    void *data;
    int64_t after = 1;
    const bool many = scale->count != 1;
    HP_TRY(check_zero(c, q->type, zero));
    if (scale->count < 1 || (many && (axis >= q->n_dim || q->dim[axis] != scale->count)) ||
        (zero && zero->count != 1 && zero->count != scale->count))
        return onnx_fail(c, "its scales and zero points do not fit its constant");
    for (int64_t i = 0; i < scale->count; i++) HP_TRY(check_scale(c, scale, i));
    for (int d = axis + 1; d < q->n_dim; d++) after *= q->dim[d];
    *out = *q;
    out->type = ONNX_FLOAT;
    out->data = NULL;
    out->q = q;
    out->q_scale = scale;
    out->q_zero = zero;
    out->q_axis = axis;
    if (!c->r->weights && q->count > 4096) return HP_OK; /* large constants are not read without weights */
    HP_TRY(onnx_const_room(c, q->data != NULL, out, &data));
    for (int64_t i = 0; data && i < out->count; i++) {
        const int64_t k = many ? i / after % scale->count : 0;
        const double z = zero ? onnx_real(zero, zero->count == 1 ? 0 : k) : 0;
        ((float *)data)[i] = (float)((onnx_real(q, i) - z) * onnx_real(scale, k));
    }
    return HP_OK;
}

hp_status onnx_fold_dequantizelinear(onnx_call *c, onnx_const *out) {
    const onnx_const *x, *scale, *zero = NULL;
    int64_t given = 1;
    int axis = 0;
    HP_TRY(check_types(c, ONNX_FLOAT));
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_need_const(c, 1, "scale", &scale));
    if (onnx_in(c, 2)) HP_TRY(onnx_need_const(c, 2, "zero point", &zero));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    if (scale->count != 1) HP_TRY(onnx_axis(c, given, x->n_dim, &axis));
    return dequantise(c, x, scale, zero, axis, out);
}

/* --- operators --- */

/* Constant input k as reals: weights by rows or columns (`axis`), with scale and zero point as inputs. */
static hp_status weights_of(onnx_call *c, int k, int k_scale, int k_zero, int axis, onnx_const *out) {
    static const float one = 1;
    static const onnx_const unit = {.name = "", .type = ONNX_FLOAT, .count = 1, .data = &one};
    const onnx_const *w, *scale = &unit, *zero = NULL;
    HP_TRY(onnx_need_const(c, k, "weights", &w));
    if (k_scale >= 0) HP_TRY(onnx_need_const(c, k_scale, "weights' scale", &scale));
    if (onnx_in(c, k_zero)) HP_TRY(onnx_need_const(c, k_zero, "weights' zero point", &zero));
    return dequantise(c, w, scale, zero, axis, out);
}

/* The unit of an int32 bias is x's scale times the weights'. */
static hp_status bias_of(onnx_call *c, int k, int k_x_scale, const onnx_const *weights, onnx_const *room,
                         const onnx_const **out) {
    const onnx_const *b, *x_scale;
    void *data;
    *out = NULL;
    if (!onnx_in(c, k)) return HP_OK;
    HP_TRY(onnx_need_const(c, k, "bias", &b));
    HP_TRY(onnx_need_const(c, k_x_scale, "scale", &x_scale));
    const onnx_const *w_scale = weights->q_scale;
    if (w_scale->count != 1 && w_scale->count != b->count)
        return onnx_fail(c, "its bias does not fit its weights");
    *room = *b;
    room->type = ONNX_FLOAT;
    room->data = NULL;
    HP_TRY(onnx_const_room(c, b->data && w_scale->data, room, &data));
    for (int64_t i = 0; data && i < b->count; i++)
        ((float *)data)[i] = (float)(onnx_real(b, i) * onnx_real(x_scale, 0) *
                                     onnx_real(w_scale, w_scale->count == 1 ? 0 : i));
    *out = room;
    return HP_OK;
}

hp_status onnx_read_qlinearconv(onnx_call *c) {
    onnx_value *x;
    int32_t tensor;
    onnx_const w, room;
    const onnx_const *bias;
    HP_TRY(onnx_need_map(c, 0, &x));
    HP_TRY(read_quantised_input(c, 0, &x, &tensor));
    HP_TRY(weights_of(c, 3, 4, 5, 0, &w));
    HP_TRY(bias_of(c, 8, 1, &w, &room, &bias));
    HP_TRY(onnx_conv_with(c, x, tensor, &w, bias));
    return quantise_by(c, 6, 7);
}

/* Operands of a product of integers, a (x - zero) and b (w - zero); padding is x's zero point. */
static hp_status integer_operands(onnx_call *c, onnx_value *x, int axis, int32_t *tensor, onnx_const *w) {
    static const double one = 1;
    double zero = 0;
    HP_TRY(onnx_need_number(c, 2, "zero point", &zero));
    const onnx_quant q = {.n = 1, .scale = &one, .zero = &zero};
    HP_TRY(reals_of(c, x, &q, tensor));
    return weights_of(c, 1, -1, 3, axis, w);
}

hp_status onnx_read_convinteger(onnx_call *c) {
    onnx_value *x;
    int32_t tensor;
    onnx_const w;
    HP_TRY(onnx_need_map(c, 0, &x));
    HP_TRY(integer_operands(c, x, 0, &tensor, &w));
    HP_TRY(onnx_conv_with(c, x, tensor, &w, NULL));
    c->out->type = ONNX_INT32;
    return HP_OK;
}

hp_status onnx_read_matmulinteger(onnx_call *c) {
    onnx_value *x;
    int32_t tensor;
    onnx_const w;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(integer_operands(c, x, 1, &tensor, &w));
    HP_TRY(onnx_linear_with(c, x, tensor, &w, false, 1, NULL));
    c->out->type = ONNX_INT32;
    return HP_OK;
}

hp_status onnx_read_qlinearmatmul(onnx_call *c) {
    onnx_value *x;
    int32_t tensor;
    onnx_const w;
    HP_TRY(read_quantised_input(c, 0, &x, &tensor));
    HP_TRY(weights_of(c, 3, 4, 5, 1, &w));
    HP_TRY(onnx_linear_with(c, x, tensor, &w, false, 1, NULL));
    return quantise_by(c, 6, 7);
}

hp_status onnx_read_qgemm(onnx_call *c) {
    onnx_value *x;
    int32_t tensor;
    onnx_const w, room;
    const onnx_const *bias;
    int64_t trans_a = 0, trans_b = 0;
    double alpha = 1;
    HP_TRY(onnx_attr_int(c, "transA", 0, 0, &trans_a));
    HP_TRY(onnx_attr_int(c, "transB", 0, 1, &trans_b));
    HP_TRY(onnx_attr_float(c, "alpha", &alpha));
    if (alpha != 1) return onnx_fail(c, "alpha other than 1 is not supported");
    HP_TRY(read_quantised_input(c, 0, &x, &tensor));
    HP_TRY(weights_of(c, 3, 4, 5, trans_b ? 0 : 1, &w));
    HP_TRY(bias_of(c, 6, 1, &w, &room, &bias));
    HP_TRY(onnx_linear_with(c, x, tensor, &w, trans_b, 1, bias));
    return onnx_in(c, 7) ? quantise_by(c, 7, 8) : HP_OK;
}

static hp_status two_quantised(onnx_call *c, hp_layer_op op) {
    onnx_value *x, *y;
    int32_t x_tensor, y_tensor;
    HP_TRY(read_quantised_input(c, 0, &x, &x_tensor));
    HP_TRY(read_quantised_input(c, 3, &y, &y_tensor));
    HP_TRY(onnx_combine(c, op, x, x_tensor, y, y_tensor));
    return quantise_by(c, 6, 7);
}

hp_status onnx_read_qlinearadd(onnx_call *c) {
    return two_quantised(c, HP_ADD);
}

hp_status onnx_read_qlinearmul(onnx_call *c) {
    return two_quantised(c, HP_MUL);
}

hp_status onnx_read_qlinearglobalaveragepool(onnx_call *c) {
    onnx_value *x;
    int32_t tensor, y;
    int64_t last = 0;
    HP_TRY(onnx_attr_int(c, "channels_last", 0, 0, &last));
    HP_TRY(onnx_need_map(c, 0, &x));
    HP_TRY(read_quantised_input(c, 0, &x, &tensor));
    const hp_layer l = {.op = HP_ADAPTPOOL, .n_in = 1, .in = {tensor}, .out_h = 1, .out_w = 1};
    HP_TRY(onnx_emit(c, l, 0, &y));
    onnx_result(c, y, x->n_dim);
    return quantise_by(c, 3, 4);
}

/* Inputs: the output's scale and zero point, followed by tensor, scale and zero point of each part. */
hp_status onnx_read_qlinearconcat(onnx_call *c) {
    onnx_value *first, *x;
    int32_t part[ONNX_MOST_IN] = {0}, y;
    int64_t given = 1, channels = 0;
    int axis, n = 0;
    HP_TRY(onnx_need_tensor(c, 2, &first));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, first->n_dim, &axis));
    for (int k = 2; k + 2 < c->n_in; k += 3) {
        HP_TRY(read_quantised_input(c, k, &x, &part[n++]));
        HP_TRY(onnx_check_part(c, first, x, axis));
        channels += x->dim[axis];
    }
    HP_TRY(onnx_join(c, part, n, &y));
    onnx_value like = *first;
    like.dim[axis] = channels;
    onnx_result_like(c, y, &like);
    return quantise_by(c, 0, 1);
}
