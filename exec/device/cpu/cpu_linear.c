/* cpu_linear.c - fully connected tasks as plain matrix products on the canonical weights (O, C*H*W). With few
 * samples the weights are nearly all of the memory traffic, so they are neither copied nor reordered. If the
 * input is an image, that small operand is brought into (C, H, W) order, in scratch. */
#include "exec/device/cpu/cpu_train.h"
#include "base/round.h"
#include "plan/memory/memory_device.h"

/* (N, H, W, C) to (N, C, H, W), or back. */
static void transpose(float *to, const float *from, const hp_shape *s, bool back) {
    const int64_t pixels = (int64_t)s->ih * s->iw, image = pixels * s->ic;
    for (int64_t n = 0; n < s->n; n++, to += image, from += image)
        for (int64_t p = 0; p < pixels; p++)
            for (int c = 0; c < s->ic; c++) {
                if (back)
                    to[p * s->ic + c] = from[c * pixels + p];
                else
                    to[c * pixels + p] = from[p * s->ic + c];
            }
}

static bool is_image(const hp_shape *s) {
    return s->ih > 1 || s->iw > 1;
}

/* The input in (C, H, W) order. */
static const float *rows_of(const hp_bound *b) {
    if (!is_image(&b->shape)) return b->x[0];
    transpose(b->scratch.at, b->x[0], &b->shape, false);
    return b->scratch.at;
}

static int64_t inputs_of(const hp_shape *s) {
    return (int64_t)s->ih * s->iw * s->ic;
}

/* y without its bias. With many inputs, a few thousand at a time are summed in float32 and these sums in
 * float64, so that the error does not grow with the map. */
static hp_status product(hp_device *d, const hp_bound *b, const float *x, hp_error *err) {
    const hp_shape *s = &b->shape;
    const int64_t ins = inputs_of(s), outs = s->n * s->oc;
    const float *w = b->param[0];
    if (ins <= HP_LINEAR_INS) return hp_onednn_matrix(b->y, x, w, s->n, s->oc, ins, false, true, false, err);
    const int64_t image = is_image(s) ? hp_round_up(4 * s->n * ins, 64) : 0;
    double *sums = (double *)(void *)((unsigned char *)b->scratch.at + image);
    float *part = (float *)(sums + outs), *y = b->y;
    for (int64_t i = 0; i < outs; i++) sums[i] = 0;
    for (int64_t at = 0; at < ins; at += HP_LINEAR_INS) {
        const int64_t k = ins - at < HP_LINEAR_INS ? ins - at : HP_LINEAR_INS;
        HP_TRY(
            hp_onednn_matrix_part(part, x + at, ins, w + at, ins, s->n, s->oc, k, false, true, false, err));
        d->kernels->point.accum_wide(sums, part, outs);
    }
    for (int64_t i = 0; i < outs; i++) y[i] = (float)sums[i];
    return HP_OK;
}

hp_status hp_cpu_linear_fwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)step;
    const hp_shape *s = &b->shape;
    const float *bias = b->layer->n_param > 1 ? b->param[1] : NULL;
    HP_TRY(product(d, b, rows_of(b), err));
    for (int64_t n = 0; bias && n < s->n; n++)
        d->kernels->point.accum((float *)b->y + n * s->oc, bias, s->oc);
    return HP_OK;
}

hp_status hp_cpu_linear_bwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)d;
    (void)step;
    const hp_shape *s = &b->shape;
    float *dx = is_image(s) ? b->scratch.at : b->dx[0];
    HP_TRY(hp_onednn_matrix(dx, b->dy, b->param[0], s->n, inputs_of(s), s->oc, false, false, false, err));
    if (is_image(s)) transpose(b->dx[0], dx, s, true);
    return HP_OK;
}

hp_status hp_cpu_linear_bwdw(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)step;
    const hp_shape *s = &b->shape;
    const bool add = b->task->flags & HP_FLAG_ADD;
    HP_TRY(hp_onednn_matrix(b->grad[0], b->dy, rows_of(b), s->oc, inputs_of(s), s->n, true, false, add, err));
    if (b->layer->n_param > 1) d->kernels->sum.rows(b->grad[1], b->dy, s->n, s->oc, add);
    return HP_OK;
}
