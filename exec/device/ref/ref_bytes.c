/* ref_bytes.c - output elements of layers that read bytes, from the formula of exec/device/kernels/panel.h.
 * Compiled without contraction of products and sums: the formula says what is fused. */
#include "exec/device/ref/ref_matrix.h"
#include "exec/device/device_act.h"

#include <math.h>

/* An exact sum; of raw pixels, whose zeros are no integers, the zeros' share beside it, tap by tap. */
typedef struct sums {
    int64_t products;
    float zeros;
    double tap; /* zeros' share of the tap in hand */
} sums;

static void add_bytes(void *sum, const hp_ref_matrix *m, const hp_bound *b, int64_t x, int64_t w,
                      int32_t channel) {
    sums *s = sum;
    const int32_t q = ((const uint8_t *)b->x[0])[x], weight = ((const int8_t *)b->pack.forward)[w];
    s->products += (int64_t)weight * (q - m->units.in_zero);
    if (m->units.pixels) s->tap += weight * (double)m->units.pixel_zero[channel];
}

static void end_tap(void *sum) {
    sums *s = sum;
    s->zeros += (float)s->tap;
    s->tap = 0;
}

/* The nearest integer from lo to hi, halves to even. */
static int nearest(float v, int lo, int hi) {
    return (int)rintf(fminf(fmaxf(v, (float)lo), (float)hi)); /* a NaN is lo */
}

/* In float32, as every device computes it. */
static float act(const hp_infer_op *o, float v) {
    return hp_act_of_f32(o->act, v, (float)o->act_a, (float)o->act_b);
}

void hp_ref_bytes_element(const hp_ref_matrix *m, const hp_bound *b, hp_ref_element e, int64_t i) {
    sums s = {0};
    hp_ref_products(m, b, e, add_bytes, end_tap, &s);
    const float scale = m->scale[e.c], shift = ((const float *)hp_ref_terms(b, m->at.shift))[e.c];
    if (m->op.y.dtype != HP_U8) {
        double *y = (double *)b->y + i,
               v = (double)scale * ((double)s.products - (double)s.zeros) + (double)shift;
        *y = hp_act_of_f64(m->op.act, m->op.adds ? v + *y : v, m->op.act_a, m->op.act_b);
        return;
    }
    uint8_t *y = (uint8_t *)b->y + i;
    float v = fmaf(scale, (float)s.products, m->units.pixels ? fmaf(-scale, s.zeros, shift) : shift);
    if (m->op.adds) v = fmaf(m->units.add_scale, (float)*y, v);
    const hp_qparams *to = &m->op.y;
    const int q = m->units.bytes
                      ? nearest(v, 0, 255)
                      : nearest(act(&m->op, v) * to->inverse, -to->zero, 255 - to->zero) + to->zero;
    *y = (uint8_t)(q < m->units.lo8 ? m->units.lo8 : q > m->units.hi8 ? m->units.hi8 : q);
}
