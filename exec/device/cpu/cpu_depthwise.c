/* cpu_depthwise.c - runs depthwise convolutions: bytes a map at a time; floats row by row, in classes of
 * pixels that read the same taps. */
#include "exec/device/cpu/cpu_matrix.h"

/* --- bytes --- */

static void run_bytes(const hp_matrix *m, const hp_bound *b) {
    const unsigned char *pack = b->pack.forward;
    const int32_t *sum = (const int32_t *)(const void *)(pack + m->at.sums);
    int32_t *init = b->scratch.at;
    for (int32_t o = 0; o < m->p.padded; o++) {
        init[o] = 0;
        for (int k = 0; k < m->p.sums; k++) init[o] -= m->units.in_zero * sum[(int64_t)k * m->p.padded + o];
    }
    m->kernels->of[HP_U8]->depthwise_bytes(&(hp_depthwise_map){.x = b->x[0],
                                                               .y = b->y,
                                                               .shape = &b->shape,
                                                               .zero = (uint8_t)m->units.in_zero,
                                                               .weights = (const int8_t *)pack,
                                                               .init = init,
                                                               .scale = m->scale,
                                                               .shift = m->shift,
                                                               .out = &m->out});
}

/* --- floats --- */

static hp_depthwise_row row_of(const hp_matrix *m, const hp_bound *b, const hp_axis_group *row,
                               const hp_axis_group *col) {
    const hp_shape *s = &b->shape;
    const unsigned char *pack = b->pack.forward;
    const int64_t pixel = (int64_t)s->ic * m->p.elem;
    return (hp_depthwise_row){.pixels = col->n,
                              .channels = s->oc,
                              .kw = m->p.kw,
                              .tap_y = row->tap,
                              .taps_y = col->taps ? row->taps : 0,
                              .tap_x = col->tap,
                              .taps_x = row->taps ? col->taps : 0,
                              .pixel_step = col->in_step * pixel,
                              .x_step = s->dw * pixel,
                              .y_step = (int64_t)s->dh * s->iw * pixel,
                              .weights = pack,
                              .init = (const float *)(const void *)(pack + m->at.bias),
                              .out = &m->out};
}

static void run_class(const hp_matrix *m, const hp_bound *b, const hp_axis_group *row,
                      const hp_axis_group *col) {
    const hp_shape *s = &b->shape;
    const int64_t x_pixel = (int64_t)s->ic * m->p.elem,
                  y_pixel = (int64_t)s->oc * hp_dtype_bytes(m->out.op.y.dtype);
    hp_depthwise_row r = row_of(m, b, row, col);
    for (int64_t n = 0; n < s->n; n++)
        for (int i = 0; i < row->n; i++) {
            const int64_t iy = row->in + (int64_t)i * row->in_step, oy = row->out + i;
            r.x = (const unsigned char *)b->x[0] + ((n * s->ih + iy) * s->iw + col->in) * x_pixel;
            r.y = (unsigned char *)b->y + ((n * s->oh + oy) * s->ow + col->out) * y_pixel;
            m->kernels->of[m->p.x]->depthwise(&r);
        }
}

void hp_matrix_run_depthwise(const hp_matrix *m, const hp_bound *b) {
    if (hp_panels_quantised(&m->p)) {
        run_bytes(m, b);
        return;
    }
    for (int r = 0; r < m->rows.n; r++)
        for (int k = 0; k < m->cols.n; k++) run_class(m, b, &m->rows.group[r], &m->cols.group[k]);
}
