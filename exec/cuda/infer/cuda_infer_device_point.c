/* cuda_infer_device_point.c - prepares layers that compute each element from one or two inputs
 * (infer/cuda_infer_point.cu): one launch, or one per input of a concatenation. */
#include "exec/cuda/infer/cuda_infer_device.h"

#include <math.h>

typedef struct parts {
    int32_t n;
    hp_cuda_point *part;
} parts;

static hp_status run_parts(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const parts *p = self;
    (void)b;
    for (int i = 0; i < p->n; i++) HP_CUDA(hp_cuda_point_run(&p->part[i], d->cuda->compute));
    return HP_OK;
}

static hp_cuda_point_kind kind_of(const hp_bound *b, const hp_infer_op *o) {
    if (o->factor) return HP_CUDA_AFFINE;
    if (b->layer->op == HP_ADD) return HP_CUDA_ADD;
    if (b->layer->op != HP_MUL) return HP_CUDA_CONVERT;
    return o->vector ? HP_CUDA_VECTOR : HP_CUDA_MUL;
}

/* --- bytes from bytes, in units of the output --- */

static bool all_bytes(const hp_cuda_point *p) {
    if (p->of[0].dtype != HP_U8 || p->put.to.dtype != HP_U8 || !p->act.clamps) return false;
    if (p->kind == HP_CUDA_ADD) return p->of[1].dtype == HP_U8;
    return p->kind == HP_CUDA_VECTOR || (p->kind == HP_CUDA_AFFINE && !p->x[1]);
}

static float within(float v, float lo, float hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

/* Folds scales into factors and the clamp into the bytes' range, as exec/device/kernels/loops_point.inc and
 * exec/device/kernels/loops_affine.inc do. */
static void set_units(hp_cuda_point *p) {
    const float inverse = p->put.to.inverse;
    hp_cuda_put *y = &p->put;
    p->unit[0] = p->of[0].scale * inverse;
    p->unit[1] = p->kind == HP_CUDA_ADD ? p->of[1].scale * inverse : inverse;
    p->of[0].scale = 1;
    if (p->kind == HP_CUDA_ADD) p->of[1].scale = 1;
    const float first = y->lo, last = y->hi;
    y->lo = within(p->act.lo * inverse, first, last);
    y->hi = within(p->act.hi * inverse, first, last);
    y->to.inverse = 1;
    p->act = (hp_cuda_act){.clamps = true, .lo = -INFINITY, .hi = INFINITY};
}

/* --- one input --- */

/* Factors of raw pixels are in host memory. */
static void set_factors(hp_cuda_point *p, const hp_bound *b, const hp_infer_op *o) {
    if (b->layer->op != HP_DEQUANT) {
        p->factor = o->factor + p->at;
        p->bias = o->bias + p->at;
        return;
    }
    for (int c = 0; c < HP_CUDA_OWN && c < b->shape.oc; c++) {
        p->own[c] = o->factor[c];
        p->own_bias[c] = o->bias[c];
    }
}

static void set_second(hp_cuda_point *p, const hp_bound *b, const hp_infer_op *o) {
    const bool two = p->kind == HP_CUDA_ADD || p->kind == HP_CUDA_MUL || p->kind == HP_CUDA_VECTOR || o->adds;
    if (!two) return;
    p->x[1] = b->x[1];
    p->of[1] = o->x[1];
}

static hp_cuda_point part_of(const hp_bound *b, const hp_infer_op *o, int k) {
    const bool joins = b->layer->op == HP_CONCAT;
    const hp_shape *s = &b->shape;
    hp_cuda_point p = {.kind = kind_of(b, o),
                       .x = {b->x[k]},
                       .y = b->y,
                       .of = {o->x[k]},
                       .put = hp_cuda_put_of(&o->y),
                       .act = hp_cuda_act_of(o),
                       .pixels = s->n * s->oh * s->ow,
                       .channels = joins ? b->map.in_c[k] : s->oc,
                       .pitch = s->oc,
                       .at = joins ? b->map.in_at[k] : 0,
                       .map = (int64_t)s->oh * s->ow,
                       .unit = {1, 1}};
    set_second(&p, b, o);
    if (o->factor) set_factors(&p, b, o);
    if (p.kind == HP_CUDA_CONVERT) p.recode = hp_cuda_recode_of(o, k);
    if (all_bytes(&p)) set_units(&p);
    return p;
}

hp_status hp_cuda_infer_point(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    const int n = b->layer->op == HP_CONCAT ? b->n_in : 1;
    hp_infer_op o;
    parts *p = HP_NEW(d->arena, parts, 1);
    HP_TRY(hp_cuda_op_of(d, b, &o, err));
    p->part = HP_NEW(d->arena, hp_cuda_point, n);
    for (int k = 0; k < n && b->out_elems > 0; k++)
        if (b->x[k]) p->part[p->n++] = part_of(b, &o, k);
    *l = (hp_cuda_launch){run_parts, p, "own"};
    return HP_OK;
}
