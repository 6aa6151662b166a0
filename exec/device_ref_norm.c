/* device_ref_norm.c - batch norm with its optional residual input and activation, float64. */
#include "exec/device_ref.h"

#include <math.h>

static int64_t rows_of(const hp_bound *b) {
    return b->out_elems / b->shape.oc;
}

/* Mean and biased variance of channel c, two passes. */
static void statistics(const double *x, int64_t rows, int channels, int c, double *mean, double *var) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < rows; i++) sum += x[i * channels + c];
    *mean = sum / (double)rows;
    for (int64_t i = 0; i < rows; i++)
        square += (x[i * channels + c] - *mean) * (x[i * channels + c] - *mean);
    *var = square / (double)rows;
}

static void update_running(const hp_bound *b, const hp_step *s, int c, double mean, double var) {
    const hp_running f = hp_running_factors(b, s);
    const double rows = (double)rows_of(b), unbiased = rows > 1 ? var * rows / (rows - 1) : var;
    double *m = b->param[2], *v = b->param[3];
    m[c] = (m[c] * f.before + f.fresh * mean) * f.after;
    v[c] = (v[c] * f.before + f.fresh * unbiased) * f.after;
}

static double clamp(double v, hp_clamp k) {
    return v < (double)k.lo ? (double)k.lo : v > (double)k.hi ? (double)k.hi : v;
}

void hp_ref_bn_fwd(const hp_bound *b, const hp_step *s) {
    const int channels = b->shape.oc;
    const double *x = b->x[0], *r = b->n_in > 1 ? b->x[1] : NULL, *gamma = b->param[0], *beta = b->param[1];
    double *y = b->y, *save = b->save;
    for (int c = 0; c < channels; c++) {
        double mean = ((double *)b->param[2])[c], var = ((double *)b->param[3])[c];
        if (!(b->task->flags & HP_FLAG_EVAL)) {
            statistics(x, rows_of(b), channels, c, &mean, &var);
            if (!(b->task->flags & HP_FLAG_RECOMPUTE)) update_running(b, s, c, mean, var);
        }
        const double inverse = 1 / sqrt(var + (double)b->layer->eps);
        if (save) {
            save[c] = mean;
            save[channels + c] = inverse;
        }
        for (int64_t i = c; i < b->out_elems; i += channels)
            y[i] = clamp((x[i] - mean) * inverse * gamma[c] + beta[c] + (r ? r[i] : 0),
                         hp_clamp_of(b->layer->act));
    }
}

/* dy behind the activation's mask. */
static double masked(const hp_bound *b, int64_t i) {
    const hp_clamp k = hp_clamp_of(b->layer->act);
    const double *dy = b->dy, *y = b->y;
    if (b->layer->act == HP_ACT_NONE) return dy[i];
    return y[i] > (double)k.lo && y[i] < (double)k.hi ? dy[i] : 0;
}

static void backward_channel(const hp_bound *b, int c) {
    const int channels = b->shape.oc;
    const double rows = (double)rows_of(b), *x = b->x[0], *save = b->save;
    const double mean = save[c], inverse = save[channels + c], gamma = ((double *)b->param[0])[c];
    double *dx = b->dx[0], *dr = b->n_in > 1 ? b->dx[1] : NULL, *grads[2] = {b->grad[0], b->grad[1]};
    double sum = 0, dot = 0;
    for (int64_t i = c; i < b->out_elems; i += channels) {
        sum += masked(b, i);
        dot += masked(b, i) * (x[i] - mean) * inverse;
    }
    for (int64_t i = c; i < b->out_elems; i += channels) {
        const double g = masked(b, i);
        if (dr) dr[i] = g; /* may be dy itself: read above, not again */
        if (dx) dx[i] = gamma * inverse * (g - sum / rows - (x[i] - mean) * inverse * dot / rows);
    }
    const double old = b->task->flags & HP_FLAG_ADD ? 1 : 0;
    grads[0][c] = (old > 0 ? grads[0][c] : 0) + dot;
    grads[1][c] = (old > 0 ? grads[1][c] : 0) + sum;
}

void hp_ref_bn_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    for (int c = 0; c < b->shape.oc; c++) backward_channel(b, c);
}
