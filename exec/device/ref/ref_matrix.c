/* ref_matrix.c - the matrix layers of a deployed graph by their definition: real ones in float64,
 * quantised ones with exact integer sums and the formula of exec/device/kernels/panel.h (ref/ref_bytes.c).
 * The pack holds weights in canonical order. */
#include "exec/device/ref/ref_matrix.h"
#include "exec/device/device_act.h"
#include "exec/device/ref/ref.h"

#include <math.h>
#include <string.h>

typedef double real;
#include "exec/device/ref/ref_element.inc"

/* --- geometry --- */

/* The input under tap k of output o, -1: none. */
static int32_t input_of(bool transposed, int32_t o, int32_t k, int stride, int pad, int dil, int32_t inputs) {
    int64_t i =
        transposed ? (int64_t)o + pad - (int64_t)k * dil : (int64_t)o * stride - pad + (int64_t)k * dil;
    if (transposed && (i < 0 || i % stride)) return -1;
    if (transposed) i /= stride;
    return i < 0 || i >= inputs ? -1 : (int32_t)i;
}

/* Weights (O, I/groups, kh, kw), of a transposed layer (I, O/groups, kh, kw). */
static int64_t weight_at(const hp_panels *p, int32_t o, int32_t i, int32_t tap) {
    const int64_t taps = (int64_t)p->kh * p->kw;
    if (p->transposed) return (((int64_t)(o / p->outs) * p->ins + i) * p->outs + o % p->outs) * taps + tap;
    return ((int64_t)o * p->ins + i) * taps + tap;
}

void hp_ref_products(const hp_ref_matrix *m, const hp_bound *b, hp_ref_element e, hp_ref_product_fn *add,
                     hp_ref_tap_fn *end, void *sum) {
    const hp_shape *s = &b->shape;
    const hp_panels *p = &m->p;
    const int32_t first = e.c / p->outs * p->ins;
    for (int32_t tap = 0; tap < p->kh * p->kw; tap++) {
        const int32_t iy = input_of(p->transposed, e.y, tap / p->kw, s->sh, s->ph, s->dh, s->ih),
                      ix = input_of(p->transposed, e.x, tap % p->kw, s->sw, s->pw, s->dw, s->iw);
        if (iy < 0 || ix < 0) continue;
        const int64_t x = ((e.n * s->ih + iy) * s->iw + ix) * s->ic + first;
        for (int32_t i = 0; i < p->ins; i++) add(sum, m, b, x + i, weight_at(p, e.c, i, tap), first + i);
        if (end) end(sum);
    }
}

/* --- real --- */

static void add_real(void *sum, const hp_ref_matrix *m, const hp_bound *b, int64_t x, int64_t w,
                     int32_t channel) {
    (void)channel;
    *(double *)sum +=
        load(b->x[0], x, &(hp_qparams){.dtype = m->p.x}) * (double)((const float *)b->pack.forward)[w];
}

static void real_element(const hp_ref_matrix *m, const hp_bound *b, hp_ref_element e, int64_t i) {
    double v = (double)((const float *)hp_ref_terms(b, m->at.bias))[e.c];
    hp_ref_products(m, b, e, add_real, NULL, &v);
    if (m->op.adds) v += load(b->y, i, &m->op.y);
    v = hp_act_of_f64(m->op.act, v, m->op.act_a, m->op.act_b);
    store(b->y, i, v, &m->op.y);
}

static void run_whole(const hp_ref_matrix *m, const hp_bound *b) {
    const hp_shape *s = &b->shape;
    for (int64_t i = 0; i < b->out_elems; i++) {
        const hp_ref_element e = {i / s->oc / s->ow / s->oh, (int32_t)(i / s->oc / s->ow % s->oh),
                                  (int32_t)(i / s->oc % s->ow), (int32_t)(i % s->oc)};
        (m->p.x == HP_U8 ? hp_ref_bytes_element : real_element)(m, b, e, i);
    }
}

static hp_status run(void *self, const hp_bound *b, hp_error *err) {
    hp_ref_matrix *m = self;
    (void)err;
    if (!m->p.map) run_whole(m, b);
    for (int64_t n = 0; n < b->shape.n && m->p.map && b->out_elems; n++) {
        const hp_bound one = hp_dynamic_bound(&m->dynamic, b, n);
        m->units.in_zero = hp_dynamic_sample(&m->dynamic, b, n);
        run_whole(m, &one);
    }
    return HP_OK;
}

/* --- preparing --- */

/* In canonical order; scales, shifts and biases output by output. */
static void pack(const hp_bound *b, const hp_ref_matrix *m, const hp_filter *f) {
    const hp_panels *p = &m->p;
    const int64_t outs = (int64_t)p->groups * p->outs, weights = outs * p->ins * p->kh * p->kw;
    unsigned char *to = b->pack.forward;
    float *scale = (float *)(void *)(to + m->at.scale), *shift = (float *)(void *)(to + m->at.shift),
          *bias = (float *)(void *)(to + m->at.bias);
    if (f->weight8)
        memcpy(to, f->weight8, (size_t)weights);
    else
        memcpy(to, f->weight, (size_t)weights * sizeof *f->weight);
    for (int64_t o = 0; o < outs; o++) {
        const float bias_of = f->bias ? f->bias[o] : 0.0f;
        if (f->weight8) {
            scale[o] = hp_matrix_scale(&m->units, f->weight_scale[o]);
            shift[o] = hp_matrix_shift(&m->units, bias_of);
        } else {
            bias[o] = bias_of;
        }
    }
}

hp_status hp_ref_prepare_matrix(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    hp_ref_matrix *m = HP_NEW(in->arena, hp_ref_matrix, 1);
    hp_filter f;
    m->p = hp_panels_of(in->config->graph, b->layer_id, &b->shape, HP_F64);
    m->at = hp_panels_place(&m->p);
    m->op = hp_matrix_op(in, b);
    if (m->p.x == HP_U8) m->units = hp_matrix_units_of(in, b, &m->op);
    if (!in->packed[b->layer_id]) {
        HP_TRY(hp_constants_filter(in->config->constants, b->layer_id, b->shape.oc0, b->shape.oc,
                                   m->p.x == HP_U8, &f, err));
        pack(b, m, &f);
        in->packed[b->layer_id] = true;
    }
    m->scale = hp_ref_terms(b, m->at.scale);
    if (m->p.map) {
        m->dynamic = hp_dynamic_places_of(&m->p, &m->at, b, &hp_ref_loops_f64);
        m->dynamic.outs = (int64_t)m->p.groups * m->p.outs; /* one after another */
        m->scale = m->dynamic.scale;
    }
    *k = (hp_infer_kernel){run, m, "ref"};
    return HP_OK;
}
