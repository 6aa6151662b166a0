/* affine.c - prepares the layers that multiply with constants, or with a vector: batch norm, scale,
 * a concatenation with either, product, raw pixels. A layer's pack: its factors, then its biases, float32, of
 * the channels that are here.
 */
#include "exec/device/infer/point.h"

#include <string.h>

/* The first task of the layer brings the constants. */
static hp_status fill_pack(hp_infer *in, const hp_bound *b, hp_error *err) {
    const int64_t channels = b->shape.oc;
    float *factor = b->pack_forward, *bias = factor + channels;
    hp_filter f;
    if (in->packed[b->layer_id] || channels == 0) return HP_OK;
    HP_TRY(hp_constants_filter(in->constants, b->layer_id, b->shape.oc0, channels, false, &f, err));
    memcpy(factor, f.weight, (size_t)channels * sizeof *factor);
    if (f.bias)
        memcpy(bias, f.bias, (size_t)channels * sizeof *bias);
    else
        memset(bias, 0, (size_t)channels * sizeof *bias);
    in->packed[b->layer_id] = true;
    return HP_OK;
}

static hp_status prepare_affine(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    hp_infer_task *t;
    HP_TRY(hp_infer_task_new(in, b, &t, k, err));
    HP_TRY(fill_pack(in, b, err));
    t->op.factor = b->pack_forward;
    t->op.bias = t->op.factor + b->shape.oc;
    t->op.adds = b->layer->op == HP_BN && b->n_in > 1;
    return HP_OK;
}

hp_status hp_infer_bn(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_affine(in, b, k, err);
}

hp_status hp_infer_scale(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_affine(in, b, k, err);
}

hp_status hp_infer_mul(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    const hp_tensor *second = &in->config->graph->tensor[b->layer->in[1]];
    hp_infer_task *t;
    HP_TRY(hp_infer_task_new(in, b, &t, k, err));
    t->op.vector = (int64_t)second->h * second->w == 1;
    return HP_OK;
}

/* Raw pixels: real = scale[c] * (q - zero[c]). */
static void set_pixels(hp_infer *in, const hp_bound *b, hp_infer_op *o) {
    float scale[4], zero[4], *factor = HP_NEW(in->arena, float, 8), *bias = factor + 4;
    hp_constants_pixels(in->constants, scale, zero);
    for (int c = 0; c < b->shape.oc; c++) {
        factor[c] = scale[b->shape.oc0 + c];
        bias[c] = -scale[b->shape.oc0 + c] * zero[b->shape.oc0 + c];
    }
    o->factor = factor;
    o->bias = bias;
}

hp_status hp_infer_dequant(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    const bool image = in->config->graph->tensor[b->layer->in[0]].producer == 0;
    hp_infer_task *t;
    if (image && b->shape.full_oc > 4)
        return hp_fail(err, HP_EUNAVAIL, "layer %s: raw pixels of %d channels, at most 4", b->layer->name,
                       b->shape.full_oc);
    HP_TRY(hp_infer_task_new(in, b, &t, k, err));
    if (image && b->x_dtype[0] == HP_U8) set_pixels(in, b, &t->op);
    return HP_OK;
}
