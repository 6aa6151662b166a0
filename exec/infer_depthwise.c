/* infer_depthwise.c - runs a depthwise convolution row by row, class by class of pixels that read the same taps. */
#include "exec/infer_matrix.h"

static hp_depthwise_row row_of(const hp_matrix *m, const hp_bound *b, const hp_matrix_class *c) {
    const hp_shape *s = &b->shape;
    const unsigned char *pack = b->pack_forward;
    const int64_t pixel = (int64_t)s->ic * m->p.elem;
    const bool quantised = hp_panels_quantised(&m->p);
    return (hp_depthwise_row){.pixels = c->col->n,
                              .channels = s->oc,
                              .kh = m->p.kh,
                              .kw = m->p.kw,
                              .tap_y = c->row->tap,
                              .taps_y = c->col->taps ? c->row->taps : 0,
                              .tap_x = c->col->tap,
                              .taps_x = c->row->taps ? c->col->taps : 0,
                              .pixel_step = c->col->in_step * pixel,
                              .x_step = s->dw * pixel,
                              .y_step = (int64_t)s->dh * s->iw * pixel,
                              .weights = pack,
                              .init = c->init,
                              .scale = quantised ? (const float *)(const void *)(pack + m->at.scale) : NULL,
                              .shift = c->shift,
                              .out = &m->out};
}

static void run_class(const hp_matrix *m, const hp_bound *b, const hp_matrix_class *c) {
    const hp_shape *s = &b->shape;
    const int64_t x_pixel = (int64_t)s->ic * m->p.elem,
                  y_pixel = (int64_t)s->oc * hp_dtype_bytes(m->out.op.y.dtype);
    hp_depthwise_row r = row_of(m, b, c);
    for (int64_t n = 0; n < s->n; n++)
        for (int i = 0; i < c->row->n; i++) {
            const int64_t iy = c->row->in + (int64_t)i * c->row->in_step, oy = c->row->out + i;
            r.x = (const unsigned char *)b->x[0] + ((n * s->ih + iy) * s->iw + c->col->in) * x_pixel;
            r.y = (unsigned char *)b->y + ((n * s->oh + oy) * s->ow + c->col->out) * y_pixel;
            m->kernels->depthwise[m->p.x](&r);
        }
}

void hp_matrix_run_depthwise(const hp_matrix *m, const hp_bound *b) {
    for (int r = 0; r < m->rows.n; r++)
        for (int k = 0; k < m->cols.n; k++) {
            const hp_matrix_class c = hp_matrix_class_of(m, b, &m->rows.group[r], &m->cols.group[k]);
            run_class(m, b, &c);
        }
}
