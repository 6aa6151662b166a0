/* attention.c - which pixels are attended to: all, those up to the pixel itself in row order (Vaswani et al.
 * 2017), or those of a window (Liu et al., ICCV 2021).
 *
 * Swin rolls the map by `shift`, attends within windows, masks what only the roll has brought together, and
 * rolls back. This equals attention within windows whose boundaries lie `shift` further on and which are
 * smaller at the borders. Tiles of the map therefore exchange only what their windows need, and nothing is
 * rolled. */
#include "networks/graph/attention.h"

hp_extent hp_attention_keys(const hp_graph *g, const hp_layer *l, bool rows, hp_extent queries) {
    const hp_tensor *keys = &g->tensor[l->in[1]];
    const int32_t n = rows ? keys->h : keys->w;
    if (hp_layer_is_windowed(l)) {
        const int32_t window = rows ? l->window.kh : l->window.kw,
                      shift = rows ? l->window.pad_h : l->window.pad_w;
        return (hp_extent){hp_window_of(queries.lo, window, shift, n).lo,
                           hp_window_of(queries.hi - 1, window, shift, n).hi};
    }
    return l->attention.causal && rows ? (hp_extent){0, queries.hi} : (hp_extent){0, n};
}

static int64_t window_lengths(hp_extent queries, int32_t window, int32_t shift, int32_t n) {
    int64_t sum = 0;
    for (int32_t i = queries.lo; i < queries.hi; i++) {
        const hp_extent w = hp_window_of(i, window, shift, n);
        sum += w.hi - w.lo;
    }
    return sum;
}

/* In row y, the queries in columns [lo, hi) each attend to y * w + column + 1 pixels. */
static int64_t causal_pairs(hp_extent rows, hp_extent cols, int64_t w) {
    const int64_t n = cols.hi - cols.lo, m = rows.hi - rows.lo,
                  of_rows = w * ((int64_t)rows.lo + rows.hi - 1) * m / 2,
                  of_cols = ((int64_t)cols.lo + cols.hi + 1) * n / 2;
    return of_rows * n + of_cols * m;
}

int64_t hp_attention_pairs(const hp_graph *g, const hp_layer *l, hp_extent rows, hp_extent cols) {
    const hp_tensor *keys = &g->tensor[l->in[1]];
    if (hp_layer_is_windowed(l))
        return window_lengths(rows, l->window.kh, l->window.pad_h, keys->h) *
               window_lengths(cols, l->window.kw, l->window.pad_w, keys->w);
    if (l->attention.causal) return causal_pairs(rows, cols, keys->w);
    return (int64_t)(rows.hi - rows.lo) * (cols.hi - cols.lo) * keys->h * keys->w;
}

hp_extent hp_attention_row(const hp_graph *g, const hp_layer *l, int32_t y, int32_t x, int32_t row) {
    const hp_extent cols = hp_attention_keys(g, l, false, (hp_extent){x, x + 1});
    if (l->attention.causal && row == y) return (hp_extent){0, x + 1};
    return cols;
}
