/* device_ref_conv.c - convolution and fully connected layers by their definition, float64. */
#include "exec/device_ref.h"

#include <string.h>

/* Calls `visit` for every multiply-add: one output element, one input element, one weight. */
typedef void visit_fn(void *state, int64_t y, int64_t x, int64_t w);

static void visit_taps(const hp_shape *s, int64_t n, int oy, int ox, int o, visit_fn *visit, void *state) {
    const int in_group = s->ic / s->groups, first = o / (s->oc / s->groups) * in_group;
    const int64_t y = ((n * s->oh + oy) * s->ow + ox) * s->oc + o;
    for (int c = 0; c < in_group; c++)
        for (int ky = 0; ky < s->kh; ky++)
            for (int kx = 0; kx < s->kw; kx++) {
                const int iy = oy * s->sh - s->ph + ky * s->dh, ix = ox * s->sw - s->pw + kx * s->dw;
                if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw) continue;
                visit(state, y, ((n * s->ih + iy) * s->iw + ix) * s->ic + first + c,
                      (((int64_t)o * in_group + c) * s->kh + ky) * s->kw + kx);
            }
}

static void visit_all(const hp_shape *s, visit_fn *visit, void *state) {
    for (int64_t n = 0; n < s->n; n++)
        for (int oy = 0; oy < s->oh; oy++)
            for (int ox = 0; ox < s->ow; ox++)
                for (int o = 0; o < s->oc; o++) visit_taps(s, n, oy, ox, o, visit, state);
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

void hp_ref_conv_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    tensors t = {b->y, b->x[0], b->param[0]};
    const double *bias = b->layer->n_param > 1 ? b->param[1] : NULL;
    for (int64_t i = 0; i < b->out_elems; i++) t.y[i] = bias ? bias[i % b->shape.oc] : 0;
    visit_all(&b->shape, add_output, &t);
}

void hp_ref_conv_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    tensors t = {b->dy, b->dx[0], b->param[0]};
    memset(t.x, 0, (size_t)b->in_elems * sizeof *t.x);
    visit_all(&b->shape, add_input, &t);
}

void hp_ref_conv_bwdw(const hp_bound *b, const hp_step *s) {
    (void)s;
    const hp_shape *g = &b->shape;
    tensors t = {b->dy, b->x[0], b->grad[0]};
    double *bias = b->layer->n_param > 1 ? b->grad[1] : NULL;
    if (!(b->task->flags & HP_FLAG_ADD)) {
        memset(t.w, 0, (size_t)g->oc * (size_t)(g->ic / g->groups) * (size_t)(g->kh * g->kw) * sizeof *t.w);
        if (bias) memset(bias, 0, (size_t)g->oc * sizeof *bias);
    }
    visit_all(g, add_weight, &t);
    for (int64_t i = 0; bias && i < b->out_elems; i++) bias[i % g->oc] += t.y[i];
}
