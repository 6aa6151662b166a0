/* cpu_matrix_pack.c - constants of matrix layers in the layout of plan/memory/panels.h. */
#include "exec/device/cpu/cpu_matrix.h"

#include <string.h>

/* --- weights --- */

/* Strides of a weight (output and input of the group, row, column) in canonical order: (O, I/groups, kh, kw),
 * or (I, O/groups, kh, kw) in transposed layers. */
typedef struct canonical {
    int64_t first, out, in, row; /* the group's first weight, then strides */
} canonical;

static canonical canonical_of(const hp_panels *p, int group) {
    const int64_t taps = (int64_t)p->kh * p->kw, matrix = (int64_t)p->outs * p->ins * taps;
    if (p->transposed) return (canonical){group * matrix, taps, p->outs * taps, p->kw};
    return (canonical){group * matrix, p->ins * taps, taps, p->kw};
}

/* Index of the weight for element `e` of a row of taps, relative to the first of its output
 * and row; -1: padding. */
static int64_t element_at(const hp_panels *p, const canonical *c, int64_t e) {
    const int32_t per_tap = p->merged ? p->ins : p->tap_steps * p->dot;
    const int64_t kx = e / per_tap, i = e % per_tap;
    return kx < p->kw && i < p->ins ? i * c->in + kx : -1;
}

static void store_weights(const hp_matrix *m, unsigned char *to, int64_t step, const hp_filter *f,
                          int64_t from, int64_t apart, int n) {
    for (int o = 0; o < n; o++, from += apart) {
        unsigned char *at = to + o * step;
        if (f->weight8)
            memcpy(at, f->weight8 + from, 1);
        else if (m->p.x == HP_BF16)
            m->kernels->of[HP_BF16]->narrow((uint16_t *)(void *)at, f->weight + from, 1);
        else if (m->p.x == HP_F16)
            m->kernels->of[HP_F16]->narrow((uint16_t *)(void *)at, f->weight + from, 1);
        else
            memcpy(at, f->weight + from, sizeof *f->weight);
    }
}

/* Packs one row of taps for the panel of outputs first .. first + width. */
static unsigned char *pack_row(const hp_matrix *m, unsigned char *to, const hp_filter *f, const canonical *c,
                               int64_t from, int first, int width) {
    const hp_panels *p = &m->p;
    const int n = p->outs - first < width ? p->outs - first : width, step = p->dot * p->weight;
    for (int64_t e = 0; e < (int64_t)p->row_steps * p->dot; e++) {
        const int64_t at = element_at(p, c, e);
        unsigned char *element = to + e / p->dot * width * step + e % p->dot * p->weight;
        if (at >= 0) store_weights(m, element, step, f, from + at, c->out, n);
    }
    return to + (int64_t)p->row_steps * width * step;
}

static void pack_panels(const hp_matrix *m, unsigned char *to, const hp_filter *f) {
    const hp_panels *p = &m->p;
    for (int g = 0; g < p->groups; g++) {
        const canonical c = canonical_of(p, g);
        for (int o = 0; o < p->padded; o += HP_PANEL_OUTS) {
            const int width = p->padded - o < HP_PANEL_OUTS ? p->padded - o : HP_PANEL_OUTS;
            for (int ky = 0; ky < p->kh; ky++)
                to = pack_row(m, to, f, &c, c.first + o * c.out + ky * c.row, o, width);
        }
    }
}

/* (tap, channel) */
static void pack_depthwise(const hp_matrix *m, unsigned char *to, const hp_filter *f) {
    const hp_panels *p = &m->p;
    const int taps = p->kh * p->kw;
    if (f->weight8) {
        m->kernels->of[HP_U8]->pack_depthwise((int8_t *)to, f->weight8, p->outs, p->kh, p->kw);
        return;
    }
    for (int k = 0; k < taps; k++)
        store_weights(m, to + (int64_t)k * p->padded * p->weight, p->weight, f, k, taps, p->outs);
}

/* --- terms per output --- */

static int32_t *terms_at(const hp_bound *b, int64_t place) {
    return (int32_t *)(void *)((unsigned char *)b->pack.forward + place);
}

/* Index of an output among the padded ones. */
static int64_t padded_at(const hp_panels *p, int output) {
    return (int64_t)(output / p->outs) * p->padded + output % p->outs;
}

/* Sum of a tap's weights over an output's inputs; for raw pixels, each times its channel's zero point. */
static double tap_sum(const hp_matrix *m, const hp_filter *f, int output, int tap) {
    const hp_panels *p = &m->p;
    const canonical c = canonical_of(p, output / p->outs);
    const int8_t *w = f->weight8 + c.first + output % p->outs * c.out + tap;
    double sum = 0;
    for (int i = 0; i < p->ins; i++) {
        const int channel = (p->depthwise ? output : output / p->outs * p->ins + i) % 4;
        sum += w[i * c.in] * (m->units.pixels ? (double)m->units.pixel_zero[channel] : 1);
    }
    return sum;
}

static void pack_sums(const hp_matrix *m, const hp_bound *b, const hp_filter *f, int output) {
    const hp_panels *p = &m->p;
    const int64_t at = padded_at(p, output), all = (int64_t)p->groups * p->padded;
    const int taps = p->kh * p->kw, each = taps / p->sums;
    for (int k = 0; k < p->sums; k++) {
        double sum = 0;
        for (int i = 0; i < each; i++) sum += tap_sum(m, f, output, k * each + i);
        int32_t *to = terms_at(b, m->at.sums) + k * all + at;
        if (m->units.pixels)
            *(float *)(void *)to = (float)sum;
        else
            *to = (int32_t)sum;
    }
}

static void pack_terms(const hp_matrix *m, const hp_bound *b, const hp_filter *f) {
    float *scale = (float *)(void *)terms_at(b, m->at.scale),
          *shift = (float *)(void *)terms_at(b, m->at.shift),
          *bias = (float *)(void *)terms_at(b, m->at.bias);
    for (int o = 0; o < m->p.groups * m->p.outs; o++) {
        const int64_t at = padded_at(&m->p, o);
        const float bias_of = f->bias ? f->bias[o] : 0.0f;
        if (!hp_panels_quantised(&m->p)) {
            bias[at] = bias_of;
            continue;
        }
        scale[at] = hp_matrix_scale(&m->units, f->weight_scale[o]);
        shift[at] = hp_matrix_shift(&m->units, bias_of);
        pack_sums(m, b, f, o);
    }
}

hp_status hp_matrix_pack(hp_infer *in, const hp_bound *b, const hp_matrix *m, hp_error *err) {
    hp_filter f;
    if (in->packed[b->layer_id]) return HP_OK;
    HP_TRY(hp_constants_filter(in->config->constants, b->layer_id, b->shape.oc0, b->shape.oc,
                               hp_panels_quantised(&m->p), &f, err));
    memset(b->pack.forward, 0, (size_t)m->at.bytes);
    (m->p.depthwise ? pack_depthwise : pack_panels)(m, b->pack.forward, &f);
    pack_terms(m, b, &f);
    in->packed[b->layer_id] = true;
    return HP_OK;
}
