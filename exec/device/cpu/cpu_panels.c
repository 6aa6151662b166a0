/* cpu_panels.c - runs a convolution as tiles of pixels times panels of outputs. Pixels that read the same
 * taps form a class, so no product is spent on padding. Within a class, the inputs of a block of pixels stay
 * in cache while all panels of weights pass. */
#include "exec/device/cpu/cpu_matrix.h"

#include <string.h>

/* One class of pixels of a task. */
typedef struct pass {
    const hp_matrix *m;
    const hp_bound *b;
    hp_matrix_class c;
    int64_t pixels;
    int64_t x_sample, x_row, x_col, y_sample, y_row, y_col; /* strides in bytes between pixels of the class */
    const unsigned char *x;                                 /* first input of the first pixel */
    unsigned char *y;
    int n_run;
    int64_t group; /* offset in bytes of the current group's first input */
    bool copies;   /* pixels are copied and padded with zeros */
} pass;

/* --- the taps of a class --- */

static int steps_of(const hp_panels *p, int32_t inputs) {
    return (inputs + p->dot - 1) / p->dot;
}

static bool side_by_side(const pass *a) {
    const hp_axis_group *col = a->c.col;
    return a->m->p.groups == 1 && (col->taps < 2 || (col->tap_step == 1 && col->in_tap == 1));
}

/* Inputs of a copied pixel are contiguous, step after step. */
static void add_copied_row(const pass *a, int tap_row, int64_t *at, int *n) {
    const hp_panels *p = &a->m->p;
    const hp_axis_group *col = a->c.col;
    const int bytes = p->dot * p->elem;
    if (p->merged) {
        a->m->run[(*n)++] = (hp_panel_run){*at, (int64_t)tap_row * p->row_steps, p->row_steps};
        *at += (int64_t)p->row_steps * bytes;
        return;
    }
    for (int x = 0; x < col->taps; x++, *at += (int64_t)p->tap_steps * bytes)
        a->m->run[(*n)++] = (hp_panel_run){
            *at, (int64_t)tap_row * p->row_steps + (int64_t)(col->tap + x * col->tap_step) * p->tap_steps,
            p->tap_steps};
}

static void add_row(const pass *a, int tap_row, int64_t at, int *n) {
    const hp_panels *p = &a->m->p;
    const hp_axis_group *col = a->c.col;
    const int64_t w = (int64_t)tap_row * p->row_steps, tap = (int64_t)col->in_tap * a->b->shape.ic * p->elem;
    if (side_by_side(a)) {
        const int64_t skipped = (int64_t)col->tap * p->ins / p->dot; /* whole steps, or none */
        a->m->run[(*n)++] = (hp_panel_run){at, w + skipped, steps_of(p, col->taps * p->ins)};
        return;
    }
    for (int x = 0; x < col->taps; x++)
        a->m->run[(*n)++] = (hp_panel_run){
            at + x * tap, w + (int64_t)(col->tap + x * col->tap_step) * p->tap_steps, p->tap_steps};
}

static int list_runs(const pass *a) {
    const hp_axis_group *row = a->c.row;
    const int64_t down = (int64_t)row->in_tap * a->b->shape.iw * a->b->shape.ic * a->m->p.elem;
    int64_t copied = 0;
    int n = 0;
    if (a->c.col->taps == 0) return 0;
    for (int y = 0; y < row->taps; y++) {
        const int tap_row = row->tap + y * row->tap_step;
        if (a->copies)
            add_copied_row(a, tap_row, &copied, &n);
        else
            add_row(a, tap_row, y * down, &n);
    }
    return n;
}

/* --- copied pixels --- */

/* Copies the taps of one row; if the row is one sequence, taps outside the map are zeros. */
static unsigned char *copy_row(const pass *a, unsigned char *to, const unsigned char *x) {
    const hp_panels *p = &a->m->p;
    const hp_axis_group *col = a->c.col;
    const int64_t tap = (int64_t)col->in_tap * a->b->shape.ic * p->elem;
    const size_t inputs = (size_t)p->ins * (size_t)p->elem, step = (size_t)(p->dot * p->elem);
    const size_t each = p->merged ? inputs : (size_t)p->tap_steps * step;
    const size_t all = p->merged ? (size_t)p->row_steps * step : (size_t)col->taps * each;
    memset(to, 0, all);
    for (int k = 0; k < col->taps; k++)
        memcpy(to + (size_t)(p->merged ? col->tap + k * col->tap_step : k) * each, x + k * tap, inputs);
    return to + all;
}

static const unsigned char *copy_pixel(const pass *a, unsigned char *to, const unsigned char *x) {
    const hp_axis_group *row = a->c.row;
    const int64_t down = (int64_t)row->in_tap * a->b->shape.iw * a->b->shape.ic * a->m->p.elem;
    unsigned char *at = to;
    if (a->c.col->taps == 0) return to;
    for (int y = 0; y < row->taps; y++) at = copy_row(a, at, x + a->group + y * down);
    return to;
}

static unsigned char *copy_room(const pass *a, int row) {
    const hp_panels *p = &a->m->p;
    const int64_t pixel = ((int64_t)p->kh * p->row_steps * p->dot * p->elem + 63) / 64 * 64;
    const int64_t terms = hp_panels_quantised(p) ? 8 * (int64_t)p->groups * p->padded : 0;
    return (unsigned char *)a->b->scratch.at + terms + row * pixel;
}

/* --- blocks of pixels --- */

enum { MOST_PIXELS = 192 };

typedef struct block {
    int n;
    const unsigned char *x[MOST_PIXELS];
    unsigned char *y[MOST_PIXELS];
} block;

typedef struct cursor {
    int64_t sample;
    int32_t row, col;
} cursor;

static cursor cursor_at(const pass *a, int64_t pixel) {
    const int64_t cols = a->c.col->n, rows = a->c.row->n;
    return (cursor){pixel / cols / rows, (int32_t)(pixel / cols % rows), (int32_t)(pixel % cols)};
}

/* Adds adjacent pixels of one row of the class from the cursor on, up to `n` in the block. */
static void place_row(const pass *a, cursor *at, block *k, int n) {
    const unsigned char *x = a->x + at->sample * a->x_sample + at->row * a->x_row + at->col * a->x_col;
    unsigned char *y = a->y + at->sample * a->y_sample + at->row * a->y_row + at->col * a->y_col;
    const int end = n - k->n < a->c.col->n - at->col ? n : k->n + a->c.col->n - at->col;
    at->col += end - k->n;
    for (; k->n < end; k->n++, x += a->x_col, y += a->y_col) {
        k->x[k->n] = a->copies ? copy_pixel(a, copy_room(a, k->n), x) : x;
        k->y[k->n] = y;
    }
}

static void place_pixels(const pass *a, cursor *at, block *k, int n) {
    for (k->n = 0; k->n < n;) {
        place_row(a, at, k, n);
        if (at->col < a->c.col->n) continue;
        at->col = 0;
        if (++at->row < a->c.row->n) continue;
        at->row = 0;
        at->sample++;
    }
}
/* Number of pixels in a tile. With few, finishing one tile overlaps with the products of the next, as long as
 * the panel stays in the first-level cache. More pixels save its traffic from the next level, and a narrow
 * panel needs them to fill the processor's pipeline. Measured on a Zen 4 core. */
static int tile_of(int64_t panel_bytes, int vecs) {
    enum { FIRST_LEVEL = 16 << 10, SECOND_LEVEL = 256 << 10 };
    if (panel_bytes > SECOND_LEVEL || vecs == 1) return HP_PANEL_ROWS;
    return panel_bytes > FIRST_LEVEL || vecs < 4 ? 4 : 2;
}

/* Runs tiles of about equal size: some have one pixel more. */
static void run_tiles(hp_panel_fn *const *tile, hp_panel_tile *t, const block *k, int most) {
    const int tiles = (k->n + most - 1) / most, rows = k->n / tiles, more = k->n % tiles;
    t->x = k->x;
    t->y = k->y;
    t->ahead = k->n > rows ? k->x[rows] - k->x[0] : 0;
    t->tiles = more;
    if (more) tile[rows](t);
    t->x += more * (rows + 1);
    t->y += more * (rows + 1);
    t->tiles = tiles - more;
    tile[rows - 1](t);
}

/* One panel: outputs of group `g` from `out` on. */
static void run_panel(const pass *a, int g, int out, const block *k) {
    const hp_matrix *m = a->m;
    const hp_panels *p = &m->p;
    const unsigned char *pack = a->b->pack.forward;
    const int64_t padded = (int64_t)g * p->padded + out, steps = (int64_t)p->kh * p->row_steps;
    const int width = p->padded - out < HP_PANEL_OUTS ? p->padded - out : HP_PANEL_OUTS;
    hp_panel_tile t = {.x_at = a->copies ? 0 : (int64_t)g * p->ins * p->elem,
                       .y_at = ((int64_t)g * p->outs + out) * hp_dtype_bytes(m->out.op.y.dtype),
                       .run = m->run,
                       .n_run = a->n_run,
                       .outs = p->outs - out < width ? p->outs - out : width,
                       .weights = pack + padded * steps * p->dot * p->weight,
                       .init = (const int32_t *)a->c.init + padded,
                       .out = &m->out};
    if (hp_panels_quantised(p)) {
        t.scale = m->scale + padded;
        t.shift = a->c.shift + padded;
    }
    const bool fast = m->out.fast && (t.outs == width || width < HP_PANEL_OUTS);
    const int vecs = width / HP_PANEL_LANES;
    const hp_panel_family *family = m->kernels->of[p->x];
    run_tiles((fast ? family->fast : family->tile)[vecs - 1], &t, k,
              tile_of(steps * width * p->dot * p->weight, vecs));
}

/* Number of pixels whose inputs stay in cache while the panels pass. */
static int block_of(const pass *a) {
    return a->copies ? HP_PANEL_ROWS : MOST_PIXELS;
}

static void run_group(const pass *a, int g, int64_t first, int64_t last) {
    const int most = block_of(a);
    cursor at = cursor_at(a, first);
    block k;
    for (; first < last; first += k.n) {
        place_pixels(a, &at, &k, last - first < most ? (int)(last - first) : most);
        for (int out = 0; out < a->m->p.padded; out += HP_PANEL_OUTS) run_panel(a, g, out, &k);
    }
}

static void run_pixels(pass *a, int64_t first, int64_t last, bool copies) {
    a->copies = copies;
    a->n_run = list_runs(a);
    for (int g = 0; g < a->m->p.groups && first < last; g++) {
        a->group = (int64_t)g * a->m->p.ins * a->m->p.elem;
        run_group(a, g, first, last);
    }
}

/* --- classes --- */

static void set_places(pass *a) {
    const hp_shape *s = &a->b->shape;
    const hp_axis_group *row = a->c.row, *col = a->c.col;
    const int64_t x_pixel = (int64_t)s->ic * a->m->p.elem,
                  y_pixel = (int64_t)s->oc * hp_dtype_bytes(a->m->out.op.y.dtype);
    a->pixels = s->n * row->n * col->n;
    a->x_sample = s->ih * (int64_t)s->iw * x_pixel;
    a->x_row = (int64_t)row->in_step * s->iw * x_pixel;
    a->x_col = col->in_step * x_pixel;
    a->y_sample = s->oh * (int64_t)s->ow * y_pixel;
    a->y_row = (int64_t)row->step * s->ow * y_pixel;
    a->y_col = col->step * y_pixel;
    a->x = (const unsigned char *)a->b->x[0] + ((int64_t)row->in * s->iw + col->in) * x_pixel;
    a->y = (unsigned char *)a->b->y + ((int64_t)row->out * s->ow + col->out) * y_pixel;
}

/* Does a pixel's last step reach beyond the input? */
static bool reaches_beyond(const pass *a, int64_t pixel) {
    const hp_shape *s = &a->b->shape;
    const cursor at = cursor_at(a, pixel);
    const hp_panel_run *last = &a->m->run[a->n_run - 1];
    const int64_t size = s->n * a->x_sample, bytes = a->m->p.dot * a->m->p.elem;
    const int64_t x = a->x - (const unsigned char *)a->b->x[0] + at.sample * a->x_sample + at.row * a->x_row +
                      at.col * a->x_col;
    return x + last->x + last->steps * bytes > size;
}

/* Incomplete steps end in weights of zero, so it does not matter what else they read, as long as it is
 * readable. That holds for rows of all taps, except for the last pixels of the map. */
static void run_class(const hp_matrix *m, const hp_bound *b, const hp_axis_group *row,
                      const hp_axis_group *col) {
    pass a = {.m = m, .b = b, .c = hp_matrix_class_of(m, b, row, col)};
    set_places(&a);
    const bool whole = hp_panels_whole_steps(&m->p),
               direct = m->p.merged && side_by_side(&a) && col->taps == m->p.kw;
    int64_t end = whole || direct ? a.pixels : 0;
    a.n_run = list_runs(&a);
    while (!whole && end > 0 && a.n_run > 0 && reaches_beyond(&a, end - 1)) end--;
    run_pixels(&a, 0, end, false);
    run_pixels(&a, end, a.pixels, true);
}

void hp_matrix_run_panels(const hp_matrix *m, const hp_bound *b) {
    for (int r = 0; r < m->rows.n; r++)
        for (int c = 0; c < m->cols.n; c++) run_class(m, b, &m->rows.group[r], &m->cols.group[c]);
}
