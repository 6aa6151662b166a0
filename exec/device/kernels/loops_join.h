/* loops_join.h - concatenation, plain or with a factor and a bias per channel and an activation: each element
 * is read once, from the map it lies in, and written once, to its place among the others. */
#ifndef HP_LOOPS_JOIN_H
#define HP_LOOPS_JOIN_H

/* Channels whose length the compiler knows, and bytes of the output that are made of one input after another
 * before the next ones: they stay in a cache meanwhile. */
enum { COLUMN = 32, JOIN_BYTES = 1 << 17 };

/* --- the program's own type: pixel by pixel, so that the output is written from front to back --- */

static inline void join_column(real *y, const real *x, int64_t n, const float *factor, const float *bias,
                               real lo, real hi) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = clamped(x[i] * (real)factor[i] + (real)bias[i], lo, hi);
}

/* One pixel's channels of one input. */
static void join_reals(const hp_infer_op *o, const hp_bound *b, int64_t pixel, int k) {
    const real lo = (real)o->lo, hi = (real)o->hi;
    const int64_t n = b->in_c[k], at = b->in_at[k], whole = n / COLUMN * COLUMN;
    const real *x = (const real *)b->x[k] + pixel * n;
    real *y = (real *)b->y + pixel * b->shape.oc + at;
    const float *factor = o->factor + at, *bias = o->bias + at;
    for (int64_t c = 0; c < whole; c += COLUMN)
        join_column(y + c, x + c, COLUMN, factor + c, bias + c, lo, hi);
    if (whole < n) join_column(y + whole, x + whole, n - whole, factor + whole, bias + whole, lo, hi);
}

static void join_pixels(const hp_infer_op *o, const hp_bound *b) {
    for (int64_t pixel = 0; pixel * b->shape.oc < b->out_elems; pixel++)
        for (int k = 0; k < b->n_in; k++)
            if (b->x[k]) join_reals(o, b, pixel, k);
}

/* --- any stores and activation: rows of several pixels of one input --- */

/* Some pixels of one input. */
typedef struct join_part {
    int k;
    int64_t first, n; /* pixels */
    int64_t in_c, out_c, at;
} join_part;

static bool all_bytes(const hp_infer_op *o, int k) {
    return o->clamps && o->x[k].dtype == HP_U8 && o->y.dtype == HP_U8;
}

/* Rows of n bytes to where they belong: a length that the compiler knows is no call. */
static void spread(uint8_t *y, int64_t pitch, const uint8_t *row, int64_t pixels, int64_t n) {
    const int64_t whole = n / COLUMN * COLUMN;
    for (int64_t i = 0; i < pixels; i++, y += pitch, row += n) {
        for (int64_t c = 0; c < whole; c += COLUMN) memcpy(y + c, row + c, COLUMN);
        if (whole < n) memcpy(y + whole, row + whole, (size_t)(n - whole));
    }
}

static void join_bytes(const hp_infer_op *o, const hp_bound *b, const join_part *p, int64_t c, int64_t n,
                       const channel_row *f) {
    uint8_t row[ROW];
    const byte_range r = range_of(o);
    const uint8_t *x = (const uint8_t *)b->x[p->k] + p->first * p->in_c + c;
    const int32_t zero = o->x[p->k].zero;
    INDEPENDENT
    for (int64_t i = 0; i < p->n * n; i++)
        row[i] = byte_of((float)(f->factor[i] * (real)(x[i] - zero) + f->bias[i]), r);
    spread((uint8_t *)b->y + p->first * p->out_c + p->at + c, p->out_c, row, p->n, n);
}

/* n channels from `c` on of some pixels; of several pixels all channels. */
static void join_rows(const hp_infer_op *o, const hp_bound *b, const join_part *p, int64_t c, int64_t n,
                      const channel_row *factors) {
    real room[2][ROW];
    if (all_bytes(o, p->k)) {
        join_bytes(o, b, p, c, n, factors);
        return;
    }
    const real *x = view(room[0], b->x[p->k], p->first * p->in_c + c, p->n * n, &o->x[p->k]);
    affine_row(room[1], x, NULL, p->n * n, factors, o);
    if (!o->clamps) activated(room[1], room[1], p->n * n, o);
    for (int64_t i = 0; i < p->n; i++)
        put(b->y, (p->first + i) * p->out_c + p->at + c, room[1] + i * n, n, &o->y);
}

static void join_part_of(const hp_infer_op *o, const hp_bound *b, const join_part *p) {
    enum { REPEATED = 512 }; /* elements */
    const bool bytes = all_bytes(o, p->k);
    const hp_qparams *l = &o->x[p->k];
    const affine a = {.factor = o->factor + p->at,
                      .bias = o->bias + p->at,
                      .of_factor = plain_floats,
                      .channels = p->in_c,
                      .factor_unit = bytes ? (real)(l->scale * o->y.inverse) : 1,
                      .bias_unit = bytes ? (real)o->y.inverse : 1};
    channel_row factors;
    for (int64_t c = 0; c < p->in_c; c += ROW) {
        const int64_t n = lesser(ROW, p->in_c - c), most = n == p->in_c && n < REPEATED ? REPEATED / n : 1,
                      pixels = lesser(most, p->n);
        fill_channels(&factors, &a, c, pixels * n);
        for (int64_t i = 0; i < p->n; i += pixels) {
            join_part some = *p;
            some.first = p->first + i;
            some.n = lesser(pixels, p->n - i);
            join_rows(o, b, &some, c, n, &factors);
        }
    }
}

static void join_parts(const hp_infer_op *o, const hp_bound *b) {
    const int64_t channels = b->shape.oc, pixels = b->out_elems / channels,
                  most = JOIN_BYTES / (channels * element_bytes(&o->y)), step = most > 1 ? most : 1;
    for (int64_t at = 0; at < pixels; at += step)
        for (int k = 0; k < b->n_in; k++) {
            const join_part p = {k, at, lesser(step, pixels - at), b->in_c[k], channels, b->in_at[k]};
            if (b->x[k] && p.in_c > 0) join_part_of(o, b, &p);
        }
}

static bool all_reals(const hp_infer_op *o, const hp_bound *b) {
    bool all = o->clamps && o->y.dtype == REAL_DTYPE;
    for (int k = 0; k < b->n_in; k++) all &= !b->x[k] || o->x[k].dtype == REAL_DTYPE;
    return all;
}

static void join_run(const hp_infer_op *o, const hp_bound *b) {
    if (!o->factor)
        move_concat(o, b);
    else
        (all_reals(o, b) ? join_pixels : join_parts)(o, b);
}

#endif
