/* loops_affine.h - a factor and a bias per channel: batch norm, scale, the product with a vector, raw pixels.
 */
#ifndef HP_LOOPS_AFFINE_H
#define HP_LOOPS_AFFINE_H

/* Factors of successive elements: those of all channels, as often as they fit side by side, or, of more
 * channels than that, those from one channel on. */
typedef struct channel_row {
    real factor[ROW], bias[ROW];
} channel_row;

static void repeat(real *to, const real *from, int64_t channels, int64_t n) {
    for (int64_t i = 0; i < n; i += channels) memcpy(to + i, from, (size_t)channels * sizeof *to);
}

/* One map's elements, what its factors are, and in which units they are wanted. */
typedef struct affine {
    const void *factor, *bias; /* per channel; bias NULL: zeros */
    hp_qparams of_factor;      /* the bias is float32 */
    int64_t channels;
    real factor_unit, bias_unit; /* both are multiplied with */
} affine;

static const hp_qparams plain_floats = {HP_F32, 0, 0, 0};

static void load_channels(real *to, const void *from, int64_t first, int64_t n, const hp_qparams *l,
                          real unit) {
    const real *v = view(to, from, first, n, l);
    for (int64_t i = 0; i < n; i++) to[i] = unit * v[i];
}

/* Factors of n elements from channel `first` on. */
static void fill_channels(channel_row *r, const affine *a, int64_t first, int64_t n) {
    const int64_t once = lesser(a->channels, n);
    memset(r->bias, 0, (size_t)n * sizeof *r->bias);
    load_channels(r->factor, a->factor, first, once, &a->of_factor, a->factor_unit);
    if (a->bias) load_channels(r->bias, a->bias, first, once, &plain_floats, a->bias_unit);
    if (once == n) return;
    repeat(r->factor + once, r->factor, once, n - once);
    repeat(r->bias + once, r->bias, once, n - once);
}

/* How many elements from `at` on go together. */
static int64_t affine_step(const affine *a, int64_t at, int64_t n) {
    if (a->channels <= ROW) return lesser(ROW / a->channels * a->channels, n - at);
    return lesser(ROW, a->channels - at % a->channels);
}

typedef void affine_fn(const hp_infer_op *o, const hp_bound *b, int64_t at, int64_t n, const channel_row *r);

static void affine_bytes(const hp_infer_op *o, const hp_bound *b, int64_t at, int64_t n,
                         const channel_row *c) {
    const byte_range r = range_of(o);
    const uint8_t *x = (const uint8_t *)b->x[0] + at;
    uint8_t *y = (uint8_t *)b->y + at;
    const int32_t zero = o->x[0].zero;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = byte_of((float)(c->factor[i] * (real)(x[i] - zero) + c->bias[i]), r);
}

static void affine_row(real *y, const real *x, const real *added, int64_t n, const channel_row *c,
                       const hp_infer_op *o) {
    const real lo = (real)o->lo, hi = (real)o->hi;
    if (added) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) y[i] = clamped(x[i] * c->factor[i] + c->bias[i] + added[i], lo, hi);
    } else {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) y[i] = clamped(x[i] * c->factor[i] + c->bias[i], lo, hi);
    }
}

static void affine_reals(const hp_infer_op *o, const hp_bound *b, int64_t at, int64_t n,
                         const channel_row *c) {
    real room[3][ROW];
    const real *x = view(room[0], b->x[0], at, n, &o->x[0]),
               *added = o->adds ? view(room[1], b->x[1], at, n, &o->x[1]) : NULL;
    real *y = place(room[2], b->y, at, &o->y);
    affine_row(y, x, added, n, c, o);
    if (!o->clamps) activated(y, y, n, o);
    put(b->y, at, y, n, &o->y);
}

/* Elements first .. first + n of the map; n is whole pixels. */
static void affine_map(const hp_infer_op *o, const hp_bound *b, int64_t first, int64_t n, const affine *a,
                       affine_fn *fn) {
    channel_row r;
    for (int64_t at = 0, step; at < n; at += step) {
        step = affine_step(a, at, n);
        if (at == 0 || a->channels > ROW) fill_channels(&r, a, at % a->channels, step);
        fn(o, b, first + at, step, &r);
    }
}

static affine_fn *affine_of(const hp_infer_op *o, affine *a) {
    const bool bytes = o->x[0].dtype == HP_U8 && o->y.dtype == HP_U8;
    a->factor_unit = a->bias_unit = 1;
    if (!bytes || !o->clamps || o->adds) return affine_reals;
    a->factor_unit = (real)(o->x[0].scale * o->y.inverse);
    a->bias_unit = (real)o->y.inverse;
    return affine_bytes;
}

static void affine_run(const hp_infer_op *o, const hp_bound *b) {
    affine a = {.factor = o->factor, .bias = o->bias, .of_factor = plain_floats, .channels = b->shape.oc};
    if (!o->factor)
        point_act(o, b); /* to real, all channels alike */
    else
        affine_map(o, b, 0, b->out_elems, &a, affine_of(o, &a));
}

static void affine_mul(const hp_infer_op *o, const hp_bound *b) {
    const int channels = b->shape.oc;
    affine a = {.of_factor = o->x[1], .channels = channels};
    affine_fn *fn = affine_of(o, &a);
    if (!o->vector) {
        point_pair(o, b, multiply_row);
        return;
    }
    const int64_t map = (int64_t)b->shape.oh * b->shape.ow * channels;
    for (int64_t n = 0; n < b->shape.n; n++) {
        a.factor = (const char *)b->x[1] + n * channels * element_bytes(&o->x[1]);
        affine_map(o, b, n * map, map, &a, fn);
    }
}

#endif
