/* loops_move.h - elements that stay what they are, in another place: concatenation and padding. */
#ifndef HP_LOOPS_MOVE_H
#define HP_LOOPS_MOVE_H

static void convert_run(const hp_infer_op *o, int k, void *y, int64_t to, const void *x, int64_t from,
                        int64_t n) {
    real room[ROW];
    for (int64_t i = 0; i < n; i += ROW) {
        const int64_t count = lesser(ROW, n - i);
        const real *row = activated(room, view(room, x, from + i, count, &o->x[k]), count, o);
        put(y, to + i, row, count, &o->y);
    }
}

/* n elements of input k, from element `from` on, to the output, from `to` on. */
static void move_run(const hp_infer_op *o, int k, void *y, int64_t to, const void *x, int64_t from,
                     int64_t n) {
    const int bytes = element_bytes(&o->y);
    if (o->same[k])
        memcpy((char *)y + to * bytes, (const char *)x + from * bytes, (size_t)(n * bytes));
    else if (o->recode[k])
        recode_bytes((uint8_t *)y + to, (const uint8_t *)x + from, n, o->recode[k]);
    else
        convert_run(o, k, y, to, x, from, n);
}

static void move_concat(const hp_infer_op *o, const hp_bound *b) {
    const int channels = b->shape.oc;
    for (int64_t pixel = 0; pixel * channels < b->out_elems; pixel++)
        for (int k = 0; k < b->n_in; k++)
            if (b->x[k] && b->in_c[k] > 0)
                move_run(o, k, b->y, pixel * channels + b->in_at[k], b->x[k], pixel * b->in_c[k], b->in_c[k]);
}

/* --- padding --- */

/* Real zeros. */
static void fill_zeros(const hp_infer_op *o, void *y, int64_t at, int64_t n) {
    const int bytes = element_bytes(&o->y);
    if (n > 0) memset((char *)y + at * bytes, o->y.dtype == HP_U8 ? o->y.zero : 0, (size_t)(n * bytes));
}

/* Output row of `row` elements at `at`; its pixels begin .. end come from the input, from element `from` on.
 */
static void pad_row(const hp_infer_op *o, const hp_bound *b, int64_t at, int64_t from, int64_t begin,
                    int64_t end) {
    const int64_t channels = b->shape.oc, row = b->shape.ow * channels;
    fill_zeros(o, b->y, at, begin * channels);
    if (end > begin) move_run(o, 0, b->y, at + begin * channels, b->x[0], from, (end - begin) * channels);
    fill_zeros(o, b->y, at + end * channels, row - end * channels);
}

static void move_pad(const hp_infer_op *o, const hp_bound *b) {
    const hp_shape *s = &b->shape;
    const int64_t begin = s->pw < 0 ? 0 : lesser(s->pw, s->ow), last = lesser(s->pw + (int64_t)s->iw, s->ow),
                  end = last > begin ? last : begin, row = (int64_t)s->ow * s->oc;
    for (int64_t r = 0; r < s->n * s->oh; r++) {
        const int64_t iy = r % s->oh - s->ph, in_row = r / s->oh * s->ih + iy;
        const bool inside = iy >= 0 && iy < s->ih;
        pad_row(o, b, r * row, (in_row * s->iw + begin - s->pw) * s->oc, begin, inside ? end : begin);
    }
}

#endif
