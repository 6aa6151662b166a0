/* heads.c - see heads.h. */
#include "networks/onnx/tokens/heads.h"

static bool only_of(onnx_parts p, int axis, int or_axis) {
    for (int i = 0; i < p.n; i++)
        if (p.part[i].axis != axis && p.part[i].axis != or_axis) return false;
    return true;
}

/* The only part of an axis among dimensions first .. end - 1; extent 1 if there is none. */
static bool part_of(const onnx_view *w, int axis, int first, int end, onnx_part *part) {
    int n = 0;
    *part = (onnx_part){axis, 1, 1};
    for (int d = first; d < end; d++) {
        const onnx_parts p = onnx_view_parts(w, d);
        for (int i = 0; i < p.n; i++) {
            if (p.part[i].axis != axis) continue;
            *part = p.part[i];
            n++;
        }
    }
    return n <= 1;
}

/* Reads all rows or columns: those within a window from the tokens, the windows from the dimensions
 * before. */
static bool read_axis(const onnx_reader *r, onnx_heads *h, int axis) {
    onnx_part inside, windows;
    if (!part_of(&h->view, axis, h->rows, h->rows + 1, &inside) ||
        !part_of(&h->view, axis, 0, h->x->n_dim - 2, &windows))
        return false;
    h->window[axis] = inside.extent;
    h->n_window *= windows.extent;
    return inside.step == 1 && (windows.extent == 1 || windows.step == inside.extent) &&
           h->view.first[axis] == 0 && inside.extent * windows.extent == onnx_extent(r, h->x, axis);
}

bool onnx_heads_read(const onnx_reader *r, const onnx_value *x, int rows, int cols, onnx_heads *h) {
    onnx_part width, heads;
    *h = (onnx_heads){.x = x, .rows = rows, .cols = cols, .n_window = 1};
    if (x->n_dim < 2 || !onnx_view_of(r, x, &h->view)) return false;
    if (!only_of(onnx_view_parts(&h->view, cols), HP_AXIS_C, HP_AXIS_C) ||
        !only_of(onnx_view_parts(&h->view, rows), HP_AXIS_H, HP_AXIS_W) || !read_axis(r, h, HP_AXIS_H) ||
        !read_axis(r, h, HP_AXIS_W) || !part_of(&h->view, HP_AXIS_C, cols, cols + 1, &width) ||
        !part_of(&h->view, HP_AXIS_C, 0, x->n_dim - 2, &heads))
        return false;
    h->n = heads.extent;
    h->step = heads.step;
    h->width = width.extent;
    h->stride = width.step;
    return true;
}

static bool same_dim(const onnx_view *a, const onnx_view *b, int d, int e) {
    const onnx_parts p = onnx_view_parts(a, d), q = onnx_view_parts(b, e);
    bool same = p.n == q.n;
    for (int i = 0; i < p.n && same; i++)
        same = p.part[i].axis == q.part[i].axis && p.part[i].extent == q.part[i].extent;
    return same;
}

/* Do both have the same parts, except for channels, which belong to heads? */
static bool same_but_heads(const onnx_heads *a, const onnx_heads *b, int d) {
    const onnx_parts p = onnx_view_parts(&a->view, d), q = onnx_view_parts(&b->view, d);
    int i = 0, k = 0;
    for (;; i++, k++) {
        while (i < p.n && p.part[i].axis == HP_AXIS_C) i++;
        while (k < q.n && q.part[k].axis == HP_AXIS_C) k++;
        if (i == p.n || k == q.n) return i == p.n && k == q.n;
        if (p.part[i].axis != q.part[k].axis || p.part[i].extent != q.part[k].extent) return false;
    }
}

bool onnx_heads_alike(const onnx_heads *a, const onnx_heads *b) {
    bool same = a->x->n_dim == b->x->n_dim && b->n > 0 && a->n % b->n == 0 && a->width == b->width;
    for (int d = 0; same && d < a->x->n_dim - 2; d++)
        same = a->n == b->n ? a->x->dim[d] == b->x->dim[d] && same_dim(&a->view, &b->view, d, d)
                            : same_but_heads(a, b, d);
    for (int axis = 0; axis < HP_AXES; axis++) same &= a->view.roll[axis] == b->view.roll[axis];
    return same;
}

bool onnx_heads_pair(const onnx_reader *r, const onnx_value *x, const onnx_value *keys, onnx_heads *q,
                     onnx_heads *k) {
    const int n = x->n_dim;
    return n == keys->n_dim && n >= 2 && onnx_heads_read(r, x, n - 2, n - 1, q) &&
           onnx_heads_read(r, keys, n - 1, n - 2, k) && onnx_heads_alike(q, k);
}

bool onnx_heads_ordered(const onnx_heads *a, const onnx_heads *b) {
    return same_dim(&a->view, &b->view, a->rows, b->rows);
}

bool onnx_heads_row_by_row(const onnx_heads *h) {
    const onnx_parts p = onnx_view_parts(&h->view, h->rows);
    int last = -1;
    for (int i = 0; i < h->view.n; i++) {
        const onnx_part *part = &h->view.part[i];
        if (part >= p.part && part < p.part + p.n) continue;
        if (part->axis == HP_AXIS_H && last == HP_AXIS_W) return false;
        if (part->axis == HP_AXIS_H || part->axis == HP_AXIS_W) last = part->axis;
    }
    return p.n < 2 || p.part[0].axis == HP_AXIS_H;
}

int64_t onnx_heads_shift(const onnx_heads *h, int axis) {
    return h->view.roll[axis] % h->window[axis];
}

int64_t onnx_heads_place(const onnx_reader *r, const onnx_heads *h, int axis, int64_t k, int64_t i) {
    return (k * h->window[axis] + i + h->view.roll[axis]) % onnx_extent(r, h->x, axis);
}
