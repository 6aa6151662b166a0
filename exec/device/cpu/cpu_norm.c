/* cpu_norm.c - batch norm tasks: statistics in one pass, normalise + add + activation in a second. Backward
 * there are two passes; the first leaves the masked gradient where the residual branch wants it. If ranks
 * share statistics, the two passes are separate tasks with an all-reduce in between. */
#include "exec/device/cpu/cpu_train.h"

#include <math.h>
#include <string.h>

/* This layer's layout of scratch: 2 rows of float64, 6 of float32 (plan/memory/memory_device.c
 * counts 5 of 8 bytes). */
typedef struct norm_scratch {
    double *first, *second;
    float *scale, *a, *b, *tmp; /* tmp: two rows */
    float *zero;
} norm_scratch;

static norm_scratch carve(const hp_bound *b) {
    const int64_t channels = (b->shape.oc + 15) / 16 * 16;
    norm_scratch n = {.first = b->scratch.at};
    n.second = n.first + channels;
    n.scale = (float *)(n.second + channels);
    n.a = n.scale + channels;
    n.b = n.a + channels;
    n.tmp = n.b + channels;
    n.zero = n.tmp + 2 * channels;
    memset(n.zero, 0, (size_t)channels * sizeof *n.zero);
    return n;
}

static int64_t rows_of(const hp_bound *b) {
    return b->out_elems / b->shape.oc;
}

/* Number of pixels in the statistics. */
static double pixels_of(const hp_bound *b) {
    return (double)(b->sums ? hp_norm_pixels(b->task) : rows_of(b));
}

/* --- forward --- */

/* Computes this buffer's mean and biased variance into scratch. Shifting by the first pixel keeps the
 * one-pass variance accurate when the mean is large. */
static void own_statistics(hp_device *d, const hp_bound *b, const norm_scratch *n) {
    const double pixels = pixels_of(b);
    const float *x = b->x[0];
    d->kernels->norm.sums(x, x, rows_of(b), b->shape.oc, n->first, n->second, n->tmp);
    for (int c = 0; c < b->shape.oc; c++) {
        const double off = n->first[c] / pixels;
        n->first[c] = off + (double)x[c];
        n->second[c] = n->second[c] / pixels - off * off;
    }
}

/* Computes mean and biased variance into scratch from the sums of all ranks. */
static void shared_statistics(const hp_bound *b, const norm_scratch *n) {
    const double pixels = pixels_of(b);
    for (int c = 0; c < b->shape.oc; c++) {
        n->first[c] = b->sums[c] / pixels;
        n->second[c] = b->sums[b->shape.oc + c] / pixels - n->first[c] * n->first[c];
    }
}

static void update_running(const hp_bound *b, hp_running f, int c, double mean, double var) {
    const double pixels = pixels_of(b), unbiased = pixels > 1 ? var * pixels / (pixels - 1) : var;
    float *m = b->param[2], *v = b->param[3];
    m[c] = (float)(((double)m[c] * f.before + f.fresh * mean) * f.after);
    v[c] = (float)(((double)v[c] * f.before + f.fresh * unbiased) * f.after);
}

/* Computes batch statistics into save = (mean, inverse standard deviation), and updates the running ones. */
static void batch_statistics(hp_device *d, const hp_bound *b, const hp_step *s, const norm_scratch *n) {
    const hp_running f = hp_running_factors(b, s);
    float *save = b->save;
    if (b->sums)
        shared_statistics(b, n);
    else
        own_statistics(d, b, n);
    for (int c = 0; c < b->shape.oc; c++) {
        const double mean = n->first[c], var = n->second[c] < 0 ? 0 : n->second[c]; /* NaN stays */
        save[c] = (float)mean;
        save[b->shape.oc + c] = (float)(1 / sqrt(var + (double)b->layer->eps));
        if (!(b->task->flags & HP_FLAG_RECOMPUTE)) update_running(b, f, c, mean, var);
    }
}

hp_status hp_cpu_bn_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)err;
    const int channels = b->shape.oc;
    const norm_scratch n = carve(b);
    const float *gamma = b->param[0], *mean = b->param[2], *var = b->param[3], *save = b->save;
    const bool eval = b->task->flags & HP_FLAG_EVAL;
    if (!eval) batch_statistics(d, b, s, &n);
    for (int c = 0; c < channels; c++) {
        const float inverse =
            eval ? (float)(1 / sqrt((double)var[c] + (double)b->layer->eps)) : save[channels + c];
        n.scale[c] = gamma[c] * inverse;
    }
    d->kernels->norm.apply(b->y, b->x[0], b->n_in > 1 ? b->x[1] : NULL, eval ? mean : save, n.scale,
                           b->param[1], rows_of(b), channels, hp_clamp_of(b->layer));
    return HP_OK;
}

hp_status hp_cpu_bn_stats(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const hp_shape *g = &b->shape;
    const hp_box *in = &b->map.counted;
    const int across = hp_box_len(in, HP_AXIS_W), down = hp_box_len(in, HP_AXIS_H);
    const int run = across == g->ow ? down : 1; /* contiguous rows */
    double *sums = b->sums;
    memset(sums, 0, 2 * (size_t)g->oc * sizeof *sums);
    for (int64_t n = in->lo[HP_AXIS_N]; n < in->hi[HP_AXIS_N]; n++)
        for (int64_t y = in->lo[HP_AXIS_H]; y < in->hi[HP_AXIS_H]; y += run) {
            const int64_t pixel = (n * g->oh + y) * g->ow + in->lo[HP_AXIS_W];
            d->kernels->norm.add_sums((const float *)b->x[0] + pixel * g->oc, (int64_t)run * across, g->oc,
                                      sums, sums + g->oc);
        }
    return HP_OK;
}

/* --- backward --- */

static const float *mask_of(const hp_bound *b) {
    return hp_layer_has_act(b->layer) ? b->y : NULL;
}

/* This buffer's gradients of gamma and beta, from the sums of g and of g*(x - mean). */
static void parameter_gradients(const hp_bound *b, const double *sum, const double *dot) {
    const float *inverse = (const float *)b->save + b->shape.oc;
    float *dgamma = b->grad[0], *dbeta = b->grad[1];
    const bool add = b->task->flags & HP_FLAG_ADD;
    for (int c = 0; c < b->shape.oc; c++) {
        dgamma[c] = (add ? dgamma[c] : 0.0f) + (float)(dot[c] * (double)inverse[c]);
        dbeta[c] = (add ? dbeta[c] : 0.0f) + (float)sum[c];
    }
}

hp_status hp_cpu_bn_bstats(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const norm_scratch n = carve(b);
    const float *save = b->save;
    double *sum = b->sums, *dot = sum + b->shape.oc;
    d->kernels->norm.bwd_sums(b->dy, mask_of(b), b->x[0], save, rows_of(b), b->shape.oc,
                              hp_clamp_of(b->layer), NULL, sum, dot, n.tmp);
    parameter_gradients(b, sum, dot);
    for (int c = 0; c < b->shape.oc; c++) dot[c] *= (double)save[b->shape.oc + c];
    return HP_OK;
}

/* Factors of dx = scale*g - a - (x - mean)*b. `dot`: sum with x - mean, or with normalised x. */
static void data_factors(const hp_bound *b, const norm_scratch *n, const double *sum, const double *dot,
                         bool normalised) {
    const double pixels = pixels_of(b);
    const float *save = b->save, *gamma = b->param[0];
    for (int c = 0; c < b->shape.oc; c++) {
        const double inverse = (double)save[b->shape.oc + c], scale = (double)gamma[c] * inverse;
        n->scale[c] = (float)scale;
        n->a[c] = (float)(scale * sum[c] / pixels);
        n->b[c] = (float)(scale * inverse * (normalised ? 1 : inverse) * dot[c] / pixels);
    }
}

/* dx of pixels first .. first+count-1 from the gradient `g`, masked by `y`; mean terms only
 * where pixels count. */
static void data_gradient(hp_device *d, const hp_bound *b, const norm_scratch *n, const float *g,
                          const float *y, int64_t first, int64_t count, bool counts) {
    const int64_t at = first * b->shape.oc;
    if (count > 0)
        d->kernels->norm.bwd_apply((float *)b->dx[0] + at, g + at, y ? y + at : NULL,
                                   (const float *)b->x[0] + at, b->save, n->scale, counts ? n->a : n->zero,
                                   counts ? n->b : n->zero, count, b->shape.oc, hp_clamp_of(b->layer));
}

/* Row by row: pixels before, inside and after the counted range. */
static void shared_data_gradient(hp_device *d, const hp_bound *b, const norm_scratch *n, const float *g,
                                 const float *y) {
    const hp_shape *s = &b->shape;
    const hp_box *in = &b->map.counted;
    for (int64_t r = 0; r < s->n * s->oh; r++) {
        const int64_t sample = r / s->oh, row = r % s->oh;
        const bool counts = sample >= in->lo[HP_AXIS_N] && sample < in->hi[HP_AXIS_N] &&
                            row >= in->lo[HP_AXIS_H] && row < in->hi[HP_AXIS_H];
        const int from = counts ? in->lo[HP_AXIS_W] : s->ow, to = counts ? in->hi[HP_AXIS_W] : s->ow;
        data_gradient(d, b, n, g, y, r * s->ow, from, false);
        data_gradient(d, b, n, g, y, r * s->ow + from, to - from, true);
        data_gradient(d, b, n, g, y, r * s->ow + to, s->ow - to, false);
    }
}

/* Writes the gradient after the activation's mask for the residual branch; may be in place. */
static void residual_gradient(hp_device *d, const hp_bound *b, float *keep) {
    if (mask_of(b))
        d->kernels->point.clamp_bwd(keep, b->dy, b->y, b->out_elems, hp_clamp_of(b->layer));
    else if (keep != b->dy)
        memcpy(keep, b->dy, (size_t)b->out_elems * sizeof *keep);
}

hp_status hp_cpu_bn_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const norm_scratch n = carve(b);
    float *keep = b->n_in > 1 ? b->dx[1] : NULL; /* may be dy */
    const float *g = keep ? keep : b->dy, *y = keep ? NULL : mask_of(b);
    if (b->sums) {
        if (keep) residual_gradient(d, b, keep);
        data_factors(b, &n, b->sums, b->sums + b->shape.oc, true);
        if (b->dx[0]) shared_data_gradient(d, b, &n, g, y);
        return HP_OK;
    }
    d->kernels->norm.bwd_sums(b->dy, mask_of(b), b->x[0], b->save, rows_of(b), b->shape.oc,
                              hp_clamp_of(b->layer), keep, n.first, n.second, n.tmp);
    parameter_gradients(b, n.first, n.second);
    data_factors(b, &n, n.first, n.second, false);
    if (b->dx[0]) data_gradient(d, b, &n, g, y, 0, rows_of(b), true);
    return HP_OK;
}
