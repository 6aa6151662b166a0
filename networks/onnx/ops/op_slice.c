/* op_slice.c - Slice, Split and Gather of tensors: views of some rows, columns or channels. */
#include "networks/onnx/ops/op_view.h"

#include <inttypes.h>
#include <string.h>

/* Indices of a dimension. */
typedef struct range {
    int64_t first, count, step;
} range;

static hp_status cut(const onnx_call *c, const onnx_value *x, onnx_view *w, int d, range s) {
    if (s.step > 0 && onnx_view_cut(w, d, x->dim[d], s.first, s.count, s.step)) return HP_OK;
    return onnx_fail(c,
                     "takes %" PRId64 " of the %" PRId64
                     " indices of dimension %d: of samples, of an empty result, or of axes that were "
                     "merged this is not supported",
                     s.count, x->dim[d], d);
}

static hp_status start(const onnx_call *c, onnx_value **x, onnx_view *w) {
    HP_TRY(onnx_need_view(c, 0, x));
    if (!(*x)->quant && onnx_view_of(c->r, *x, w)) return HP_OK;
    return onnx_fail(c, "takes some of a tensor that is quantised: put DequantizeLinear before it");
}

/* A dimension that merges several axes is first turned into one by layers, then cut. */
static hp_status settle_merged(const onnx_call *c, onnx_value *x, onnx_view *w, int d) {
    if (onnx_view_parts(w, d).n < 2) return HP_OK;
    HP_TRY(onnx_settle(c, x));
    HP_ASSERT(onnx_view_of(c->r, x, w));
    return HP_OK;
}

/* Rejects a slice of the samples. */
static hp_status finish(const onnx_call *c, onnx_value *out, const onnx_value *x, const onnx_view *w,
                        int n_dim, const int64_t *dim) {
    int64_t samples = 1;
    for (int i = 0; i < w->n; i++)
        if (w->part[i].axis == HP_AXIS_N) samples *= w->part[i].extent;
    if (samples != c->r->batch) return onnx_fail(c, "takes some of the samples, which is not supported");
    onnx_result_view(c, out, x, w, n_dim, dim);
    return HP_OK;
}

hp_status onnx_read_slice(onnx_call *c) {
    onnx_value *x;
    onnx_view w;
    int64_t first[ONNX_MOST_DIMS], end[ONNX_MOST_DIMS], axes[ONNX_MOST_DIMS], pace[ONNX_MOST_DIMS],
        dim[ONNX_MOST_DIMS];
    int n, n_end, n_axes, n_pace;
    HP_TRY(start(c, &x, &w));
    HP_TRY(onnx_ints(c, "starts", 1, ONNX_MOST_DIMS, first, &n));
    HP_TRY(onnx_ints(c, "ends", 2, ONNX_MOST_DIMS, end, &n_end));
    HP_TRY(onnx_ints(c, "axes", 3, ONNX_MOST_DIMS, axes, &n_axes));
    HP_TRY(onnx_ints(c, "steps", 4, ONNX_MOST_DIMS, pace, &n_pace));
    if (n != n_end || n > x->n_dim || (n_axes && n_axes != n) || (n_pace && n_pace != n))
        return onnx_fail(c, "its starts, ends, axes and steps differ in number");
    memcpy(dim, x->dim, sizeof dim);
    for (int i = 0; i < n; i++) {
        int d;
        range s = {.step = n_pace ? pace[i] : 1};
        HP_TRY(onnx_axis(c, n_axes ? axes[i] : i, x->n_dim, &d));
        if (dim[d] != x->dim[d]) return onnx_fail(c, "cuts a dimension twice");
        HP_TRY(onnx_slice_bounds(c, x->dim[d], first[i], end[i], s.step, &s.first, &s.count));
        const bool first_cut = memcmp(dim, x->dim, sizeof *dim * (size_t)x->n_dim) == 0;
        if (first_cut && (s.count != x->dim[d] || s.step != 1)) HP_TRY(settle_merged(c, x, &w, d));
        HP_TRY(cut(c, x, &w, d, s));
        dim[d] = s.count;
    }
    return finish(c, c->out, x, &w, x->n_dim, dim);
}

/* Sizes as given, or equal ones for all outputs; the last may be smaller. */
static hp_status split_sizes(const onnx_call *c, int64_t size, int64_t *part) {
    const int64_t outs = (int64_t)c->node->n_output;
    int64_t sum = 0;
    int n;
    HP_TRY(onnx_ints(c, "split", 1, ONNX_MOST_IN, part, &n));
    if (outs > ONNX_MOST_IN || (n && n != outs))
        return onnx_fail(c, "has %d sizes for %" PRId64 " outputs", n, outs);
    for (int64_t i = 0; i < outs && n == 0; i++) {
        const int64_t each = (size + outs - 1) / outs;
        part[i] = each < size - i * each ? each : size - i * each;
    }
    for (int64_t i = 0; i < outs; i++) {
        if (part[i] < 1 || part[i] > size) return onnx_fail(c, "its sizes are not valid");
        sum += part[i];
    }
    return sum == size ? HP_OK : onnx_fail(c, "its sizes are not those of its input");
}

hp_status onnx_read_split(onnx_call *c) {
    onnx_value *x;
    onnx_view w;
    int64_t axis = 0, part[ONNX_MOST_IN], dim[ONNX_MOST_DIMS], outs = 0, first = 0;
    int d;
    HP_TRY(start(c, &x, &w));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &axis));
    HP_TRY(onnx_attr_int(c, "num_outputs", 1, ONNX_MOST_IN, &outs));
    HP_TRY(onnx_axis(c, axis, x->n_dim, &d));
    HP_TRY(split_sizes(c, x->dim[d], part));
    if (c->node->n_output > 1) HP_TRY(settle_merged(c, x, &w, d));
    memcpy(dim, x->dim, sizeof dim);
    for (size_t k = 0; k < c->node->n_output; k++) {
        onnx_view one = w;
        onnx_value *out = onnx_out(c, k);
        HP_TRY(cut(c, x, &one, d, (range){first, part[k], 1}));
        dim[d] = part[k];
        if (out) HP_TRY(finish(c, out, x, &one, x->n_dim, dim));
        first += part[k];
    }
    return HP_OK;
}

/* Takes one index of a dimension; a scalar index removes the dimension. */
hp_status onnx_read_gather(onnx_call *c) {
    onnx_value *x;
    onnx_view w;
    const onnx_const *index;
    int64_t axis = 0, dim[ONNX_MOST_DIMS];
    int d, n = 0;
    HP_TRY(start(c, &x, &w));
    HP_TRY(onnx_need_const(c, 1, "index", &index));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &axis));
    HP_TRY(onnx_axis(c, axis, x->n_dim, &d));
    if (index->count != 1 || index->n_dim > 1)
        return onnx_fail(c, "takes %" PRId64 " indices of a tensor; one is supported", index->count);
    int64_t at = onnx_integer(index, 0);
    at += at < 0 ? x->dim[d] : 0;
    if (at < 0 || at >= x->dim[d]) return onnx_fail(c, "its index is out of range");
    HP_TRY(cut(c, x, &w, d, (range){at, 1, 1}));
    for (int k = 0; k < x->n_dim; k++) {
        if (k == d && index->n_dim == 0) continue;
        w.end[n] = w.end[k];
        dim[n++] = k == d ? 1 : x->dim[k];
    }
    return finish(c, c->out, x, &w, n, dim);
}
