/* loops_resize.h - nearest and linear interpolation; each pixel from the pixels of the whole map that
 * plan/graph/resample.h names. */
#ifndef HP_LOOPS_RESIZE_H
#define HP_LOOPS_RESIZE_H

#include "plan/graph/resample.h"

/* Output row y of a sample: rows of the input, and where in the buffers they lie. */
typedef struct resize_row {
    hp_resample from;
    int64_t lo, hi, to; /* first elements */
} resize_row;

static int64_t input_row(const hp_shape *s, int64_t sample, int64_t y) {
    return (sample * s->ih + y - s->iy0) * s->iw * s->ic;
}

static void nearest_row(const hp_infer_op *o, const hp_bound *b, const resize_row *r) {
    const hp_shape *s = &b->shape;
    for (int x = 0; x < s->ow; x++) {
        const int from = hp_resample_at(b->layer, s->full_iw, s->full_ow, s->ox0 + x).lo - s->ix0;
        move_run(o, 0, b->y, r->to + (int64_t)x * s->oc, b->x[0], r->lo + (int64_t)from * s->ic, s->oc);
    }
}

static void blend(real *y, const real *p, const real *q, real weight, int64_t n) {
    const real rest = 1 - weight;
    if (weight == 0) {
        memcpy(y, p, (size_t)n * sizeof *y);
        return;
    }
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = rest * p[i] + weight * q[i];
}

/* Channels first .. first + n of one pixel: along its two rows, then between them. */
static void linear_pixel(const hp_infer_op *o, const hp_bound *b, const resize_row *r, hp_resample x,
                         int64_t to, int64_t first, int64_t n) {
    real room[2][ROW], row[2][ROW];
    const int64_t at[2] = {r->lo, r->hi}, lo = (int64_t)(x.lo - b->shape.ix0) * b->shape.ic + first,
                  hi = (int64_t)(x.hi - b->shape.ix0) * b->shape.ic + first;
    for (int k = 0; k < 2; k++)
        blend(row[k], view(room[0], b->x[0], at[k] + lo, n, &o->x[0]),
              view(room[1], b->x[0], at[k] + hi, n, &o->x[0]), (real)x.weight, n);
    real *y = place(room[0], b->y, to + first, &o->y);
    blend(y, row[0], row[1], (real)r->from.weight, n);
    put(b->y, to + first, y, n, &o->y);
}

static void linear_row(const hp_infer_op *o, const hp_bound *b, const resize_row *r) {
    const hp_shape *s = &b->shape;
    for (int x = 0; x < s->ow; x++) {
        const hp_resample at = hp_resample_at(b->layer, s->full_iw, s->full_ow, s->ox0 + x);
        for (int64_t c = 0; c < s->oc; c += ROW)
            linear_pixel(o, b, r, at, r->to + (int64_t)x * s->oc, c, lesser(ROW, s->oc - c));
    }
}

/* A row like the one above it is copied. */
static bool repeat_row(const hp_infer_op *o, const hp_bound *b, const resize_row *r,
                       const resize_row *above) {
    const int64_t row = (int64_t)b->shape.ow * b->shape.oc, bytes = element_bytes(&o->y);
    char *y = b->y;
    if (r->from.lo != above->from.lo || r->from.weight != 0 || above->from.weight != 0) return false;
    memcpy(y + r->to * bytes, y + above->to * bytes, (size_t)(row * bytes));
    return true;
}

static void resize_run(const hp_infer_op *o, const hp_bound *b) {
    const hp_shape *s = &b->shape;
    resize_row above = {.from.lo = -1};
    for (int64_t n = 0; n < s->n; n++, above.from.lo = -1)
        for (int64_t y = 0; y < s->oh; y++) {
            resize_row r = {.from = hp_resample_at(b->layer, s->full_ih, s->full_oh, s->oy0 + y),
                            .to = (n * s->oh + y) * s->ow * s->oc};
            r.lo = input_row(s, n, r.from.lo);
            r.hi = input_row(s, n, r.from.hi);
            if (!repeat_row(o, b, &r, &above))
                (b->layer->interpolation == HP_NEAREST ? nearest_row : linear_row)(o, b, &r);
            above = r;
        }
}

#endif
