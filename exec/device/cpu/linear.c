/* linear.c - fully connected tasks as plain matrix products on the canonical weights (O,
 * C*H*W): with few samples the weights are nearly all of the memory traffic, so they are neither copied nor
 * reordered. Where the input is an image, it is the small operand that is brought into (C, H, W) order, in
 * scratch. */
#include "exec/device/cpu/train.h"

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
    transpose(b->scratch, b->x[0], &b->shape, false);
    return b->scratch;
}

static int64_t inputs_of(const hp_shape *s) {
    return (int64_t)s->ih * s->iw * s->ic;
}

hp_status hp_cpu_linear_fwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)step;
    const hp_shape *s = &b->shape;
    const float *bias = b->layer->n_param > 1 ? b->param[1] : NULL;
    HP_TRY(
        hp_onednn_matrix(b->y, rows_of(b), b->param[0], s->n, s->oc, inputs_of(s), false, true, false, err));
    for (int64_t n = 0; bias && n < s->n; n++)
        d->kernels->point.accum((float *)b->y + n * s->oc, bias, s->oc);
    return HP_OK;
}

hp_status hp_cpu_linear_bwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)d;
    (void)step;
    const hp_shape *s = &b->shape;
    float *dx = is_image(s) ? b->scratch : b->dx[0];
    HP_TRY(hp_onednn_matrix(dx, b->dy, b->param[0], s->n, inputs_of(s), s->oc, false, false, false, err));
    if (is_image(s)) transpose(b->dx[0], dx, s, true);
    return HP_OK;
}

hp_status hp_cpu_linear_bwdw(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)step;
    const hp_shape *s = &b->shape;
    const bool add = b->task->flags & HP_FLAG_ADD;
    HP_TRY(hp_onednn_matrix(b->grad[0], b->dy, rows_of(b), s->oc, inputs_of(s), s->n, true, false, add, err));
    if (b->layer->n_param > 1) d->kernels->conv.bias_bwd(b->grad[1], b->dy, s->n, s->oc, add, b->scratch);
    return HP_OK;
}
