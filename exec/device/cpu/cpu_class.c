/* cpu_class.c - initial values and shifts of the sums of a class of pixels: the zero point's share
 * of the taps inside the map. Padding is a real zero, which the zero byte of raw pixels or of other
 * zero points is not. */
#include "exec/device/cpu/cpu_matrix.h"

#include <string.h>

static const unsigned char *pack_at(const hp_bound *b, int64_t place) {
    return (const unsigned char *)b->pack.forward + place;
}

/* to[o] = sum over the class's taps of the pack's value per tap, in order: integers, or
 * floats for raw pixels. */
static void sum_taps(const hp_matrix *m, const hp_bound *b, const hp_matrix_class *c, void *to,
                     int64_t outs) {
    const bool single = m->p.sums == 1, none = c->row->taps == 0 || c->col->taps == 0;
    memset(to, 0, (size_t)outs * 4);
    for (int y = 0; y < c->row->taps; y++)
        for (int x = 0; x < c->col->taps; x++) {
            const int64_t tap =
                (int64_t)(c->row->tap + y * c->row->tap_step) * m->p.kw + c->col->tap + x * c->col->tap_step;
            const void *from = pack_at(b, m->at.sums + (single ? 0 : tap) * outs * 4);
            const int32_t *whole = from;
            const float *real = from;
            if (none || (single && (x || y))) continue;
            if (m->units.pixels)
                for (int64_t o = 0; o < outs; o++) ((float *)to)[o] += real[o];
            else
                for (int64_t o = 0; o < outs; o++) ((int32_t *)to)[o] += whole[o];
        }
}

hp_matrix_class hp_matrix_class_of(const hp_matrix *m, const hp_bound *b, const hp_axis_group *row,
                                   const hp_axis_group *col) {
    const int64_t outs = (int64_t)m->p.groups * m->p.padded;
    hp_matrix_class c = {row, col, pack_at(b, m->at.bias), NULL};
    if (!hp_panels_quantised(&m->p)) return c;
    int32_t *init = b->scratch.at;
    float *share = (float *)b->scratch.at + outs;
    memset(init, 0, (size_t)outs * sizeof *init);
    c.init = init;
    c.shift = m->shift;
    if (m->units.pixels) {
        sum_taps(m, b, &c, share, outs);
        for (int64_t o = 0; o < outs; o++) share[o] = __builtin_fmaf(-m->scale[o], share[o], m->shift[o]);
        c.shift = share;
    } else if (m->units.in_zero) {
        sum_taps(m, b, &c, init, outs);
        for (int64_t o = 0; o < outs; o++) init[o] *= -m->units.in_zero;
    }
    return c;
}
