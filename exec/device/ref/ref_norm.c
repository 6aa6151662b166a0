/* ref_norm.c - batch norm with its optional residual input and activation, float64.
 *
 * Alone, a rank takes the statistics of its whole buffer. With a `sums` operand they were added up over ranks
 * between two tasks: stats before forward, bstats before backward (Ioffe and Szegedy 2015, over all tiles).
 */
#include "exec/device/ref/ref.h"

#include <math.h>

static int64_t rows_of(const hp_bound *b) {
    return b->out_elems / b->shape.oc;
}

static double clamp(double v, hp_clamp k) {
    return v < (double)k.lo ? (double)k.lo : v > (double)k.hi ? (double)k.hi : v;
}

/* --- forward --- */

/* Mean and biased variance of channel c, two passes. */
static void statistics(const double *x, int64_t rows, int channels, int c, double *mean, double *var) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < rows; i++) sum += x[i * channels + c];
    *mean = sum / (double)rows;
    for (int64_t i = 0; i < rows; i++)
        square += (x[i * channels + c] - *mean) * (x[i * channels + c] - *mean);
    *var = square / (double)rows;
}

/* The same from sums over all ranks. */
static void shared_statistics(const hp_bound *b, int c, double *mean, double *var) {
    const double pixels = (double)hp_norm_pixels(b->task);
    *mean = b->sums[c] / pixels;
    *var = b->sums[b->shape.oc + c] / pixels - *mean * *mean;
    if (*var < 0) *var = 0; /* rounding; NaN stays */
}

static void update_running(const hp_bound *b, const hp_step *s, int c, double mean, double var) {
    const hp_running f = hp_running_factors(b, s);
    const double n = (double)(b->sums ? hp_norm_pixels(b->task) : rows_of(b)),
                 unbiased = n > 1 ? var * n / (n - 1) : var;
    double *m = b->param[2], *v = b->param[3];
    m[c] = (m[c] * f.before + f.fresh * mean) * f.after;
    v[c] = (v[c] * f.before + f.fresh * unbiased) * f.after;
}

void hp_ref_bn_fwd(const hp_bound *b, const hp_step *s) {
    const int channels = b->shape.oc;
    const double *x = b->x[0], *r = b->n_in > 1 ? b->x[1] : NULL, *gamma = b->param[0], *beta = b->param[1];
    double *y = b->y, *save = b->save;
    for (int c = 0; c < channels; c++) {
        double mean = ((double *)b->param[2])[c], var = ((double *)b->param[3])[c];
        if (!(b->task->flags & HP_FLAG_EVAL)) {
            if (b->sums)
                shared_statistics(b, c, &mean, &var);
            else
                statistics(x, rows_of(b), channels, c, &mean, &var);
            if (!(b->task->flags & HP_FLAG_RECOMPUTE)) update_running(b, s, c, mean, var);
        }
        const double inverse = 1 / sqrt(var + (double)b->layer->eps);
        if (save) {
            save[c] = mean;
            save[channels + c] = inverse;
        }
        for (int64_t i = c; i < b->out_elems; i += channels)
            y[i] =
                clamp((x[i] - mean) * inverse * gamma[c] + beta[c] + (r ? r[i] : 0), hp_clamp_of(b->layer));
    }
}

/* Does the pixel of element i count in the statistics of this rank? */
static bool counts(const hp_bound *b, int64_t i) {
    const hp_shape *s = &b->shape;
    const int64_t pixel = i / s->oc, row = pixel / s->ow;
    const int64_t at[] = {row / s->oh, row % s->oh, pixel % s->ow};
    for (int a = HP_AXIS_N; a <= HP_AXIS_W; a++)
        if (at[a] < b->map.counted.lo[a] || at[a] >= b->map.counted.hi[a]) return false;
    return true;
}

void hp_ref_bn_stats(const hp_bound *b, const hp_step *s) {
    (void)s;
    const int channels = b->shape.oc;
    const double *x = b->x[0];
    for (int c = 0; c < 2 * channels; c++) b->sums[c] = 0;
    for (int64_t i = 0; i < b->out_elems; i++) {
        if (!counts(b, i)) continue;
        b->sums[i % channels] += x[i];
        b->sums[channels + i % channels] += x[i] * x[i];
    }
}

/* --- backward --- */

/* dy after the activation's mask. */
static double masked(const hp_bound *b, int64_t i) {
    const hp_clamp k = hp_clamp_of(b->layer);
    const double *dy = b->dy, *y = b->y;
    if (!hp_layer_has_act(b->layer)) return dy[i];
    return y[i] > (double)k.lo && y[i] < (double)k.hi ? dy[i] : 0;
}

static double normalised(const hp_bound *b, int64_t i, int c) {
    const double *x = b->x[0], *save = b->save;
    return (x[i] - save[c]) * save[b->shape.oc + c];
}

/* Sums of the gradient, alone and with the normalised input; they are beta's and gamma's gradients. */
static void gradient_sums(const hp_bound *b, int c, double *sum, double *dot) {
    double *grads[2] = {b->grad[0], b->grad[1]};
    *sum = *dot = 0;
    for (int64_t i = c; i < b->out_elems; i += b->shape.oc) {
        *sum += masked(b, i);
        *dot += masked(b, i) * normalised(b, i, c);
    }
    const bool add = b->task->flags & HP_FLAG_ADD;
    grads[0][c] = (add ? grads[0][c] : 0) + *dot;
    grads[1][c] = (add ? grads[1][c] : 0) + *sum;
}

/* dx = gamma / std * (g - (sum + xhat * dot) / pixels), the mean terms only where the pixel counted. */
static void backward_channel(const hp_bound *b, int c, double sum, double dot, double pixels) {
    const double scale = ((double *)b->param[0])[c] * ((double *)b->save)[b->shape.oc + c];
    double *dx = b->dx[0], *dr = b->n_in > 1 ? b->dx[1] : NULL;
    for (int64_t i = c; i < b->out_elems; i += b->shape.oc) {
        const double g = masked(b, i); /* dx or dr may be dy itself: read here, not again */
        const double mean = !b->sums || counts(b, i) ? (sum + normalised(b, i, c) * dot) / pixels : 0;
        if (dr) dr[i] = g;
        if (dx) dx[i] = scale * (g - mean);
    }
}

void hp_ref_bn_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    for (int c = 0; c < b->shape.oc; c++) {
        double sum, dot;
        if (b->sums) {
            backward_channel(b, c, b->sums[c], b->sums[b->shape.oc + c], (double)hp_norm_pixels(b->task));
            continue;
        }
        gradient_sums(b, c, &sum, &dot);
        backward_channel(b, c, sum, dot, (double)rows_of(b));
    }
}

void hp_ref_bn_bstats(const hp_bound *b, const hp_step *s) {
    (void)s;
    for (int c = 0; c < b->shape.oc; c++) gradient_sums(b, c, &b->sums[c], &b->sums[b->shape.oc + c]);
}
