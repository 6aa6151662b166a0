/* device_onednn_norm.c - batch norm tasks: statistics in one pass, normalise + add + activation in a second;
 * backward two passes, the first of which leaves the masked gradient where the residual branch wants it. */
#include "exec/device_onednn.h"

#include <math.h>

/* The scratch buffer as this layer uses it: 2 rows of float64, 5 of float32 (plan/device_memory.c counts 5 of
 * 8 bytes). */
typedef struct norm_scratch {
    double *first, *second;
    float *scale, *a, *b, *tmp; /* tmp: two rows */
} norm_scratch;

static norm_scratch carve(const hp_bound *b) {
    const int64_t channels = (b->shape.oc + 15) / 16 * 16;
    norm_scratch n = {.first = b->scratch};
    n.second = n.first + channels;
    n.scale = (float *)(n.second + channels);
    n.a = n.scale + channels;
    n.b = n.a + channels;
    n.tmp = n.b + channels;
    return n;
}

static int64_t rows_of(const hp_bound *b) {
    return b->out_elems / b->shape.oc;
}

static void update_running(const hp_bound *b, const hp_step *s, int c, double mean, double var) {
    const hp_running f = hp_running_factors(b, s);
    const double rows = (double)rows_of(b), unbiased = rows > 1 ? var * rows / (rows - 1) : var;
    float *m = b->param[2], *v = b->param[3];
    m[c] = (float)(((double)m[c] * f.before + f.fresh * mean) * f.after);
    v[c] = (float)(((double)v[c] * f.before + f.fresh * unbiased) * f.after);
}

/* Batch statistics into save = (mean, inverse standard deviation). The first pixel is the shift: it makes the
 * one-pass variance safe when the mean is large against the deviation. */
static void batch_statistics(hp_device *d, const hp_bound *b, const hp_step *s, const norm_scratch *n) {
    const int channels = b->shape.oc;
    const double rows = (double)rows_of(b);
    const float *x = b->x[0];
    float *save = b->save;
    d->kernels->norm.sums(x, x, rows_of(b), channels, n->first, n->second, n->tmp);
    for (int c = 0; c < channels; c++) {
        const double off = n->first[c] / rows, mean = off + (double)x[c];
        const double spread = n->second[c] / rows - off * off, var = spread > 0         ? spread
                                                                     : spread == spread ? 0
                                                                                        : spread;
        save[c] = (float)mean;
        save[channels + c] = (float)(1 / sqrt(var + (double)b->layer->eps));
        if (!(b->task->flags & HP_FLAG_RECOMPUTE)) update_running(b, s, c, mean, var);
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
                           b->param[1], rows_of(b), channels, hp_clamp_of(b->layer->act));
    return HP_OK;
}

/* Parameter gradients, and the factors of dx = scale*g - a - (x - mean)*b. */
static void backward_factors(const hp_bound *b, const norm_scratch *n) {
    const int channels = b->shape.oc;
    const double rows = (double)rows_of(b);
    const float *save = b->save, *gamma = b->param[0];
    float *dgamma = b->grad[0], *dbeta = b->grad[1];
    const bool add = b->task->flags & HP_FLAG_ADD;
    for (int c = 0; c < channels; c++) {
        const double inverse = (double)save[channels + c], scale = (double)gamma[c] * inverse;
        dgamma[c] = (add ? dgamma[c] : 0.0f) + (float)(n->second[c] * inverse);
        dbeta[c] = (add ? dbeta[c] : 0.0f) + (float)n->first[c];
        n->scale[c] = (float)scale;
        n->a[c] = (float)(scale * n->first[c] / rows);
        n->b[c] = (float)(scale * inverse * inverse * n->second[c] / rows);
    }
}

hp_status hp_cpu_bn_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const norm_scratch n = carve(b);
    const hp_clamp k = hp_clamp_of(b->layer->act);
    const float *y = b->layer->act == HP_ACT_NONE ? NULL : b->y, *save = b->save;
    float *keep = b->n_in > 1 ? b->dx[1] : NULL; /* may be dy */
    d->kernels->norm.bwd_sums(b->dy, y, b->x[0], save, rows_of(b), b->shape.oc, k, keep, n.first, n.second,
                              n.tmp);
    backward_factors(b, &n);
    if (b->dx[0])
        d->kernels->norm.bwd_apply(b->dx[0], keep ? keep : b->dy, keep ? NULL : y, b->x[0], save, n.scale,
                                   n.a, n.b, rows_of(b), b->shape.oc, k);
    return HP_OK;
}
