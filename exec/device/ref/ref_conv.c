/* ref_conv.c - convolution and fully connected layers by their definition, float64: output pixel (oy,
 * ox) adds, for every tap (ky, kx) inside the image, the input pixel (oy*stride - pad + ky*dilation, ...)
 * times the tap's matrix of weights. The weights are turned so that the innermost loop runs over neighbours
 * in memory. */
#include "exec/device/ref/ref.h"
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* One tap of one group: `outs` outputs at y, `ins` inputs at x, its matrix at w. */
typedef void tap_fn(double *restrict y, double *restrict x, double *restrict w, int outs, int ins);

static inline __attribute__((always_inline)) void pixel(const hp_shape *s, int64_t n, int oy, int ox,
                                                        double *y, double *x, double *w, tap_fn *tap) {
    const int outs = s->oc / s->groups, ins = s->ic / s->groups;
    double *at = y + ((n * s->oh + oy) * s->ow + ox) * s->oc;
    for (int ky = 0; ky < s->kh; ky++)
        for (int kx = 0; kx < s->kw; kx++) {
            const int iy = oy * s->sh - s->ph + ky * s->dh, ix = ox * s->sw - s->pw + kx * s->dw;
            if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw) continue;
            double *from = x + ((n * s->ih + iy) * s->iw + ix) * s->ic;
            double *matrix = w + (int64_t)(ky * s->kw + kx) * s->oc * ins;
            for (int g = 0; g < s->groups; g++)
                tap(at + g * outs, from + g * ins, matrix + (int64_t)g * outs * ins, outs, ins);
        }
}

static inline __attribute__((always_inline)) void every_pixel(const hp_shape *s, double *y, double *x,
                                                              double *w, tap_fn *tap) {
    for (int64_t n = 0; n < s->n; n++)
        for (int oy = 0; oy < s->oh; oy++)
            for (int ox = 0; ox < s->ow; ox++) pixel(s, n, oy, ox, y, x, w, tap);
}

static void add_output(double *restrict y, double *restrict x, double *restrict w, int outs, int ins) {
    for (int i = 0; i < ins; i++)
        for (int o = 0; o < outs; o++) y[o] += x[i] * w[i * outs + o];
}

static void add_input(double *restrict y, double *restrict x, double *restrict w, int outs, int ins) {
    for (int o = 0; o < outs; o++)
        for (int i = 0; i < ins; i++) x[i] += y[o] * w[o * ins + i];
}

static void add_weight(double *restrict y, double *restrict x, double *restrict w, int outs, int ins) {
    for (int i = 0; i < ins; i++)
        for (int o = 0; o < outs; o++) w[i * outs + o] += x[i] * y[o];
}

/* --- weights by tap --- */

/* Index of weight (o, i of its group, tap) in (taps, groups, I/groups, O/groups), or with outputs first. */
static int64_t turned_at(const hp_shape *s, int o, int i, int tap, bool outputs_first) {
    const int outs = s->oc / s->groups, ins = s->ic / s->groups, g = o / outs;
    const int64_t matrix = ((int64_t)tap * s->groups + g) * outs * ins;
    return matrix + (outputs_first ? (int64_t)(o % outs) * ins + i : (int64_t)i * outs + o % outs);
}

static double *room_for(const hp_shape *s) {
    return hp_zeroed((size_t)s->oc * (size_t)(s->ic / s->groups) * (size_t)(s->kh * s->kw) + 1,
                     sizeof(double));
}

/* Index of a weight as the parameter has it: (O, I/groups, taps); of a row layer, of one pixel and one group,
 * (I, O). */
static int64_t stored_at(const hp_bound *b, int o, int i, int tap) {
    const hp_shape *s = &b->shape;
    if (b->layer->tp == (int32_t)HP_TP_ROW) return (int64_t)i * s->oc + o;
    return ((int64_t)o * (s->ic / s->groups) + i) * s->kh * s->kw + tap;
}

static double *turned(const hp_bound *b, bool outputs_first) {
    const hp_shape *s = &b->shape;
    const double *w = b->param[0];
    double *t = room_for(s);
    for (int o = 0; o < s->oc; o++)
        for (int i = 0; i < s->ic / s->groups; i++)
            for (int k = 0; k < s->kh * s->kw; k++)
                t[turned_at(s, o, i, k, outputs_first)] = w[stored_at(b, o, i, k)];
    return t;
}

/* --- tasks --- */

void hp_ref_conv_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    double *y = b->y, *w = turned(b, false);
    const double *bias = b->layer->n_param > 1 ? b->param[1] : NULL;
    for (int64_t i = 0; i < b->out_elems; i++) y[i] = bias ? bias[i % b->shape.oc] : 0;
    every_pixel(&b->shape, y, b->x[0], w, add_output);
    free(w);
}

void hp_ref_conv_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    double *w = turned(b, true);
    memset(b->dx[0], 0, (size_t)b->in_elems * sizeof(double));
    every_pixel(&b->shape, b->dy, b->dx[0], w, add_input);
    free(w);
}

void hp_ref_conv_bwdw(const hp_bound *b, const hp_step *s) {
    (void)s;
    const hp_shape *g = &b->shape;
    const bool add = b->task->flags & HP_FLAG_ADD;
    const int ins = g->ic / g->groups, taps = g->kh * g->kw;
    double *w = room_for(g), *dy = b->dy;
    every_pixel(g, dy, b->x[0], w, add_weight);
    for (int o = 0; o < g->oc; o++)
        for (int i = 0; i < ins; i++)
            for (int k = 0; k < taps; k++) {
                double *to = (double *)b->grad[0] + stored_at(b, o, i, k);
                *to = (add ? *to : 0) + w[turned_at(g, o, i, k, false)];
            }
    free(w);
    if (b->layer->n_param < 2) return;
    double *bias = b->grad[1];
    if (!add) memset(bias, 0, (size_t)g->oc * sizeof *bias);
    for (int64_t i = 0; i < b->out_elems; i++) bias[i % g->oc] += dy[i];
}
