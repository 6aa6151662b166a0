/* device_onednn_pool.c - pooling tasks: windows are tabulated once per layer, kernels do the rest. */
#include "exec/device_onednn.h"

static int32_t smaller(int32_t a, int32_t b) {
    return a < b ? a : b;
}

/* Windows along one axis: [first, end) inside the image, and the length a mean with padding divides by. */
typedef struct axis {
    int32_t in, out, kernel, stride, pad;
    bool adaptive;
} axis;

static void axis_windows(axis a, int32_t *window, int32_t *length) {
    for (int32_t o = 0; o < a.out; o++) {
        int32_t first = o * a.stride - a.pad, end = smaller(first + a.kernel, a.in + a.pad);
        if (a.adaptive) {
            first = (int32_t)((int64_t)o * a.in / a.out);
            end = (int32_t)(((int64_t)(o + 1) * a.in + a.out - 1) / a.out);
        }
        length[o] = end - first;
        window[2 * o] = first > 0 ? first : 0;
        window[2 * o + 1] = smaller(end, a.in);
    }
}

static void tabulate(hp_device *d, const hp_bound *b, hp_pool_windows *w) {
    const hp_shape *s = &b->shape;
    const bool adaptive = b->layer->op == HP_ADAPTPOOL;
    int32_t *high = HP_NEW(d->arena, int32_t, s->oh), *wide = HP_NEW(d->arena, int32_t, s->ow);
    w->rows = HP_NEW(d->arena, int32_t, 2 * s->oh);
    w->cols = HP_NEW(d->arena, int32_t, 2 * s->ow);
    w->factor = HP_NEW(d->arena, float, s->oh * s->ow);
    axis_windows((axis){s->ih, s->oh, s->kh, s->sh, s->ph, adaptive}, w->rows, high);
    axis_windows((axis){s->iw, s->ow, s->kw, s->sw, s->pw, adaptive}, w->cols, wide);
    for (int y = 0; y < s->oh; y++)
        for (int x = 0; x < s->ow; x++) {
            const int inside = (w->rows[2 * y + 1] - w->rows[2 * y]) * (w->cols[2 * x + 1] - w->cols[2 * x]);
            w->factor[y * s->ow + x] =
                1.0f / (float)(b->layer->count_include_pad ? high[y] * wide[x] : inside);
        }
}

hp_status hp_cpu_pool_prepare(hp_device *d, const hp_bound *b, hp_error *err) {
    hp_pool_windows *w = &d->windows[b->layer_id];
    if (b->layer->op == HP_MAXPOOL && b->shape.kh * b->shape.kw > 256)
        return hp_fail(err, HP_EUNAVAIL,
                       "layer %s: a %dx%d maximum has more than 256 elements per window: use a smaller one",
                       b->layer->name, b->shape.kh, b->shape.kw);
    if (b->layer->op != HP_MAXPOOL && !w->rows) tabulate(d, b, w);
    return HP_OK;
}

hp_status hp_cpu_maxpool_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    d->kernels->pool.max(b->y, b->save, b->x[0], &b->shape);
    return HP_OK;
}

hp_status hp_cpu_maxpool_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    d->kernels->pool.max_bwd(b->dx[0], b->save, b->dy, &b->shape);
    return HP_OK;
}

hp_status hp_cpu_meanpool_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const hp_pool_windows *w = &d->windows[b->layer_id];
    d->kernels->pool.mean(b->y, b->x[0], &b->shape, w->rows, w->cols, w->factor);
    return HP_OK;
}

hp_status hp_cpu_meanpool_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const hp_pool_windows *w = &d->windows[b->layer_id];
    d->kernels->pool.mean_bwd(b->dx[0], b->dy, &b->shape, w->rows, w->cols, w->factor);
    return HP_OK;
}
