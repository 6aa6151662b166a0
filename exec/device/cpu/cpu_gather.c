/* cpu_gather.c - tasks that gather elements by position (networks/graph/graph_gather.h), or reduce a
 * pixel's channels to one. */
#include "exec/device/cpu/cpu_train.h"
#include "networks/graph/graph_gather.h"
#include "plan/memory/memory_device.h"

#include <string.h>

/* --- gather --- */

/* Visits n output elements from `out` on, which equal input elements from `at` on. */
typedef void run_fn(const hp_bound *b, int64_t out, int64_t at, int64_t n);

/* Visits the runs of an output pixel. Its channels begin at `at` in the input and, by its place in its block,
 * at `i` in the sequence. */
static void every_run_of(const hp_bound *b, int64_t out, int64_t at, int64_t i, run_fn *visit) {
    const hp_gathering g = hp_gathering_of(b->layer);
    for (int64_t c = 0, n; c < b->shape.oc; c += n) {
        const int64_t left = g.groups - (i + c) % g.groups, most = b->shape.oc - c;
        n = g.step != 1 ? 1 : left < most ? left : most;
        visit(b, out + c, at + hp_gather_channel(&g, i + c), n);
    }
}

static void every_run(const hp_bound *b, run_fn *visit) {
    const hp_shape *s = &b->shape;
    const hp_layer *l = b->layer;
    for (int64_t r = 0; r < s->n * s->oh; r++) {
        const int64_t y = hp_gather_row(l->gather.border, s->oy0 + r % s->oh - l->window.pad_h,
                                        (int64_t)s->full.ih * l->window.kh);
        const int64_t row = (r / s->oh * s->ih + y / l->window.kh - s->iy0) * s->iw;
        for (int64_t c = 0; c < s->ow; c++) {
            const int64_t x = hp_gather_row(l->gather.border, s->ox0 + c - l->window.pad_w,
                                            (int64_t)s->full.iw * l->window.kw);
            every_run_of(b, (r * s->ow + c) * s->oc,
                         (row + x / l->window.kw - s->ix0) * s->ic - b->map.in_box[0].lo[HP_AXIS_C],
                         (y % l->window.kh * l->window.kw + x % l->window.kw) * l->gather.out_c + s->oc0,
                         visit);
        }
    }
}

static void copy_run(const hp_bound *b, int64_t out, int64_t at, int64_t n) {
    memcpy((float *)b->y + out, (const float *)b->x[0] + at, (size_t)n * sizeof(float));
}

static void add_run(const hp_bound *b, int64_t out, int64_t at, int64_t n) {
    float *dx = (float *)b->dx[0] + at;
    const float *dy = (const float *)b->dy + out;
    for (int64_t i = 0; i < n; i++) dx[i] += dy[i];
}

static void add_run_wide(const hp_bound *b, int64_t out, int64_t at, int64_t n) {
    double *sum = (double *)b->scratch.at + at;
    const float *dy = (const float *)b->dy + out;
    for (int64_t i = 0; i < n; i++) sum[i] += (double)dy[i];
}

hp_status hp_cpu_gather_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    every_run(b, copy_run);
    return HP_OK;
}

hp_status hp_cpu_gather_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    if (hp_cpu_spread_begin(b)) {
        every_run(b, add_run_wide);
        hp_cpu_spread_end(b);
    } else {
        every_run(b, add_run);
    }
    return HP_OK;
}

/* --- gradients that are sums of many terms: accumulated in float64 --- */

bool hp_cpu_spread_begin(const hp_bound *b) {
    const bool spreads = hp_spread_bytes(b->layer, HP_TASK_BWD, &b->shape) > 0;
    memset(spreads ? b->scratch.at : b->dx[0], 0,
           (size_t)b->in_elems * (spreads ? sizeof(double) : sizeof(float)));
    return spreads;
}

void hp_cpu_spread_end(const hp_bound *b) {
    const double *sum = b->scratch.at;
    float *dx = b->dx[0];
    for (int64_t i = 0; i < b->in_elems; i++) dx[i] = (float)sum[i];
}

/* --- reduce --- */

static int first_largest(const float *x, int n) {
    int best = 0;
    for (int c = 1; c < n; c++)
        if (x[c] > x[best]) best = c;
    return best;
}

static float mean(const float *x, int n) {
    double sum = 0;
    for (int c = 0; c < n; c++) sum += (double)x[c];
    return (float)(sum / n);
}

hp_status hp_cpu_reduce_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    const int n = b->shape.ic, kind = b->layer->reduction;
    float *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) {
        const float *x = (const float *)b->x[0] + i * n;
        const int best = kind == HP_CHANNELS_MEAN ? 0 : first_largest(x, n);
        y[i] = kind == HP_CHANNELS_MEAN ? mean(x, n) : kind == HP_CHANNELS_MAX ? x[best] : (float)best;
    }
    return HP_OK;
}

hp_status hp_cpu_reduce_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    const int n = b->shape.ic;
    const float *dy = b->dy;
    for (int64_t i = 0; i < b->out_elems; i++) {
        float *dx = (float *)b->dx[0] + i * n;
        const bool means = b->layer->reduction == HP_CHANNELS_MEAN;
        for (int c = 0; c < n; c++) dx[c] = means ? dy[i] / (float)n : 0.0f;
        if (!means) dx[first_largest((const float *)b->x[0] + i * n, n)] = dy[i];
    }
    return HP_OK;
}
