/* onnx_weights.c - weights in hplan's layouts, as floats and, if the model is quantised, as 8-bit
 * integers. */
#include "networks/onnx/onnx_weights.h"

#include <inttypes.h>
#include <string.h>

/* --- (rows, columns) in another order --- */

/* Element (o, i) of the result (outs, ins) is at o * out_step + place[i] * in_step; place NULL: i. */
typedef struct order {
    int64_t outs, ins, out_step, in_step;
    const int32_t *place;
} order;

static int64_t at(const order *m, int64_t o, int64_t i) {
    return o * m->out_step + (m->place ? m->place[i] : i) * m->in_step;
}

static bool is_plain(const order *m) {
    return m->in_step == 1 && m->out_step == m->ins && !m->place;
}

static const float *ordered_floats(const onnx_call *c, const onnx_const *k, const order *m, double factor) {
    if (is_plain(m) && factor == 1) return onnx_floats(c, k);
    if (!k->data || !c->r->weights) return NULL;
    float *f = HP_NEW(c->r->arena, float, k->count);
    for (int64_t o = 0; o < m->outs; o++)
        for (int64_t i = 0; i < m->ins; i++) f[o * m->ins + i] = (float)(factor * onnx_real(k, at(m, o, i)));
    return f;
}

/* --- 8-bit weights --- */

static double zero_of(const onnx_const *k, int64_t out) {
    return k->q_zero ? onnx_real(k->q_zero, k->q_zero->count == 1 ? 0 : out) : 0;
}

/* q - zero as signed 8-bit numbers; NULL if they do not fit. */
static const int8_t *ordered_bytes(const onnx_call *c, const onnx_const *k, const order *m) {
    int8_t *b = HP_NEW(c->r->arena, int8_t, k->count);
    for (int64_t o = 0; o < m->outs; o++)
        for (int64_t i = 0; i < m->ins; i++) {
            const double v = onnx_real(k->q, at(m, o, i)) - zero_of(k, o);
            if (v < INT8_MIN || v > INT8_MAX) return NULL;
            b[o * m->ins + i] = (int8_t)v;
        }
    return b;
}

static bool has_bytes(const onnx_call *c, const onnx_const *k, const order *m, int axis) {
    if (!c->r->weights || !k->q || !k->q->data || !k->q_scale->data) return false;
    if (k->q_scale->count != 1 && (k->q_axis != axis || k->q_scale->count != m->outs)) return false;
    return onnx_type_of(k->q->type)->bytes == 1 &&
           (!k->q_zero || k->q_zero->count == 1 || k->q_zero->count == m->outs);
}

static hp_onnx_param ordered(const onnx_call *c, const onnx_const *k, const order *m, int axis,
                             double factor) {
    hp_onnx_param p = {ordered_floats(c, k, m, factor)};
    if (!has_bytes(c, k, m, axis)) return p;
    p.data8 = ordered_bytes(c, k, m);
    float *scale = HP_NEW(c->r->arena, float, m->outs);
    for (int64_t o = 0; o < m->outs; o++)
        scale[o] = (float)(factor * onnx_real(k->q_scale, k->q_scale->count == 1 ? 0 : o));
    p.data8_scale = scale;
    return p;
}

hp_onnx_param onnx_weights_conv(const onnx_call *c, const onnx_const *k) {
    const int64_t outs = k->dim[0], ins = k->count / outs;
    return ordered(c, k, &(order){outs, ins, ins, 1, NULL}, 0, 1);
}

hp_onnx_param onnx_weights_convt(const onnx_call *c, const onnx_const *k) {
    return (hp_onnx_param){onnx_floats(c, k)};
}

hp_onnx_param onnx_weights_matrix(const onnx_call *c, const onnx_const *k, bool outs_first,
                                  const int32_t *place, double factor) {
    const int64_t outs = k->dim[outs_first ? 0 : 1], ins = k->dim[outs_first ? 1 : 0];
    const order m = {outs, ins, outs_first ? ins : 1, outs_first ? 1 : outs, place};
    return ordered(c, k, &m, outs_first ? 0 : 1, factor);
}
