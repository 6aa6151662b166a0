/* cpu_tokens.c - tasks that move pixels and their channels unchanged: rows of tables, class tokens,
 * crops, merged pixels. */
#include "exec/device/cpu/cpu_train.h"

#include <math.h>
#include <string.h>

static const hp_clamp no_clamp = {-INFINITY, INFINITY};

/* Overwrites a table's gradient, unless it is added to. */
static void clear(const hp_bound *b, int64_t n) {
    if (!(b->task->flags & HP_FLAG_ADD)) memset(b->grad[0], 0, (size_t)n * sizeof(float));
}

static int64_t table_elems(const hp_bound *b) {
    return b->graph->param[b->layer->param[0]].count;
}

/* --- embedding: all channels of a row, for the local rows of the table --- */

hp_status hp_cpu_embedding_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    const hp_extent here = hp_embedding_rows(b);
    const int64_t c = b->shape.oc;
    const float *id = b->x[0], *table = b->param[0];
    for (int64_t i = 0; i * c < b->out_elems; i++) {
        const int64_t row = hp_embedding_row(b, here, (double)id[i]);
        float *y = (float *)b->y + i * c;
        if (row < 0)
            memset(y, 0, (size_t)c * sizeof *y);
        else
            memcpy(y, table + row * c, (size_t)c * sizeof *y);
    }
    return HP_OK;
}

/* Lists the pixels of each row in order, so that the same ids give the same bits. Scratch: each row's first
 * pixel, each pixel's next (plan/memory/memory_device.c). */
static void list_pixels(const hp_bound *b, hp_extent here, int32_t *first, int32_t *next) {
    const int64_t pixels = b->out_elems / b->shape.oc;
    const float *id = b->x[0];
    for (int64_t r = 0; r < here.hi - here.lo; r++) first[r] = -1;
    for (int64_t i = pixels - 1; i >= 0; i--) {
        const int64_t row = hp_embedding_row(b, here, (double)id[i]);
        if (row < 0) continue;
        next[i] = first[row];
        first[row] = (int32_t)i;
    }
}

hp_status hp_cpu_embedding_bwdw(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const hp_extent here = hp_embedding_rows(b);
    const int c = b->shape.oc;
    int32_t *first = b->scratch.at, *next = first + (here.hi - here.lo);
    clear(b, (here.hi - here.lo) * (int64_t)c);
    list_pixels(b, here, first, next);
    for (int64_t r = 0; r < here.hi - here.lo; r++)
        if (first[r] >= 0)
            d->kernels->sum.listed((float *)b->grad[0] + r * c, b->dy, first[r], next, c, true);
    return HP_OK;
}

/* --- positions: a row of the box is a run of the table --- */

typedef void run_fn(hp_device *d, const hp_bound *b, int64_t at, int64_t place, int64_t n);

static void every_run(hp_device *d, const hp_bound *b, run_fn *visit) {
    const hp_shape *s = &b->shape;
    const int64_t run = (int64_t)s->ow * s->oc;
    for (int64_t r = 0; r < s->n * s->oh; r++)
        visit(d, b, r * run, ((s->oy0 + r % s->oh) * (int64_t)s->full.ow + s->ox0) * s->oc, run);
}

static void add_places(hp_device *d, const hp_bound *b, int64_t at, int64_t place, int64_t n) {
    d->kernels->point.add((float *)b->y + at, (const float *)b->x[0] + at, (const float *)b->param[0] + place,
                          n, no_clamp);
}

static void sum_places(hp_device *d, const hp_bound *b, int64_t at, int64_t place, int64_t n) {
    d->kernels->point.accum((float *)b->grad[0] + place, (const float *)b->dy + at, n);
}

hp_status hp_cpu_position_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    every_run(d, b, add_places);
    return HP_OK;
}

hp_status hp_cpu_position_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    clear(b, table_elems(b));
    every_run(d, b, sum_places);
    if (b->dx[0] && b->dx[0] != b->dy) memcpy(b->dx[0], b->dy, (size_t)b->out_elems * sizeof(float));
    return HP_OK;
}

/* --- class tokens --- */

/* Index of a token's channels in the input's box; token 0 has none. */
static int64_t token_at(const hp_shape *s, int64_t n, int64_t token) {
    const int64_t y = (token - 1) / s->full.iw - s->iy0, x = (token - 1) % s->full.iw - s->ix0;
    return ((n * s->ih + y) * s->iw + x) * s->ic;
}

hp_status hp_cpu_classtoken_fwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)d;
    (void)step;
    (void)err;
    const hp_shape *s = &b->shape;
    float *y = b->y;
    for (int64_t i = 0; i < s->n * s->oh; i++, y += s->oc) {
        const int64_t token = s->oy0 + i % s->oh;
        const float *from = token == 0 ? b->param[0] : (const float *)b->x[0] + token_at(s, i / s->oh, token);
        memcpy(y, from, (size_t)s->oc * sizeof *y);
    }
    return HP_OK;
}

hp_status hp_cpu_classtoken_bwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)step;
    (void)err;
    const hp_shape *s = &b->shape;
    const float *dy = b->dy;
    float *dx = b->dx[0];
    clear(b, s->oc);
    if (dx) memset(dx, 0, (size_t)b->in_elems * sizeof *dx);
    for (int64_t i = 0; i < s->n * s->oh; i++, dy += s->oc) {
        const int64_t token = s->oy0 + i % s->oh;
        if (token == 0)
            d->kernels->point.accum(b->grad[0], dy, s->oc);
        else if (dx)
            memcpy(dx + token_at(s, i / s->oh, token), dy, (size_t)s->oc * sizeof *dx);
    }
    return HP_OK;
}

/* --- crops: the boxes read and written are the same --- */

hp_status hp_cpu_crop_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    memcpy(b->y, b->x[0], (size_t)b->out_elems * sizeof(float));
    return HP_OK;
}

hp_status hp_cpu_crop_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    memcpy(b->dx[0], b->dy, (size_t)b->out_elems * sizeof(float));
    return HP_OK;
}

/* --- merged pixels: the upper left, the one below it, the one to its right, the one below that --- */

/* Visits every run of an output pixel's channels that comes from one pixel; at -1: beyond the map. */
typedef void quarter_fn(const hp_bound *b, int64_t out, int64_t at, int n);

static void every_quarter(const hp_bound *b, quarter_fn *visit) {
    const hp_shape *s = &b->shape;
    const int quarter = s->full.oc / 4, from = b->map.in_box[0].lo[HP_AXIS_C];
    for (int64_t p = 0; p < s->n * s->oh * s->ow; p++)
        for (int c = s->oc0, n; c < s->oc0 + s->oc; c += n) {
            const int which = c / quarter, end = (which + 1) * quarter;
            const int64_t y = 2 * (s->oy0 + p / s->ow % s->oh) + which % 2,
                          x = 2 * (s->ox0 + p % s->ow) + which / 2;
            const bool inside = y < s->full.ih && x < s->full.iw;
            n = (end < s->oc0 + s->oc ? end : s->oc0 + s->oc) - c;
            const int64_t pixel = (p / s->ow / s->oh * s->ih + y - s->iy0) * s->iw + x - s->ix0;
            visit(b, p * s->oc + c - s->oc0, inside ? pixel * s->ic + c % quarter - from : -1, n);
        }
}

static void gather_quarter(const hp_bound *b, int64_t out, int64_t at, int n) {
    float *y = (float *)b->y + out;
    if (at < 0)
        memset(y, 0, (size_t)n * sizeof *y);
    else
        memcpy(y, (const float *)b->x[0] + at, (size_t)n * sizeof *y);
}

static void scatter_quarter(const hp_bound *b, int64_t out, int64_t at, int n) {
    if (at >= 0) memcpy((float *)b->dx[0] + at, (const float *)b->dy + out, (size_t)n * sizeof(float));
}

hp_status hp_cpu_merge_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    every_quarter(b, gather_quarter);
    return HP_OK;
}

hp_status hp_cpu_merge_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    memset(b->dx[0], 0, (size_t)b->in_elems * sizeof(float));
    every_quarter(b, scatter_quarter);
    return HP_OK;
}
