/* cpu_groupnorm.c - group norm tasks: sums of whole maps in float64, in the order of the pixels, so that they
 * do not depend on tiles. */
#include "exec/device/cpu/cpu_train.h"

#include <math.h>
#include <string.h>

/* Values per channel of the input's box (plan/memory/memory_device.h: HP_GROUPNORM_SUMS rows). */
typedef struct sums {
    double *mean, *inverse, *sum,
        *product;           /* per sample's group; backward: sums of dy, and of dy times normalised x */
    double *dgamma, *dbeta; /* over all samples */
} sums;

static sums sums_of(const hp_bound *b) {
    double *at = b->scratch.at;
    const int n = b->shape.ic;
    return (sums){at, at + n, at + 2 * n, at + 3 * n, at + 4 * n, at + 5 * n};
}

/* Replaces every channel's value by the sum over its group, times a factor. */
static void add_up(const hp_bound *b, double *of, double factor) {
    const int width = b->shape.full.oc / b->layer->groups;
    for (int c = 0; c < b->shape.ic; c += width) {
        double sum = 0;
        for (int i = 0; i < width; i++) sum += of[c + i];
        for (int i = 0; i < width; i++) of[c + i] = sum * factor;
    }
}

static double share_of(const hp_bound *b) {
    const hp_shape *s = &b->shape;
    const int channels = s->full.oc / b->layer->groups;
    return 1 / ((double)s->ih * s->iw * channels);
}

static void add_squares(double *sum, const float *x, const double *mean, int n) {
    for (int c = 0; c < n; c++) sum[c] += ((double)x[c] - mean[c]) * ((double)x[c] - mean[c]);
}

static void measure(const hp_bound *b, const float *x, const sums *of) {
    const int n = b->shape.ic;
    const int64_t pixels = (int64_t)b->shape.ih * b->shape.iw;
    memset(of->mean, 0, 2 * (size_t)n * sizeof(double)); /* and inverse */
    for (int64_t p = 0; p < pixels; p++)
        for (int c = 0; c < n; c++) of->mean[c] += (double)x[p * n + c];
    add_up(b, of->mean, share_of(b));
    for (int64_t p = 0; p < pixels; p++) add_squares(of->inverse, x + p * n, of->mean, n);
    add_up(b, of->inverse, share_of(b));
    for (int c = 0; c < n; c++) of->inverse[c] = 1 / sqrt(of->inverse[c] + b->layer->eps);
}

/* The input's pixel at the position of pixel p of the output's box. */
static int64_t pixel_of(const hp_shape *s, int64_t p) {
    return (s->oy0 + p / s->ow - s->iy0) * s->iw + s->ox0 + p % s->ow - s->ix0;
}

static int first_out(const hp_bound *b) {
    return b->shape.oc0 - b->map.in_box[0].lo[HP_AXIS_C];
}

static void forward_sample(const hp_bound *b, const float *x, float *y, const sums *of) {
    const hp_shape *s = &b->shape;
    const int from = first_out(b);
    const float *gamma = b->param[0], *beta = b->layer->n_param > 1 ? b->param[1] : NULL;
    for (int64_t p = 0; p < (int64_t)s->oh * s->ow; p++) {
        const float *in = x + pixel_of(s, p) * s->ic + from;
        for (int c = 0; c < s->oc; c++)
            y[p * s->oc + c] =
                (float)(((double)in[c] - of->mean[from + c]) * of->inverse[from + c] * (double)gamma[c] +
                        (beta ? (double)beta[c] : 0));
    }
}

hp_status hp_cpu_groupnorm_fwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)d, (void)step, (void)err;
    const hp_shape *s = &b->shape;
    const sums of = sums_of(b);
    for (int64_t n = 0; n < s->n; n++) {
        const float *x = (const float *)b->x[0] + n * s->ih * s->iw * s->ic;
        measure(b, x, &of);
        forward_sample(b, x, (float *)b->y + n * s->oh * s->ow * s->oc, &of);
    }
    return HP_OK;
}

/* --- backward --- */

static void sum_gradients(const hp_bound *b, const float *x, const float *dy, const sums *of) {
    const hp_shape *s = &b->shape;
    const int from = first_out(b);
    const float *gamma = b->param[0];
    memset(of->sum, 0, 2 * (size_t)s->ic * sizeof(double)); /* and product */
    for (int64_t p = 0; p < (int64_t)s->oh * s->ow; p++) {
        const float *in = x + pixel_of(s, p) * s->ic;
        for (int c = from; c < from + s->oc; c++) {
            const double g = (double)dy[p * s->oc + c - from];
            of->sum[c] += g;
            of->product[c] += g * ((double)in[c] - of->mean[c]) * of->inverse[c];
        }
    }
    for (int c = from; c < from + s->oc; c++) {
        of->dgamma[c] += of->product[c];
        of->dbeta[c] += of->sum[c];
        of->sum[c] *= (double)gamma[c - from];
        of->product[c] *= (double)gamma[c - from];
    }
    add_up(b, of->sum, share_of(b));
    add_up(b, of->product, share_of(b));
}

/* dx = inverse (g - mean(g) - xhat mean(g xhat)), where g = gamma dy inside the output's box, else 0. */
static void backward_sample(const hp_bound *b, const float *x, const float *dy, float *dx, const sums *of) {
    const hp_shape *s = &b->shape;
    const int from = first_out(b), n = s->ic;
    const float *gamma = b->param[0];
    for (int64_t p = 0; p < (int64_t)s->ih * s->iw; p++)
        for (int c = 0; c < n; c++)
            dx[p * n + c] = (float)(-of->inverse[c] * (of->sum[c] + ((double)x[p * n + c] - of->mean[c]) *
                                                                        of->inverse[c] * of->product[c]));
    for (int64_t p = 0; p < (int64_t)s->oh * s->ow; p++) {
        float *to = dx + pixel_of(s, p) * n + from;
        for (int c = 0; c < s->oc; c++)
            to[c] += (float)(of->inverse[from + c] * (double)gamma[c] * (double)dy[p * s->oc + c]);
    }
}

static void put_gradient(const hp_bound *b, int i, const double *from) {
    const bool add = b->task->flags & HP_FLAG_ADD;
    float *to = i < b->layer->n_param ? b->grad[i] : NULL;
    for (int c = 0; to && c < b->shape.oc; c++) to[c] = (add ? to[c] : 0.0f) + (float)from[c];
}

hp_status hp_cpu_groupnorm_bwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)d, (void)step, (void)err;
    const hp_shape *s = &b->shape;
    const sums of = sums_of(b);
    memset(of.dgamma, 0, 2 * (size_t)s->ic * sizeof(double)); /* and dbeta */
    for (int64_t n = 0; n < s->n; n++) {
        const int64_t at = n * s->ih * s->iw * s->ic;
        const float *x = (const float *)b->x[0] + at, *dy = (const float *)b->dy + n * s->oh * s->ow * s->oc;
        measure(b, x, &of);
        sum_gradients(b, x, dy, &of);
        if (b->dx[0]) backward_sample(b, x, dy, (float *)b->dx[0] + at, &of);
    }
    put_gradient(b, 0, of.dgamma + first_out(b));
    put_gradient(b, 1, of.dbeta + first_out(b));
    return HP_OK;
}
