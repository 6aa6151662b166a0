/* ref_groupnorm.c - group norm (Wu and He 2018), float64; with as many groups as channels it is instance norm
 * (Ulyanov, Vedaldi and Lempitsky 2016). The output may be some of the map: all of the map is read, and the
 * gradient is that of this part. */
#include "exec/device/ref/ref.h"

#include <math.h>
#include <string.h>

/* One sample and group: all pixels of the map, `width` channels from `first` of the input's box on. */
typedef struct group {
    const double *x;
    int64_t pixels;
    int stride, first, width;
    double mean, inverse; /* 1 / deviation */
} group;

static double element(const group *g, int64_t i) {
    return g->x[i / g->width * g->stride + g->first + i % g->width];
}

static group group_of(const hp_bound *b, int64_t sample, int first) {
    const hp_shape *s = &b->shape;
    const int64_t pixels = (int64_t)s->ih * s->iw;
    group g = {(const double *)b->x[0] + sample * pixels * s->ic,
               pixels,
               s->ic,
               first,
               s->full.oc / b->layer->groups,
               0,
               0};
    const int64_t n = pixels * g.width;
    double square = 0;
    for (int64_t i = 0; i < n; i++) g.mean += element(&g, i) / (double)n;
    for (int64_t i = 0; i < n; i++)
        square += (element(&g, i) - g.mean) * (element(&g, i) - g.mean) / (double)n;
    g.inverse = 1 / sqrt(square + b->layer->eps);
    return g;
}

/* The channels of the group that are in the output's box, counted as in the input's box. */
static hp_extent outs_of(const hp_bound *b, const group *g) {
    const int from = b->shape.oc0 - b->map.in_box[0].lo[HP_AXIS_C], to = from + b->shape.oc;
    return (hp_extent){g->first > from ? g->first : from,
                       g->first + g->width < to ? g->first + g->width : to};
}

/* Where element (pixel p of the output's box, channel c of the input's box) lies in the output's box; its
 * normalised value. */
typedef struct place {
    int64_t out;
    double normed;
} place;

static place place_of(const hp_bound *b, const group *g, int64_t sample, int64_t p, int c) {
    const hp_shape *s = &b->shape;
    const int64_t y = s->oy0 + p / s->ow - s->iy0, x = s->ox0 + p % s->ow - s->ix0;
    const int from = s->oc0 - b->map.in_box[0].lo[HP_AXIS_C];
    return (place){((int64_t)s->oh * s->ow * sample + p) * s->oc + c - from,
                   (g->x[(y * s->iw + x) * s->ic + c] - g->mean) * g->inverse};
}

static void forward(const hp_bound *b, int64_t sample, const group *g) {
    const hp_extent outs = outs_of(b, g);
    const int from = b->shape.oc0 - b->map.in_box[0].lo[HP_AXIS_C];
    const double *gamma = b->param[0], *beta = b->layer->n_param > 1 ? b->param[1] : NULL;
    for (int64_t p = 0; p < (int64_t)b->shape.oh * b->shape.ow; p++)
        for (int c = outs.lo; c < outs.hi; c++) {
            const place at = place_of(b, g, sample, p, c);
            ((double *)b->y)[at.out] = at.normed * gamma[c - from] + (beta ? beta[c - from] : 0);
        }
}

/* dx = inverse (g - mean(g) - xhat mean(g xhat)), g = gamma dy where there is one; means are over the whole
 * map. */
static void backward(const hp_bound *b, int64_t sample, const group *g) {
    const hp_shape *s = &b->shape;
    const hp_extent outs = outs_of(b, g);
    const int from = s->oc0 - b->map.in_box[0].lo[HP_AXIS_C];
    const double *gamma = b->param[0], *dy = b->dy, n = (double)g->pixels * g->width;
    double *dgamma = b->grad[0], *dbeta = b->layer->n_param > 1 ? b->grad[1] : NULL;
    double *dx = b->dx[0] ? (double *)b->dx[0] + sample * g->pixels * s->ic : NULL, sum = 0, product = 0;
    for (int64_t p = 0; p < (int64_t)s->oh * s->ow; p++)
        for (int c = outs.lo; c < outs.hi; c++) {
            const place at = place_of(b, g, sample, p, c);
            sum += gamma[c - from] * dy[at.out] / n;
            product += gamma[c - from] * dy[at.out] * at.normed / n;
            dgamma[c - from] += dy[at.out] * at.normed;
            if (dbeta) dbeta[c - from] += dy[at.out];
        }
    for (int64_t i = 0; dx && i < g->pixels * g->width; i++)
        dx[i / g->width * s->ic + g->first + i % g->width] =
            -g->inverse * (sum + (element(g, i) - g->mean) * g->inverse * product);
    for (int64_t p = 0; dx && p < (int64_t)s->oh * s->ow; p++)
        for (int c = outs.lo; c < outs.hi; c++) {
            const int64_t y = s->oy0 + p / s->ow - s->iy0, x = s->ox0 + p % s->ow - s->ix0;
            dx[(y * s->iw + x) * s->ic + c] +=
                g->inverse * gamma[c - from] * dy[place_of(b, g, sample, p, c).out];
        }
}

typedef void group_fn(const hp_bound *b, int64_t sample, const group *g);

static void every_group(const hp_bound *b, group_fn *visit) {
    const int width = b->shape.full.oc / b->layer->groups;
    for (int64_t n = 0; n < b->shape.n; n++)
        for (int first = 0; first < b->shape.ic; first += width) {
            const group g = group_of(b, n, first);
            visit(b, n, &g);
        }
}

void hp_ref_groupnorm_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    every_group(b, forward);
}

void hp_ref_groupnorm_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    for (int i = 0; i < b->layer->n_param && !(b->task->flags & HP_FLAG_ADD); i++)
        memset(b->grad[i], 0, (size_t)b->shape.oc * sizeof(double));
    every_group(b, backward);
}
