/* loops_pool.h - maximum and mean over windows, all channels of a pixel side by side. Windows are those of
 * the whole map: what an output is does not depend on the box it is computed in. */
#ifndef HP_LOOPS_POOL_H
#define HP_LOOPS_POOL_H

/* --- maximum --- */

/* Taps first .. end of a window of output `o` that lie in the box along one axis. */
typedef struct tap_range {
    int first, end, at; /* tap t reads item at + t * dil */
} tap_range;

static tap_range taps_of(int o, int in, int k, int stride, int pad, int dil) {
    tap_range t = {0, k, o * stride - pad};
    if (t.at < 0) t.first = (-t.at + dil - 1) / dil;
    if (in - t.at <= 0)
        t.end = 0;
    else if ((in - 1 - t.at) / dil + 1 < k)
        t.end = (in - 1 - t.at) / dil + 1;
    return t;
}

static inline uint8_t larger_byte(uint8_t p, uint8_t q) {
    return p > q ? p : q;
}

/* Three taps at once: y is read and written less. */
static void max_bytes(uint8_t *y, const uint8_t *p, const uint8_t *q, const uint8_t *r, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = larger_byte(larger_byte(y[i], p[i]), larger_byte(q[i], r[i]));
}

static void max_reals(real *y, const real *x, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > y[i] ? x[i] : y[i];
}

/* First element of the pixel that taps (ky, kx) read. */
static int64_t tap_at(const hp_shape *s, int64_t image, tap_range rows, tap_range cols, int ky, int kx) {
    return image + ((int64_t)(rows.at + ky * s->dh) * s->iw + cols.at + kx * s->dw) * s->ic;
}

/* Channels first .. first + n of one output, as numbers. */
static void max_numbers(const hp_infer_op *o, const hp_bound *b, int64_t image, tap_range rows,
                        tap_range cols, int64_t first, int64_t n, real *y) {
    real room[ROW];
    for (int64_t i = 0; i < n; i++) y[i] = -(real)INFINITY;
    for (int ky = rows.first; ky < rows.end; ky++)
        for (int kx = cols.first; kx < cols.end; kx++) {
            const int64_t at = tap_at(&b->shape, image, rows, cols, ky, kx) + first;
            max_reals(y, view(room, b->x[0], at, n, &o->x[0]), n);
        }
}

static void max_pixel(const hp_infer_op *o, const hp_bound *b, int64_t image, tap_range rows, tap_range cols,
                      int64_t to) {
    real room[ROW];
    for (int64_t c = 0; c < b->shape.oc; c += ROW) {
        const int64_t n = lesser(ROW, b->shape.oc - c);
        real *y = place(room, b->y, to + c, &o->y);
        max_numbers(o, b, image, rows, cols, c, n, y);
        put(b->y, to + c, y, n, &o->y);
    }
}

/* The same, bytes from bytes: the largest byte is the largest number. */
static void max_pixel_bytes(const hp_infer_op *o, const hp_bound *b, int64_t image, tap_range rows,
                            tap_range cols, int64_t to) {
    uint8_t *y = (uint8_t *)b->y + to;
    const int64_t n = b->shape.oc, step = (int64_t)b->shape.dw * b->shape.ic;
    memset(y, 0, (size_t)n);
    for (int ky = rows.first; ky < rows.end; ky++)
        for (int kx = cols.first; kx < cols.end; kx += 3) { /* beyond the last tap: the last again */
            const int64_t left = cols.end - 1 - kx, second = left > 0 ? step : 0,
                          third = lesser(left, 2) * step;
            const uint8_t *x = (const uint8_t *)b->x[0] + tap_at(&b->shape, image, rows, cols, ky, kx);
            max_bytes(y, x, x + second, x + third, n);
        }
    if (o->recode[0]) recode_bytes(y, y, n, o->recode[0]);
}

static void pool_max(const hp_infer_op *o, const hp_bound *b) {
    const hp_shape *s = &b->shape;
    const bool bytes = o->same[0] ? o->y.dtype == HP_U8 : o->recode[0] != NULL;
    int64_t to = 0;
    for (int64_t row = 0; row < s->n * s->oh; row++) {
        const tap_range rows = taps_of((int)(row % s->oh), s->ih, s->kh, s->sh, s->ph, s->dh);
        const int64_t image = row / s->oh * s->ih * s->iw * s->ic;
        for (int ox = 0; ox < s->ow; ox++, to += s->oc) {
            const tap_range cols = taps_of(ox, s->iw, s->kw, s->sw, s->pw, s->dw);
            (bytes ? max_pixel_bytes : max_pixel)(o, b, image, rows, cols, to);
        }
    }
}

/* --- mean --- */

/* One axis of a pooling layer between two boxes. */
typedef struct mean_axis {
    int64_t in, in0, full_in, out0, full_out; /* lengths and first items of the boxes, whole lengths */
    int64_t kernel, stride, pad, end;         /* kernel 0: adaptive; end: where padding ends */
    bool counts_pad;
} mean_axis;

/* Items from .. to of the box that an output averages, and how many it counts. */
typedef struct mean_span {
    int64_t from, to, count;
} mean_span;

static mean_axis mean_axis_of(const hp_bound *b, bool rows) {
    const hp_shape *s = &b->shape;
    const hp_layer *l = b->layer;
    const bool windows = l->op == HP_AVGPOOL;
    const int pad = rows ? l->pad_h : l->pad_w, sized = rows ? l->out_h : l->out_w;
    mean_axis a = {.pad = pad, .counts_pad = windows && l->count_include_pad};
    a.in = rows ? s->ih : s->iw;
    a.in0 = rows ? s->iy0 : s->ix0;
    a.full_in = rows ? s->full_ih : s->full_iw;
    a.out0 = rows ? s->oy0 : s->ox0;
    a.full_out = rows ? s->full_oh : s->full_ow;
    a.kernel = !windows ? 0 : rows ? s->kh : s->kw;
    a.stride = rows ? s->sh : s->sw;
    a.end = sized > 0 ? INT64_MAX : a.full_in + pad; /* of a size that is given, padding is what it takes */
    return a;
}

static mean_span mean_span_of(const mean_axis *a, int64_t o) {
    o += a->out0;
    const int64_t first = a->kernel ? o * a->stride - a->pad : o * a->full_in / a->full_out,
                  last = a->kernel ? lesser(first + a->kernel, a->end)
                                   : ((o + 1) * a->full_in + a->full_out - 1) / a->full_out;
    mean_span m = {first - a->in0, lesser(last - a->in0, a->in), 0};
    if (m.from < 0) m.from = 0;
    m.count = a->counts_pad ? last - first : m.to - m.from;
    return m;
}

enum {
    FEW = 1 << 22, /* bytes that are summed in 32 bits */
    WIDE = 16      /* pixels of a row from which on its sum is taken on its own: less rounding */
};

/* A window: where its image begins, its rows and columns, the channels first .. first + n. */
typedef struct mean_window {
    int64_t image, first, n;
    mean_span rows, cols;
} mean_window;

static int64_t window_at(const hp_bound *b, const mean_window *w, int64_t iy, int64_t ix) {
    return w->image + (iy * b->shape.iw + ix) * b->shape.ic + w->first;
}

static void add_bytes_of_rows(int32_t *sum, const hp_bound *b, const mean_window *w, int64_t from,
                              int64_t to) {
    for (int64_t iy = from; iy < to; iy++)
        for (int64_t ix = w->cols.from; ix < w->cols.to; ix++) {
            const uint8_t *x = (const uint8_t *)b->x[0] + window_at(b, w, iy, ix);
            INDEPENDENT
            for (int64_t c = 0; c < w->n; c++) sum[c] += x[c];
        }
}

static int64_t width_of(const mean_window *w) {
    return w->cols.to - w->cols.from;
}

static void mean_few_bytes(real *y, const hp_bound *b, const mean_window *w, int32_t zeros, real factor) {
    int32_t sum[ROW];
    memset(sum, 0, (size_t)w->n * sizeof *sum);
    add_bytes_of_rows(sum, b, w, w->rows.from, w->rows.to);
    INDEPENDENT
    for (int64_t c = 0; c < w->n; c++) y[c] = (real)(sum[c] - zeros) * factor;
}

static void mean_many_bytes(real *y, const hp_bound *b, const mean_window *w, int64_t zeros, real factor) {
    int32_t part[ROW];
    int64_t sum[ROW];
    const int64_t block = width_of(w) < FEW ? FEW / width_of(w) : 1;
    memset(sum, 0, (size_t)w->n * sizeof *sum);
    for (int64_t iy = w->rows.from; iy < w->rows.to; iy += block) {
        memset(part, 0, (size_t)w->n * sizeof *part);
        add_bytes_of_rows(part, b, w, iy, lesser(iy + block, w->rows.to));
        for (int64_t c = 0; c < w->n; c++) sum[c] += part[c];
    }
    for (int64_t c = 0; c < w->n; c++) y[c] = (real)(sum[c] - zeros) * factor;
}

/* Whole numbers: exact, in any order. */
static void mean_bytes(real *y, const hp_bound *b, const mean_window *w, const hp_qparams *l, int64_t count) {
    const int64_t pixels = width_of(w) * (w->rows.to - w->rows.from);
    const real factor = (real)l->scale / (real)count;
    if (pixels <= FEW)
        mean_few_bytes(y, b, w, (int32_t)(pixels * l->zero), factor);
    else
        mean_many_bytes(y, b, w, pixels * l->zero, factor);
}

static void add_reals(real *sum, const real *x, int64_t n) {
    INDEPENDENT
    for (int64_t c = 0; c < n; c++) sum[c] += x[c];
}

static void mean_reals(real *y, const hp_infer_op *o, const hp_bound *b, const mean_window *w,
                       int64_t count) {
    real room[ROW], part[ROW];
    const bool wide = width_of(w) >= WIDE;
    const real factor = 1 / (real)count;
    memset(y, 0, (size_t)w->n * sizeof *y);
    for (int64_t iy = w->rows.from; iy < w->rows.to; iy++) {
        real *sum = wide ? part : y;
        if (wide) memset(part, 0, (size_t)w->n * sizeof *part);
        for (int64_t ix = w->cols.from; ix < w->cols.to; ix++)
            add_reals(sum, view(room, b->x[0], window_at(b, w, iy, ix), w->n, &o->x[0]), w->n);
        if (wide) add_reals(y, part, w->n);
    }
    for (int64_t c = 0; c < w->n; c++) y[c] *= factor;
}

static void mean_pixel(const hp_infer_op *o, const hp_bound *b, mean_window *w, int64_t to) {
    real room[ROW];
    const int64_t count = w->rows.count * w->cols.count;
    for (w->first = 0; w->first < b->shape.oc; w->first += ROW) {
        w->n = lesser(ROW, b->shape.oc - w->first);
        real *y = place(room, b->y, to + w->first, &o->y);
        if (o->x[0].dtype == HP_U8)
            mean_bytes(y, b, w, &o->x[0], count);
        else
            mean_reals(y, o, b, w, count);
        put(b->y, to + w->first, y, w->n, &o->y);
    }
}

static void pool_mean(const hp_infer_op *o, const hp_bound *b) {
    const hp_shape *s = &b->shape;
    const mean_axis rows = mean_axis_of(b, true), cols = mean_axis_of(b, false);
    int64_t to = 0;
    for (int64_t row = 0; row < s->n * s->oh; row++) {
        mean_window w = {.image = row / s->oh * s->ih * s->iw * s->ic,
                         .rows = mean_span_of(&rows, row % s->oh)};
        for (int ox = 0; ox < s->ow; ox++, to += s->oc) {
            w.cols = mean_span_of(&cols, ox);
            mean_pixel(o, b, &w, to);
        }
    }
}

#endif
