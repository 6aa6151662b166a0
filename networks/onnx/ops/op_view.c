/* op_view.c - see op_view.h. Dimensions of 1 have no parts; adjacent parts of a dimension are merged. */
#include "networks/onnx/ops/op_view.h"

#include <string.h>

onnx_parts onnx_view_parts(const onnx_view *w, int d) {
    const int from = d > 0 ? w->end[d - 1] : 0;
    return (onnx_parts){&w->part[from], w->end[d] - from};
}

/* Appends to the last dimension; false if there is no room. */
static bool append(onnx_view *w, int d, onnx_part p) {
    const int from = d > 0 ? w->end[d - 1] : 0;
    onnx_part *last = w->n > from ? &w->part[w->n - 1] : NULL;
    w->end[d] = w->n;
    if (p.extent == 1) return true;
    if (last && last->axis == p.axis && last->step == p.step * p.extent) {
        last->extent *= p.extent;
        last->step = p.step;
        return true;
    }
    if (w->n == ONNX_MOST_PARTS) return false;
    w->part[w->n++] = p;
    w->end[d] = w->n;
    return true;
}

/* --- from values --- */

bool onnx_view_of(const onnx_reader *r, const onnx_value *v, onnx_view *w) {
    int of[HP_AXES];
    if (v->kind == ONNX_VIEW) *w = *v->view;
    if (v->kind != ONNX_TENSOR) return v->kind == ONNX_VIEW;
    *w = (onnx_view){.factor = 1};
    if (!onnx_axes(r, v, of)) return false;
    for (int d = 0; d < v->n_dim; d++) {
        w->end[d] = w->n;
        for (int i = 0; i < HP_AXES; i++)
            if (of[v->order[i]] == d)
                append(w, d, (onnx_part){v->order[i], onnx_extent(r, v, v->order[i]), 1});
    }
    return true;
}

/* --- changes --- */

/* Splits a factor of `size` off the part's outer end. */
static onnx_part take(onnx_part *p, int64_t size) {
    const onnx_part outer = {p->axis, size, p->step * (p->extent / size)};
    p->extent /= size;
    return outer;
}

bool onnx_view_reshape(onnx_view *w, const int64_t *dim, int n_dim) {
    onnx_view from = *w;
    int at = 0;
    w->n = 0;
    for (int d = 0; d < n_dim; d++) {
        int64_t open = dim[d];
        w->end[d] = w->n;
        while (open > 1 && at < from.n) {
            onnx_part *p = &from.part[at];
            const int64_t size = open % p->extent == 0 ? p->extent : open;
            if (p->extent % size || !append(w, d, take(p, size))) return false;
            open /= size;
            at += p->extent == 1;
        }
        if (open != 1) return false;
    }
    return at == from.n;
}

void onnx_view_permute(onnx_view *w, const int *perm, int n_dim) {
    const onnx_view from = *w;
    w->n = 0;
    for (int d = 0; d < n_dim; d++) {
        const onnx_parts parts = onnx_view_parts(&from, perm[d]);
        w->end[d] = w->n;
        for (int i = 0; i < parts.n; i++) append(w, d, parts.part[i]);
    }
}

bool onnx_view_cut(onnx_view *w, int d, int64_t size, int64_t first, int64_t count, int64_t step) {
    const onnx_parts parts = onnx_view_parts(w, d);
    if (first == 0 && count == size && step == 1) return true;
    if (parts.n != 1 || count < 1) return false;
    onnx_part *p = &w->part[w->end[d] - 1];
    w->first[p->axis] += first * p->step;
    p->step *= step;
    p->extent = count;
    if (count > 1) return true;
    w->n--;
    memmove(p, p + 1, sizeof *p * (size_t)(w->n - (w->end[d] - 1)));
    for (int k = d; k < ONNX_MOST_DIMS; k++) w->end[k]--;
    return true;
}

/* --- to values --- */

bool onnx_view_by_sample(const onnx_reader *r, const onnx_value *v) {
    const onnx_parts p = onnx_view_parts(v->view, 0);
    return v->dim[0] == r->batch && (p.n == 0 || (p.n == 1 && p.part[0].axis == HP_AXIS_N));
}

bool onnx_view_rolls(const onnx_view *w) {
    bool rolls = false;
    for (int a = 0; a < HP_AXES; a++) rolls |= w->roll[a] != 0;
    return rolls;
}

/* Axes of one element can be anywhere: if the others are in their order, all keep it. */
static void keep_order(const onnx_reader *r, const onnx_value *x, int8_t order[HP_AXES]) {
    int next = 0;
    for (int i = 0; i < HP_AXES; i++) {
        if (onnx_extent(r, x, order[i]) == 1) continue;
        while (next < HP_AXES && x->order[next] != order[i]) next++;
    }
    if (next < HP_AXES) memcpy(order, x->order, sizeof x->order);
}

/* Does the view have every element of the tensor, with each axis in one part? Then `order` is the axes'
 * order. */
static bool is_whole(const onnx_reader *r, const onnx_value *x, const onnx_view *w, int8_t order[HP_AXES]) {
    bool seen[HP_AXES] = {0};
    int n = 0;
    if (w->factor != 1 || onnx_view_rolls(w)) return false;
    for (int i = 0; i < w->n; i++) {
        const onnx_part *p = &w->part[i];
        if (seen[p->axis] || p->step != 1 || p->extent != onnx_extent(r, x, p->axis)) return false;
        seen[p->axis] = true;
        order[n++] = (int8_t)p->axis;
    }
    for (int i = 0; i < HP_AXES; i++) {
        const int axis = x->order[i];
        if (seen[axis]) continue;
        if (onnx_extent(r, x, axis) > 1) return false;
        order[n++] = (int8_t)axis;
    }
    keep_order(r, x, order);
    return true;
}

void onnx_result_view(const onnx_call *c, onnx_value *out, const onnx_value *x, const onnx_view *w, int n_dim,
                      const int64_t *dim) {
    const onnx_value from = *x; /* may be `out` */
    out->tensor = from.tensor;
    out->type = from.type;
    out->quant = NULL;
    out->view = NULL;
    out->n_dim = n_dim;
    memmove(out->dim, dim, sizeof *dim * (size_t)n_dim);
    memcpy(out->order, from.order, sizeof out->order);
    out->kind = is_whole(c->r, &from, w, out->order) ? ONNX_TENSOR : ONNX_VIEW;
    if (out->kind == ONNX_TENSOR) return;
    memcpy(out->order, from.order, sizeof out->order);
    onnx_view *own = HP_NEW(c->r->scratch, onnx_view, 1);
    *own = *w;
    out->view = own;
}
