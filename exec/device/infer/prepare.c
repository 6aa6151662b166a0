/* prepare.c - operands, activation, byte tables and constants of a task; see prepare.h. */
#include "exec/device/infer/prepare.h"
#include "exec/device/device_act.h"

#include <math.h>
#include <string.h>

/* --- operands --- */

static bool is_image(const hp_infer *in, int tensor) {
    return in->config->graph->tensor[tensor].producer == 0;
}

hp_qparams hp_infer_qparams(const hp_infer *in, int tensor, hp_dtype dtype) {
    if (dtype != HP_U8 || is_image(in, tensor)) return (hp_qparams){dtype, 1, 1, 0};
    const hp_qparam q = hp_constants_qparam(in->config->constants, tensor);
    return (hp_qparams){dtype, q.scale, 1.0f / q.scale, q.zero};
}

static bool equal_qparams(const hp_qparams *a, const hp_qparams *b) {
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

static hp_status check_stores(const hp_infer *in, const hp_bound *b, hp_error *err) {
    const hp_layer *l = b->layer;
    for (int k = 0; k < b->n_in; k++)
        if (b->stored.x[k] == HP_U8 && is_image(in, l->in[k]) && l->op != HP_DEQUANT)
            return hp_fail(err, HP_EUNAVAIL, "layer %s: %s does not read raw pixels", l->name,
                           hp_layer_infos[l->op].name);
    return HP_OK;
}

/* --- activations --- */

void hp_infer_set_act(hp_infer_op *o, const hp_layer *l) {
    const hp_act_args args = hp_act_args_of(l);
    o->act = l->act;
    o->act_a = args.a;
    o->act_b = args.b;
    o->clamps = hp_act_infos[l->act].kind == HP_ACT_IS_CLAMP;
    o->lo = o->clamps ? args.a : -(double)INFINITY;
    o->hi = o->clamps ? args.b : (double)INFINITY;
}

/* In float32, so that the table is the same on every device. A NaN becomes the smallest byte. */
static uint8_t recoded(const hp_infer_op *o, const hp_qparams *x, int byte) {
    const float real = x->scale * (float)(byte - x->zero),
                acted = hp_act_of_f32(o->act, real, (float)o->act_a, (float)o->act_b);
    const float least = (float)-o->y.zero, most = (float)(255 - o->y.zero);
    float v = acted * o->y.inverse;
    v = v > least ? v : least;
    v = v < most ? v : most;
    return (uint8_t)((int32_t)rintf(v) + o->y.zero);
}

/* --- per layer --- */

/* Sets a table for inputs whose bytes map to output bytes one by one. */
static hp_status set_tables(const hp_infer *in, const hp_bound *b, hp_infer_op *o, hp_error *err) {
    (void)err;
    for (int k = 0; k < b->n_in && hp_infer_factor_count(b) == 0; k++) {
        o->same[k] = equal_qparams(&o->x[k], &o->y) && o->act == HP_ACT_NONE;
        if (o->same[k] || o->x[k].dtype != HP_U8 || o->y.dtype != HP_U8) continue;
        uint8_t *table = hp_arena_alloc(in->arena, 256);
        for (int byte = 0; byte < 256; byte++) table[byte] = recoded(o, &o->x[k], byte);
        o->recode[k] = table;
    }
    return HP_OK;
}

static hp_status set_added(const hp_infer *in, const hp_bound *b, hp_infer_op *o, hp_error *err) {
    (void)in;
    (void)err;
    o->adds = b->n_in > 1;
    return HP_OK;
}

static hp_status set_vector(const hp_infer *in, const hp_bound *b, hp_infer_op *o, hp_error *err) {
    const hp_tensor *second = &in->config->graph->tensor[b->layer->in[1]];
    (void)err;
    o->vector = (int64_t)second->h * second->w == 1;
    return HP_OK;
}

enum { PIXEL_CHANNELS = 4 };

/* Raw pixels: real = scale[c] * (q - zero[c]). */
static hp_status set_pixels(const hp_infer *in, const hp_bound *b, hp_infer_op *o, hp_error *err) {
    float scale[PIXEL_CHANNELS], zero[PIXEL_CHANNELS];
    if (!is_image(in, b->layer->in[0])) return HP_OK;
    if (b->shape.full.oc > PIXEL_CHANNELS)
        return hp_fail(err, HP_EUNAVAIL, "layer %s: raw pixels of %d channels, at most %d", b->layer->name,
                       b->shape.full.oc, PIXEL_CHANNELS);
    if (b->stored.x[0] != HP_U8) return HP_OK;
    float *factor = HP_NEW(in->arena, float, 2 * PIXEL_CHANNELS), *bias = factor + PIXEL_CHANNELS;
    hp_constants_pixels(in->config->constants, scale, zero);
    for (int c = 0; c < b->shape.oc; c++) {
        factor[c] = scale[b->shape.oc0 + c];
        bias[c] = -scale[b->shape.oc0 + c] * zero[b->shape.oc0 + c];
    }
    o->factor = factor;
    o->bias = bias;
    return HP_OK;
}

static hp_status check_row(const hp_infer *in, const hp_bound *b, hp_infer_op *o, hp_error *err) {
    const bool number = b->stored.x[0] == HP_F32 || b->stored.x[0] == HP_F64;
    (void)in;
    (void)o;
    if (b->shape.ic <= HP_INFER_ROW || number) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL,
                   "layer %s: softmax over %d channels stored as %s, at most %d: keep it real",
                   b->layer->name, b->shape.ic, hp_dtype_names[b->stored.x[0]], HP_INFER_ROW);
}

typedef hp_status own_fn(const hp_infer *in, const hp_bound *b, hp_infer_op *o, hp_error *err);
static own_fn *const owns[HP_LAYER_OPS] = {
    [HP_BN] = set_added,       [HP_MUL] = set_vector, [HP_DEQUANT] = set_pixels,
    [HP_SOFTMAX] = check_row,  [HP_ACT] = set_tables, [HP_CONCAT] = set_tables,
    [HP_MAXPOOL] = set_tables, [HP_PAD] = set_tables, [HP_RESIZE] = set_tables,
};

hp_status hp_infer_op_of(const hp_infer *in, const hp_bound *b, hp_infer_op *op, hp_error *err) {
    const hp_layer *l = b->layer;
    HP_TRY(check_stores(in, b, err));
    *op = (hp_infer_op){.x = HP_NEW(in->arena, hp_qparams, b->n_in),
                        .recode = HP_NEW(in->arena, const uint8_t *, b->n_in),
                        .same = HP_NEW(in->arena, bool, b->n_in)};
    hp_infer_set_act(op, l);
    op->y = hp_infer_qparams(in, l->out, b->stored.y);
    for (int k = 0; k < b->n_in; k++)
        if (b->x[k]) op->x[k] = hp_infer_qparams(in, l->in[k], b->stored.x[k]);
    return owns[l->op] ? owns[l->op](in, b, op, err) : HP_OK;
}

/* --- constants --- */

int64_t hp_infer_factor_count(const hp_bound *b) {
    const hp_layer *l = b->layer;
    const bool has = l->op == HP_BN || l->op == HP_SCALE || (l->op == HP_CONCAT && l->n_param > 0);
    return has ? 2 * (int64_t)b->shape.oc : 0;
}

hp_status hp_infer_factors(const hp_infer *in, const hp_bound *b, float *factors, hp_error *err) {
    const int64_t channels = hp_infer_factor_count(b) / 2;
    hp_filter f;
    if (channels == 0) return HP_OK;
    HP_TRY(hp_constants_filter(in->config->constants, b->layer_id, b->shape.oc0, channels, false, &f, err));
    memcpy(factors, f.weight, (size_t)channels * sizeof *factors);
    if (f.bias)
        memcpy(factors + channels, f.bias, (size_t)channels * sizeof *factors);
    else
        memset(factors + channels, 0, (size_t)channels * sizeof *factors);
    return HP_OK;
}
