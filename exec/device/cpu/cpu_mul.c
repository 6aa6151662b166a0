/* cpu_mul.c - products of two maps, or of a map and a vector per sample, and parametric ReLU. Sums over
 * pixels are in float64, a few channels at a time. */
#include "exec/device/cpu/cpu_train.h"

#include <string.h>

enum { CHANNELS = 64 };

/* Strides in the second input's box between the output's samples, rows, pixels; 0: all
 * read the same element. */
typedef struct strides {
    int64_t sample, row, pixel;
} strides;

static strides strides_of(const hp_bound *b) {
    const int64_t h = hp_box_len(&b->map.in_box[1], HP_AXIS_H), w = hp_box_len(&b->map.in_box[1], HP_AXIS_W),
                  c = b->shape.oc;
    return (strides){h * w * c, h == b->shape.oh ? w * c : 0, w == b->shape.ow ? c : 0};
}

/* Visits the channels of a pixel: element indices in the output's box and in the second input's. */
typedef void pixel_fn(const hp_bound *b, int64_t at, int64_t second);

static void every_pixel(const hp_bound *b, pixel_fn *visit) {
    const hp_shape *s = &b->shape;
    const strides k = strides_of(b);
    for (int64_t p = 0; p < s->n * s->oh * s->ow; p++)
        visit(b, p * s->oc, p / s->ow / s->oh * k.sample + p / s->ow % s->oh * k.row + p % s->ow * k.pixel);
}

static void multiply(const hp_bound *b, int64_t at, int64_t second) {
    const float *x = (const float *)b->x[0] + at, *by = (const float *)b->x[1] + second;
    float *y = (float *)b->y + at;
    for (int c = 0; c < b->shape.oc; c++) y[c] = x[c] * by[c];
}

hp_status hp_cpu_mul_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s, (void)err;
    every_pixel(b, multiply);
    if (hp_layer_has_act(b->layer)) d->kernels->point.clamp(b->y, b->y, b->out_elems, hp_clamp_of(b->layer));
    return HP_OK;
}

/* The gradient of element i before the activation. */
static float masked(const hp_bound *b, hp_clamp k, int64_t i) {
    const float *dy = b->dy, *y = b->y;
    return !hp_layer_has_act(b->layer) || (y[i] > k.lo && y[i] < k.hi) ? dy[i] : 0.0f;
}

static void gradient_of_first(const hp_bound *b, int64_t at, int64_t second) {
    const hp_clamp k = hp_clamp_of(b->layer);
    const float *by = (const float *)b->x[1] + second;
    float *dx = b->dx[0];
    for (int c = 0; c < b->shape.oc; c++) dx[at + c] = masked(b, k, at + c) * by[c];
}

static void gradient_of_pixel(const hp_bound *b, int64_t at, int64_t second) {
    const hp_clamp k = hp_clamp_of(b->layer);
    const float *x = b->x[0];
    float *dx = (float *)b->dx[1] + second;
    for (int c = 0; c < b->shape.oc; c++) dx[c] = masked(b, k, at + c) * x[at + c];
}

/* Gradient of n channels of a vector: sums over the sample's pixels, the first of which begins at `at`. */
static void gradient_of_vector(const hp_bound *b, int64_t at, int64_t pixels, int n, float *dx) {
    const hp_clamp k = hp_clamp_of(b->layer);
    const float *x = b->x[0];
    double sum[CHANNELS] = {0};
    for (int64_t p = 0; p < pixels; p++, at += b->shape.oc)
        for (int c = 0; c < n; c++) sum[c] += (double)masked(b, k, at + c) * (double)x[at + c];
    for (int c = 0; c < n; c++) dx[c] = (float)sum[c];
}

static void gradient_of_vectors(const hp_bound *b) {
    const int outs = b->shape.oc;
    const int64_t pixels = (int64_t)b->shape.oh * b->shape.ow;
    for (int64_t n = 0; n < b->shape.n; n++)
        for (int c = 0; c < outs; c += CHANNELS)
            gradient_of_vector(b, n * pixels * outs + c, pixels, outs - c < CHANNELS ? outs - c : CHANNELS,
                               (float *)b->dx[1] + n * outs + c);
}

hp_status hp_cpu_mul_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    if (b->dx[0]) every_pixel(b, gradient_of_first);
    if (!b->dx[1]) return HP_OK;
    if (hp_box_elems(&b->map.in_box[1]) == b->out_elems)
        every_pixel(b, gradient_of_pixel);
    else
        gradient_of_vectors(b);
    return HP_OK;
}

/* --- parametric ReLU (He and others 2015) --- */

static int64_t pixels_of(const hp_bound *b) {
    return b->out_elems / b->shape.oc;
}

static bool one_slope(const hp_bound *b) {
    return b->layer->groups == 1;
}

hp_status hp_cpu_prelu_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    const int each = one_slope(b) ? 0 : 1;
    const float *x = b->x[0], *slope = b->param[0];
    float *y = b->y;
    for (int64_t p = 0; p < pixels_of(b); p++, x += b->shape.oc, y += b->shape.oc)
        for (int c = 0; c < b->shape.oc; c++) y[c] = x[c] < 0 ? slope[c * each] * x[c] : x[c];
    return HP_OK;
}

/* Gradients of n slopes from channel `first` on: sums over pixels, and over channels if
 * there is one slope. */
static void slope_gradients(const hp_bound *b, int first, int n) {
    const float *x = (const float *)b->x[0] + first, *dy = (const float *)b->dy + first;
    float *grad = b->grad[0];
    double sum[CHANNELS] = {0};
    for (int64_t p = 0; p < pixels_of(b); p++, x += b->shape.oc, dy += b->shape.oc)
        for (int c = 0; c < n; c++) sum[c] += x[c] < 0 ? (double)x[c] * (double)dy[c] : 0.0;
    for (int c = 0; c < n; c++) grad[one_slope(b) ? 0 : first + c] += (float)sum[c];
}

hp_status hp_cpu_prelu_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    const int outs = b->shape.oc, each = one_slope(b) ? 0 : 1;
    const float *x = b->x[0], *dy = b->dy, *slope = b->param[0];
    float *dx = b->dx[0];
    if (!(b->task->flags & HP_FLAG_ADD)) memset(b->grad[0], 0, (size_t)(each ? outs : 1) * sizeof(float));
    for (int c = 0; c < outs; c += CHANNELS) slope_gradients(b, c, outs - c < CHANNELS ? outs - c : CHANNELS);
    for (int64_t p = 0; dx && p < pixels_of(b); p++, x += outs, dy += outs, dx += outs)
        for (int c = 0; c < outs; c++) dx[c] = x[c] < 0 ? slope[c * each] * dy[c] : dy[c];
    return HP_OK;
}
