/* loops_point.h - element by element: activation, conversion, sum and product of two maps. */
#ifndef HP_LOOPS_POINT_H
#define HP_LOOPS_POINT_H

/* Bounds of an activation that is a clamp, and of a byte, in units of its scale from its zero. */
typedef struct byte_range {
    float lo, hi;
    int32_t zero;
} byte_range;

static float within(float v, float lo, float hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

static byte_range range_of(const hp_infer_op *o) {
    const float first = (float)-o->y.zero, last = (float)(255 - o->y.zero);
    return (byte_range){within((float)o->lo * o->y.inverse, first, last),
                        within((float)o->hi * o->y.inverse, first, last), o->y.zero};
}

static inline uint8_t byte_of(float v, byte_range r) {
    return saturated(v, r.lo, r.hi, r.zero);
}

static void point_act(const hp_infer_op *o, const hp_bound *b) {
    real room[ROW];
    if (o->recode[0]) {
        recode_bytes(b->y, b->x[0], b->out_elems, o->recode[0]);
        return;
    }
    for (int64_t at = 0; at < b->out_elems; at += ROW) {
        const int64_t n = lesser(ROW, b->out_elems - at);
        real *y = place(room, b->y, at, &o->y);
        put(b->y, at, activated(y, view(y, b->x[0], at, n, &o->x[0]), n, o), n, &o->y);
    }
}

static void point_tabulate(const hp_infer_op *o, int k, uint8_t table[256]) {
    real room[256];
    uint8_t byte[256];
    for (int i = 0; i < 256; i++) byte[i] = (uint8_t)i;
    load_bytes(room, byte, 256, &o->x[k]);
    store_bytes(table, activated(room, room, 256, o), 256, &o->y);
}

/* --- two maps --- */

static void add_bytes(uint8_t *y, const uint8_t *p, const uint8_t *q, int64_t n, const hp_infer_op *o) {
    const float f = o->x[0].scale * o->y.inverse, g = o->x[1].scale * o->y.inverse;
    const int32_t p0 = o->x[0].zero, q0 = o->x[1].zero;
    const byte_range r = range_of(o);
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = byte_of(f * (float)(p[i] - p0) + g * (float)(q[i] - q0), r);
}

/* The activation is a clamp, or follows. */
static void add_row(real *y, const real *p, const real *q, int64_t n, const hp_infer_op *o) {
    const real lo = (real)o->lo, hi = (real)o->hi;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = clamped(p[i] + q[i], lo, hi);
}

static void multiply_row(real *y, const real *p, const real *q, int64_t n, const hp_infer_op *o) {
    const real lo = (real)o->lo, hi = (real)o->hi;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = clamped(p[i] * q[i], lo, hi);
}

typedef void pair_fn(real *y, const real *p, const real *q, int64_t n, const hp_infer_op *o);

static void point_pair(const hp_infer_op *o, const hp_bound *b, pair_fn *pair) {
    real room[3][ROW];
    for (int64_t at = 0; at < b->out_elems; at += ROW) {
        const int64_t n = lesser(ROW, b->out_elems - at);
        const real *p = view(room[0], b->x[0], at, n, &o->x[0]), *q = view(room[1], b->x[1], at, n, &o->x[1]);
        real *y = place(room[2], b->y, at, &o->y);
        pair(y, p, q, n, o);
        if (!o->clamps) activated(y, y, n, o);
        put(b->y, at, y, n, &o->y);
    }
}

static void point_add(const hp_infer_op *o, const hp_bound *b) {
    const bool bytes = o->x[0].dtype == HP_U8 && o->x[1].dtype == HP_U8 && o->y.dtype == HP_U8;
    if (bytes && o->clamps)
        add_bytes(b->y, b->x[0], b->x[1], b->out_elems, o);
    else
        point_pair(o, b, add_row);
}

#endif
