/* onnx_tokens_shuffle.c - makes maps of views whose axes were split and regrouped. PyTorch's exporters write
 * channel shuffles, pixel shuffles and their inverse so: Reshape, Transpose, Reshape. */
#include "networks/onnx/tokens/terms.h"

#include <string.h>

enum { MOST_DIGITS = 3 };

/* Places of a sequence as digits, the last running fastest, and the step of each. */
typedef struct digits {
    int n;
    int64_t extent[MOST_DIGITS], step[MOST_DIGITS];
} digits;

/* Merges adjacent digits; false if more than two remain. */
static bool two_digits(const digits *d, digits *out) {
    *out = (digits){0};
    for (int i = 0; i < d->n; i++) {
        const int last = out->n - 1;
        if (d->extent[i] == 1) continue;
        if (last >= 0 && out->step[last] == d->step[i] * d->extent[i]) {
            out->extent[last] *= d->extent[i];
            out->step[last] = d->step[i];
        } else {
            out->extent[out->n] = d->extent[i];
            out->step[out->n++] = d->step[i];
        }
    }
    return out->n <= 2;
}

static hp_status emit_digits(const onnx_call *c, const digits *of, hp_layer l, int32_t *tensor) {
    const int last = of->n - 1;
    if (last >= 0) l.gather.step = (int32_t)of->step[last];
    if (last > 0) {
        l.groups = (int32_t)of->extent[last];
        l.gather.step_outer = (int32_t)of->step[0];
    }
    return onnx_emit_gather(c, l, tensor);
}

/* --- what a view has --- */

/* The parts of a view of (N, C[, H[, W]]), grouped by the dimension they form. */
static onnx_parts parts_of(const onnx_value *v, int axis) {
    const int d = axis == HP_AXIS_C ? 1 : axis == HP_AXIS_H ? 2 : axis == HP_AXIS_W ? 3 : 0;
    return d < v->n_dim ? onnx_view_parts(v->view, d) : (onnx_parts){NULL, 0};
}

static bool is_map_view(const onnx_reader *r, const onnx_value *v) {
    const onnx_view *w = v->view;
    return v->n_dim >= 3 && v->n_dim <= 4 && onnx_view_by_sample(r, v) && w->factor == 1 &&
           !onnx_view_rolls(w) && w->first[HP_AXIS_H] == 0 && w->first[HP_AXIS_W] == 0;
}

/* Does the dimension hold all of its own axis, followed by a part of the channels, one per row of a block,
 * with their step? */
static bool is_spread(const onnx_reader *r, const onnx_value *v, int axis, int64_t *block, int64_t *step) {
    const onnx_parts p = parts_of(v, axis);
    const int64_t own = onnx_extent(r, v, axis);
    int k = 0;
    *block = 1;
    *step = 0;
    if (own > 1) {
        if (p.n < 1 || p.part[0].axis != axis || p.part[0].extent != own || p.part[0].step != 1) return false;
        k = 1;
    }
    if (k < p.n && p.part[k].axis == HP_AXIS_C) {
        *block = p.part[k].extent;
        *step = p.part[k].step;
        k++;
    }
    return k == p.n;
}

/* --- channels to pixels --- */

static hp_status spread(const onnx_call *c, onnx_value *v, int32_t *y, bool *fits) {
    const onnx_parts p = parts_of(v, HP_AXIS_C);
    int64_t kh, kw, row, col;
    digits all = {0}, two;
    *fits = is_spread(c->r, v, HP_AXIS_H, &kh, &row) && is_spread(c->r, v, HP_AXIS_W, &kw, &col) &&
            p.n <= MOST_DIGITS;
    for (int i = 0; i < p.n && *fits; i++) *fits = p.part[i].axis == HP_AXIS_C;
    const digits blocks = {2, {kh, kw}, {row, col}};
    if (!*fits || !(*fits = two_digits(&blocks, &two))) return HP_OK;
    for (int i = 0; i < two.n && all.n < MOST_DIGITS; i++, all.n++) {
        all.extent[all.n] = two.extent[i];
        all.step[all.n] = two.step[i];
    }
    for (int i = 0; i < p.n && *fits; i++, all.n++) {
        *fits = all.n < MOST_DIGITS;
        if (!*fits) break;
        all.extent[all.n] = p.part[i].extent;
        all.step[all.n] = p.part[i].step;
    }
    if (!*fits || !(*fits = two_digits(&all, &two))) return HP_OK;
    return emit_digits(c, &two,
                       (hp_layer){.window.kh = (int32_t)kh,
                                  .window.kw = (int32_t)kw,
                                  .gather.out_c = (int32_t)v->dim[1],
                                  .gather.first = (int32_t)v->view->first[HP_AXIS_C]},
                       y);
}

/* --- pixels to channels --- */

/* Does the dimension hold every block-th row? */
static bool is_thinned(const onnx_reader *r, const onnx_value *v, int axis, int64_t block) {
    const onnx_parts p = parts_of(v, axis);
    const int64_t n = onnx_extent(r, v, axis);
    if (n % block) return false;
    if (n == block) return p.n == 0;
    return p.n == 1 && p.part[0].axis == axis && p.part[0].extent == n / block && p.part[0].step == block;
}

static hp_status gathered(const onnx_call *c, onnx_value *v, int32_t *y, bool *fits) {
    const onnx_parts p = parts_of(v, HP_AXIS_C);
    const int64_t channels = onnx_extent(c->r, v, HP_AXIS_C);
    int64_t block[HP_AXES] = {1, 1, 1, 1}, seen[HP_AXES] = {0};
    digits all = {0}, two;
    *fits = p.n <= MOST_DIGITS && v->view->first[HP_AXIS_C] == 0;
    for (int i = 0; i < p.n && *fits; i++) {
        const onnx_part *at = &p.part[i];
        *fits = at->step == 1 && at->axis != HP_AXIS_N && seen[at->axis]++ == 0;
        block[at->axis] = at->extent;
    }
    *fits = *fits && block[HP_AXIS_C] == channels && is_thinned(c->r, v, HP_AXIS_H, block[HP_AXIS_H]) &&
            is_thinned(c->r, v, HP_AXIS_W, block[HP_AXIS_W]);
    if (!*fits) return HP_OK;
    for (int i = 0; i < p.n; i++, all.n++) {
        const int axis = p.part[i].axis;
        all.extent[i] = p.part[i].extent;
        all.step[i] = axis == HP_AXIS_C ? 1 : axis == HP_AXIS_W ? channels : channels * block[HP_AXIS_W];
    }
    if (!(*fits = two_digits(&all, &two))) return HP_OK;
    HP_TRY(onnx_emit_space_to_depth(c, block[HP_AXIS_H], block[HP_AXIS_W], y));
    const bool as_it_is = two.n == 0 || (two.n == 1 && two.step[0] == 1);
    return as_it_is ? HP_OK : emit_digits(c, &two, (hp_layer){0}, y);
}

hp_status onnx_settle_shuffled(const onnx_call *c, onnx_value *v, bool *fits) {
    int32_t y = v->tensor;
    *fits = is_map_view(c->r, v);
    if (!*fits) return HP_OK;
    HP_TRY(spread(c, v, &y, fits));
    if (!*fits) HP_TRY(gathered(c, v, &y, fits));
    if (!*fits) return HP_OK;
    onnx_call own = *c;
    own.out = v;
    const int n_dim = v->n_dim, type = v->type;
    onnx_result(&own, y, n_dim);
    v->type = type;
    return HP_OK;
}
