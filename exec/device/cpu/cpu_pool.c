/* cpu_pool.c - pooling tasks: windows are tabulated once per geometry, kernels do the rest. */
#include "exec/device/cpu/cpu_train.h"

#include <string.h>

static int32_t smaller(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* One axis of a pooling layer between two boxes. */
typedef struct axis {
    int32_t in, in0, full_in, out, out0,
        full_out;                /* lengths and first elements of the boxes, lengths of the maps */
    int32_t kernel, stride, pad; /* those of the whole layer; kernel 0: adaptive */
    int32_t count_pad;
} axis;

struct hp_pool_windows {
    axis axes[2];
    hp_windows of[2]; /* rows, columns */
    hp_pool_windows *next;
};

static void axes_of(const hp_bound *b, axis axes[2]) {
    const hp_shape *s = &b->shape;
    const hp_layer *l = b->layer;
    const bool adaptive = l->op == HP_ADAPTPOOL;
    axes[0] = (axis){s->ih,
                     s->iy0,
                     s->full.ih,
                     s->oh,
                     s->oy0,
                     s->full.oh,
                     adaptive ? 0 : s->kh,
                     s->sh,
                     l->window.pad_h,
                     !adaptive && l->window.count_include_pad};
    axes[1] = (axis){s->iw,
                     s->ix0,
                     s->full.iw,
                     s->ow,
                     s->ox0,
                     s->full.ow,
                     adaptive ? 0 : s->kw,
                     s->sw,
                     l->window.pad_w,
                     !adaptive && l->window.count_include_pad};
}

/* Begin and end of output o's window in the whole map, padding included. Padding exists only around the whole
 * map (torch.nn.AvgPool2d). */
static void whole_window(const axis *a, int64_t o, int32_t *from, int32_t *to) {
    o += a->out0;
    *from = (int32_t)(o * a->stride - a->pad);
    *to = smaller(*from + a->kernel, a->full_in + a->pad);
    if (a->kernel > 0) return;
    *from = (int32_t)(o * a->full_in / a->full_out);
    *to = (int32_t)(((o + 1) * a->full_in + a->full_out - 1) / a->full_out);
}

static hp_windows tabulate(hp_arena *arena, const axis *a) {
    const hp_windows w = {HP_NEW(arena, int32_t, 2 * a->out), HP_NEW(arena, float, a->out)};
    for (int32_t o = 0; o < a->out; o++) {
        int32_t from, to;
        whole_window(a, o, &from, &to);
        w.edge[2 * o] = larger(from - a->in0, 0);
        w.edge[2 * o + 1] = smaller(to - a->in0, a->in);
        w.divisor[o] = (float)(a->count_pad ? to - from : w.edge[2 * o + 1] - w.edge[2 * o]);
    }
    return w;
}

static hp_pool_windows *windows_of(hp_device *d, const hp_bound *b) {
    axis axes[2];
    axes_of(b, axes);
    for (hp_pool_windows *w = d->all_windows; w; w = w->next)
        if (memcmp(w->axes, axes, sizeof axes) == 0) return w;
    hp_pool_windows *w = HP_NEW(d->arena, hp_pool_windows, 1);
    memcpy(w->axes, axes, sizeof axes);
    for (int i = 0; i < 2; i++) w->of[i] = tabulate(d->arena, &axes[i]);
    w->next = d->all_windows;
    return d->all_windows = w;
}

hp_status hp_cpu_pool_prepare(hp_device *d, const hp_bound *b, hp_error *err) {
    if (b->layer->op == HP_MAXPOOL && b->shape.kh * b->shape.kw > 256)
        return hp_fail(err, HP_EUNAVAIL,
                       "layer %s: a %dx%d maximum has more than 256 elements per window: use a smaller one",
                       b->layer->name, b->shape.kh, b->shape.kw);
    if (b->layer->op != HP_MAXPOOL) d->windows[hp_cpu_task_of(d, b)] = windows_of(d, b);
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
    const hp_pool_windows *w = d->windows[hp_cpu_task_of(d, b)];
    d->kernels->pool.mean(b->y, b->x[0], &b->shape, &w->of[0], &w->of[1]);
    return HP_OK;
}

hp_status hp_cpu_meanpool_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const hp_pool_windows *w = d->windows[hp_cpu_task_of(d, b)];
    d->kernels->pool.mean_bwd(b->dx[0], b->dy, &b->shape, &w->of[0], &w->of[1]);
    return HP_OK;
}
