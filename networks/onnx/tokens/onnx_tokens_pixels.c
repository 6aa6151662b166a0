/* onnx_tokens_pixels.c - what Swin transformers do with maps of pixels in windows: products on the channels
 * of views, torch.roll as two slices joined in reverse order, and merging 2 x 2 pixels into one. */
#include "networks/onnx/tokens/terms.h"

#include <string.h>

/* --- pixel by pixel --- */

/* Does the last dimension hold all of the channels? */
static bool has_channels(const onnx_reader *r, const onnx_value *x, const onnx_view *w) {
    const onnx_parts last = onnx_view_parts(w, x->n_dim - 1);
    return last.n == 1 && last.part[0].axis == HP_AXIS_C && last.part[0].step == 1 &&
           last.part[0].extent == onnx_extent(r, x, HP_AXIS_C) && w->factor == 1;
}

/* Reads the node as one of the tensor; the result is viewed like its input. */
hp_status onnx_term_pixels(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_value x = *in[0];
    onnx_view w = *x.view;
    const int most = strcmp(c->op->name, "MatMul") == 0 ? 2 : 1;
    *fits = x.n_dim > 0 && has_channels(c->r, &x, &w) && in[1]->c.n_dim == most;
    if (!*fits) return HP_OK;
    const int64_t tokens = onnx_extent(c->r, &x, HP_AXIS_H) * onnx_extent(c->r, &x, HP_AXIS_W);
    onnx_value flat = {.name = x.name,
                       .kind = ONNX_TENSOR,
                       .tensor = x.tensor,
                       .type = x.type,
                       .n_dim = 3,
                       .dim = {c->r->batch, tokens, onnx_extent(c->r, &x, HP_AXIS_C)},
                       .order = {HP_AXIS_N, HP_AXIS_H, HP_AXIS_W, HP_AXIS_C}};
    onnx_call plain = *c;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i] == in[0]) plain.in[i] = &flat;
    HP_TRY(c->op->read(&plain));
    const onnx_value made = *c->out;
    int64_t dim[ONNX_MOST_DIMS];
    memcpy(dim, x.dim, sizeof dim);
    dim[x.n_dim - 1] = made.dim[2];
    w.part[w.n - 1].extent = made.dim[2];
    onnx_result_view(c, c->out, &made, &w, x.n_dim, dim);
    return HP_OK;
}

/* --- torch.roll --- */

static bool same_view(const onnx_view *a, const onnx_view *b, int n_dim) {
    bool same = a->n == b->n && a->factor == b->factor && memcmp(a->roll, b->roll, sizeof a->roll) == 0 &&
                memcmp(a->first, b->first, sizeof a->first) == 0;
    for (int d = 0; d < n_dim && same; d++) same = a->end[d] == b->end[d];
    for (int i = 0; i < a->n && same; i++)
        same = a->part[i].axis == b->part[i].axis && a->part[i].step == b->part[i].step &&
               a->part[i].extent == b->part[i].extent;
    return same;
}

/* Is v the slice [at, at + size) of `whole` along dimension d? */
static bool is_cut(const onnx_view *whole, const onnx_value *v, int d, int64_t size, int64_t first) {
    onnx_view w = *whole;
    return onnx_view_cut(&w, d, size, first, v->dim[d], 1) && same_view(&w, v->view, v->n_dim);
}

/* Finds the view whose end is a and whose beginning is b, along dimension d. Returns the axis; -1 if there is
 * none. */
static int whole_of(const onnx_reader *r, const onnx_value *a, const onnx_value *b, int d, onnx_view *whole) {
    const onnx_value *longer = a->dim[d] > 1 ? a : b;
    const onnx_parts p = onnx_view_parts(longer->view, d);
    if (a->tensor != b->tensor || a->n_dim != b->n_dim || p.n != 1) return -1;
    const int axis = p.part[0].axis;
    const int64_t n = onnx_extent(r, a, axis);
    *whole = *longer->view;
    whole->part[p.part - longer->view->part].extent = n;
    whole->first[axis] = 0;
    const bool rolls = (axis == HP_AXIS_H || axis == HP_AXIS_W) && p.part[0].step == 1 &&
                       a->dim[d] + b->dim[d] == n && is_cut(whole, a, d, n, b->dim[d]) &&
                       is_cut(whole, b, d, n, 0);
    return rolls ? axis : -1;
}

static hp_status joined_dim(const onnx_call *c, int n_dim, int *d) {
    int64_t given = 1;
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    return onnx_axis(c, given, n_dim, d);
}

hp_status onnx_term_rolled(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_value *a = in[0], *b = in[1];
    onnx_view w;
    int64_t dim[ONNX_MOST_DIMS];
    int d;
    HP_TRY(joined_dim(c, a->n_dim, &d));
    const int axis = whole_of(c->r, a, b, d, &w);
    *fits = axis >= 0;
    if (!*fits) return HP_OK;
    const int64_t n = onnx_extent(c->r, a, axis);
    w.roll[axis] = (w.roll[axis] + b->dim[d]) % n;
    memcpy(dim, a->dim, sizeof dim);
    dim[d] = n;
    onnx_result_view(c, c->out, a, &w, a->n_dim, dim);
    return HP_OK;
}

/* --- 2 x 2 pixels as one --- */

/* Is it quarter k: every other row from k % 2, every other column from k / 2? */
static bool is_quarter(const onnx_reader *r, const onnx_value *x, const onnx_value *first, int k) {
    const int64_t h = onnx_extent(r, x, HP_AXIS_H), w = onnx_extent(r, x, HP_AXIS_W);
    if (x->kind != ONNX_VIEW || x->tensor != first->tensor || x->n_dim != 4 || h % 2 || w % 2) return false;
    const onnx_view *v = x->view;
    const int64_t wish[4] = {r->batch, h / 2, w / 2, onnx_extent(r, x, HP_AXIS_C)};
    static const int axis[4] = {HP_AXIS_N, HP_AXIS_H, HP_AXIS_W, HP_AXIS_C};
    bool fits = !onnx_view_rolls(v) && v->factor == 1 && v->first[HP_AXIS_H] == k % 2 &&
                v->first[HP_AXIS_W] == k / 2 && v->first[HP_AXIS_C] == 0;
    for (int d = 0; d < 4 && fits; d++) {
        const onnx_parts p = onnx_view_parts(v, d);
        fits = x->dim[d] == wish[d] && (p.n == 0 || p.part[0].axis == axis[d]);
    }
    return fits;
}

hp_status onnx_term_merged(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_value *x = in[0];
    int32_t y;
    int d;
    HP_TRY(joined_dim(c, x->n_dim, &d));
    *fits = c->n_in == 4 && d == 3;
    for (int k = 0; k < 4 && *fits; k++) *fits = c->in[k] && is_quarter(c->r, c->in[k], x, k);
    if (!*fits) return HP_OK;
    HP_TRY(onnx_emit(c, (hp_layer){.op = HP_MERGE, .n_in = 1, .in = {x->tensor}}, 0, &y));
    const onnx_value like = {.n_dim = 4,
                             .type = ONNX_FLOAT,
                             .dim = {c->r->batch, x->dim[1], x->dim[2], 4 * x->dim[3]},
                             .order = {HP_AXIS_N, HP_AXIS_H, HP_AXIS_W, HP_AXIS_C}};
    onnx_result_like(c, y, &like);
    return HP_OK;
}
