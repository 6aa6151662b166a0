/* ref_convt.c - transposed convolution by its definition, float64: input pixel (iy, ix) adds its value
 * times the weight of tap (ky, kx) to output pixel (iy*stride - pad + ky, ix*stride - pad + kx). Weights
 * (I, O, kh, kw). */
#include "exec/device/ref/ref.h"

#include <string.h>

/* Calls `visit` for every multiply-add: one output element, one input element, one weight. */
typedef void visit_fn(void *state, int64_t y, int64_t x, int64_t w);

static void visit_pixel(const hp_shape *s, int64_t n, int iy, int ix, visit_fn *visit, void *state) {
    const int64_t x = ((n * s->ih + iy) * s->iw + ix) * s->ic;
    for (int ky = 0; ky < s->kh; ky++)
        for (int kx = 0; kx < s->kw; kx++) {
            const int oy = iy * s->sh - s->ph + ky, ox = ix * s->sw - s->pw + kx;
            if (oy < 0 || oy >= s->oh || ox < 0 || ox >= s->ow) continue;
            const int64_t y = ((n * s->oh + oy) * s->ow + ox) * s->oc;
            for (int c = 0; c < s->ic; c++)
                for (int o = 0; o < s->oc; o++)
                    visit(state, y + o, x + c, (((int64_t)c * s->oc + o) * s->kh + ky) * s->kw + kx);
        }
}

static void visit_all(const hp_shape *s, visit_fn *visit, void *state) {
    for (int64_t n = 0; n < s->n; n++)
        for (int iy = 0; iy < s->ih; iy++)
            for (int ix = 0; ix < s->iw; ix++) visit_pixel(s, n, iy, ix, visit, state);
}

typedef struct tensors {
    double *y, *x, *w;
} tensors;

static void add_output(void *state, int64_t y, int64_t x, int64_t w) {
    const tensors *t = state;
    t->y[y] += t->x[x] * t->w[w];
}

static void add_input(void *state, int64_t y, int64_t x, int64_t w) {
    const tensors *t = state;
    t->x[x] += t->y[y] * t->w[w];
}

static void add_weight(void *state, int64_t y, int64_t x, int64_t w) {
    const tensors *t = state;
    t->w[w] += t->y[y] * t->x[x];
}

void hp_ref_convt_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    tensors t = {b->y, b->x[0], b->param[0]};
    const double *bias = b->layer->n_param > 1 ? b->param[1] : NULL;
    for (int64_t i = 0; i < b->out_elems; i++) t.y[i] = bias ? bias[i % b->shape.oc] : 0;
    visit_all(&b->shape, add_output, &t);
}

void hp_ref_convt_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    tensors t = {b->dy, b->dx[0], b->param[0]};
    memset(t.x, 0, (size_t)b->in_elems * sizeof *t.x);
    visit_all(&b->shape, add_input, &t);
}

void hp_ref_convt_bwdw(const hp_bound *b, const hp_step *s) {
    (void)s;
    const hp_shape *g = &b->shape;
    tensors t = {b->dy, b->x[0], b->grad[0]};
    double *bias = b->layer->n_param > 1 ? b->grad[1] : NULL;
    if (!(b->task->flags & HP_FLAG_ADD)) {
        memset(t.w, 0, (size_t)g->ic * (size_t)g->oc * (size_t)(g->kh * g->kw) * sizeof *t.w);
        if (bias) memset(bias, 0, (size_t)g->oc * sizeof *bias);
    }
    visit_all(g, add_weight, &t);
    for (int64_t i = 0; bias && i < b->out_elems; i++) bias[i % g->oc] += t.y[i];
}
