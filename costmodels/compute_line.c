/* compute_line.c - the measured lines of a shape class: one per row length of the map, interpolated between
 * row lengths. */
#include "costmodels/cost_line.h"
#include "costmodels/cost_rows.h"

#include <math.h>
#include <string.h>

typedef struct nearest { /* the neighbours of the wanted row length; equal if it was measured */
    const hp_row *shorter, *longer;
    int shorter_w, longer_w;
} nearest;

/* First row of the table that is not less than (compute, class, the first `length` characters of key). */
static int lower_bound(const hp_cost_table *t, const char *class, const char *key, int length) {
    int low = 0, high = t->n;
    while (low < high) {
        const int middle = (low + high) / 2;
        const hp_row *r = &t->row[middle];
        int order = (r->kind > HP_ROW_COMPUTE) - (r->kind < HP_ROW_COMPUTE);
        if (!order) order = strcmp(r->class, class);
        if (!order) order = strncmp(r->key, key, (size_t)length);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void consider_row(nearest *near, const hp_row *r, int row_w, int width) {
    if (row_w <= width && (!near->shorter || row_w > near->shorter_w)) {
        near->shorter = r;
        near->shorter_w = row_w;
    }
    if (row_w >= width && (!near->longer || row_w < near->longer_w)) {
        near->longer = r;
        near->longer_w = row_w;
    }
}

static nearest find_nearest(const hp_cost_table *t, const char *class, const char *key, int length,
                            int width) {
    nearest near = {NULL, NULL, 0, 0};
    for (int i = lower_bound(t, class, key, length); i < t->n; i++) {
        const hp_row *r = &t->row[i];
        int row_w = 0;
        if (r->kind != HP_ROW_COMPUTE || strcmp(r->class, class) != 0 ||
            strncmp(r->key, key, (size_t)length) != 0)
            break;
        if (hp_key_class(r->key, &row_w) == length && (row_w > 0) == (width > 0))
            consider_row(&near, r, row_w, width);
    }
    return near;
}

static double octaves(int w, int row_w) {
    return w > 0 && row_w > 0 ? fabs(log2((double)w / row_w)) : 0;
}

static double outside_sizes(const hp_row *r, double size) {
    return hp_octaves_outside(r->x[0], r->x[r->n - 1], size);
}

/* Octaves outside the measured row lengths, or the measured sizes. */
static double outside(const nearest *near, int width, double size) {
    if (!near->shorter) return fmax(octaves(width, near->longer_w), outside_sizes(near->longer, size));
    if (!near->longer) return fmax(octaves(width, near->shorter_w), outside_sizes(near->shorter, size));
    /* sufficient if one of the two neighbours covers the size */
    return fmin(outside_sizes(near->shorter, size), outside_sizes(near->longer, size));
}

/* Interpolates between the lines of two row lengths; exact for powers of the length. */
static void between(const nearest *near, int width, double size, hp_measured_line *l) {
    const hp_row *longer = near->longer;
    const double share = log((double)width / near->shorter_w) / log((double)near->longer_w / near->shorter_w);
    l->seconds *= pow(hp_line_at(longer->x, longer->y, longer->n, size) / l->seconds, share);
    if (share > 0.5) l->row = longer;
}

bool hp_rows_compute(const hp_cost_table *t, const char *class, const char *key, double size,
                     hp_measured_line *out) {
    int width = 0, row_w = 0;
    const int length = hp_key_class(key, &width);
    for (; t; t = t->base) {
        const nearest near = find_nearest(t, class, key, length, width);
        if (!near.shorter && !near.longer) continue;
        *out = (hp_measured_line){.row = near.shorter ? near.shorter : near.longer};
        out->seconds = hp_line_at(out->row->x, out->row->y, out->row->n, size);
        out->outside = outside(&near, width, size);
        if (near.shorter && near.longer && near.longer_w > near.shorter_w) between(&near, width, size, out);
        hp_key_class(out->row->key, &row_w);
        out->octaves = octaves(width, row_w);
        return true;
    }
    return false;
}
