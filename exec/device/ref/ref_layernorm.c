/* ref_layernorm.c - layer norm (Ba, Kiros and Hinton 2016) and RMS norm (Zhang and Sennrich 2019) over a
 * pixel's channels, float64. The output may be some of the channels: all of the input's are read, and the
 * gradient is that of these. */
#include "exec/device/ref/ref.h"

#include <math.h>

typedef struct pixel {
    double mean, inverse; /* 1 / deviation */
} pixel;

static pixel statistics(const hp_bound *b, const double *x) {
    const int n = b->shape.ic;
    double mean = 0, square = 0;
    for (int c = 0; c < n && b->layer->op == HP_LAYERNORM; c++) mean += x[c] / n;
    for (int c = 0; c < n; c++) square += (x[c] - mean) * (x[c] - mean) / n;
    return (pixel){mean, 1 / sqrt(square + (double)b->layer->eps)};
}

static int64_t pixels_of(const hp_bound *b) {
    return b->out_elems / b->shape.oc;
}

void hp_ref_layernorm_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *gamma = b->param[0], *beta = b->layer->n_param > 1 ? b->param[1] : NULL;
    for (int64_t i = 0; i < pixels_of(b); i++) {
        const double *x = (const double *)b->x[0] + i * b->shape.ic;
        double *y = (double *)b->y + i * b->shape.oc;
        const pixel p = statistics(b, x);
        for (int c = 0; c < b->shape.oc; c++)
            y[c] = (x[b->shape.oc0 + c] - p.mean) * p.inverse * gamma[c] + (beta ? beta[c] : 0);
    }
}

/* dx = inverse * (g - mean(g) - xhat * mean(g xhat)), g = gamma dy where there is one; RMS norm's without
 * mean(g). */
static void backward_data(const hp_bound *b, const pixel *p, const double *x, const double *dy, double *dx) {
    const double *gamma = b->param[0];
    const int n = b->shape.ic, from = b->shape.oc0;
    double sum = 0, product = 0;
    for (int c = 0; c < b->shape.oc; c++) {
        sum += gamma[c] * dy[c] / n;
        product += gamma[c] * dy[c] * (x[from + c] - p->mean) * p->inverse / n;
    }
    for (int c = 0; c < n; c++) {
        const double g = c >= from && c < from + b->shape.oc ? gamma[c - from] * dy[c - from] : 0;
        dx[c] = p->inverse *
                (g - (b->layer->op == HP_LAYERNORM ? sum : 0) - (x[c] - p->mean) * p->inverse * product);
    }
}

void hp_ref_layernorm_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    double *dgamma = b->grad[0], *dbeta = b->layer->n_param > 1 ? b->grad[1] : NULL;
    const int outs = b->shape.oc;
    for (int c = 0; c < outs && !(b->task->flags & HP_FLAG_ADD); c++) {
        dgamma[c] = 0;
        if (dbeta) dbeta[c] = 0;
    }
    for (int64_t i = 0; i < pixels_of(b); i++) {
        const double *x = (const double *)b->x[0] + i * b->shape.ic, *dy = (const double *)b->dy + i * outs;
        const pixel p = statistics(b, x);
        for (int c = 0; c < outs; c++) {
            dgamma[c] += dy[c] * (x[b->shape.oc0 + c] - p.mean) * p.inverse;
            if (dbeta) dbeta[c] += dy[c];
        }
        if (b->dx[0]) backward_data(b, &p, x, dy, (double *)b->dx[0] + i * b->shape.ic);
    }
}
