/* onnx_fold_move.c - folds nodes that create, cut, join and reorder constants: Constant, ConstantOfShape,
 * Range, Reshape, Squeeze, Unsqueeze, Flatten, Transpose, Concat, Gather, Slice, Expand, DequantizeLinear. */
#include "networks/onnx/fold/fold.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- creating --- */

static hp_status from_array(onnx_call *c, onnx_const *out, int type, int n_dim, int64_t n, const void *data) {
    *out = (onnx_const){.name = "", .type = type, .n_dim = n_dim, .dim = {n}, .count = n, .data = data};
    if (!data) out->data = hp_arena_alloc(c->r->scratch, 1); /* an empty constant */
    return HP_OK;
}

hp_status onnx_fold_constant(onnx_call *c, onnx_const *out) {
    const Onnx__AttributeProto *a;
    if ((a = onnx_attr(c, "value")) && a->t) {
        HP_TRY(onnx_const_read(c->r, a->t, out));
        out->name = c->node->output[0]; /* it acts as an initializer */
        return HP_OK;
    }
    if ((a = onnx_attr(c, "value_float"))) return from_array(c, out, ONNX_FLOAT, 0, 1, &a->f);
    if ((a = onnx_attr(c, "value_int"))) return from_array(c, out, ONNX_INT64, 0, 1, &a->i);
    if ((a = onnx_attr(c, "value_floats")))
        return from_array(c, out, ONNX_FLOAT, 1, (int64_t)a->n_floats, a->floats);
    if ((a = onnx_attr(c, "value_ints")))
        return from_array(c, out, ONNX_INT64, 1, (int64_t)a->n_ints, a->ints);
    return onnx_fail(c, "holds no value");
}

hp_status onnx_fold_constantofshape(onnx_call *c, onnx_const *out) {
    const Onnx__AttributeProto *a = onnx_attr(c, "value");
    const float zero = 0;
    onnx_const value = {.name = "", .type = ONNX_FLOAT, .count = 1, .data = &zero};
    void *data;
    HP_TRY(onnx_ints(c, "shape", 0, ONNX_MOST_DIMS, out->dim, &out->n_dim));
    for (int d = 0; d < out->n_dim; d++)
        if (out->dim[d] < 0) return onnx_fail(c, "has a negative size");
    if (a && a->t) HP_TRY(onnx_const_read(c->r, a->t, &value));
    if (value.count != 1) return onnx_fail(c, "its value must be one number");
    out->type = onnx_result_type(value.type);
    HP_TRY(onnx_const_room(c, true, out, &data));
    for (int64_t i = 0; i < out->count; i++) onnx_put(out, data, i, &value, 0);
    return HP_OK;
}

hp_status onnx_fold_range(onnx_call *c, onnx_const *out) {
    const onnx_const *in[3];
    void *data;
    for (int i = 0; i < 3; i++) {
        HP_TRY(onnx_need_const(c, i, "bounds", &in[i]));
        if (in[i]->count != 1) return onnx_fail(c, "its bounds must be numbers");
    }
    const double start = onnx_real(in[0], 0), end = onnx_real(in[1], 0), step = onnx_real(in[2], 0),
                 n = ceil((end - start) / step);
    if (!(n < 1e6) || !onnx_type_of(in[0]->type)->put) return onnx_fail(c, "its bounds are not valid");
    out->type = in[0]->type;
    out->n_dim = 1;
    out->dim[0] = n > 0 ? (int64_t)n : 0;
    HP_TRY(onnx_const_room(c, true, out, &data));
    for (int64_t i = 0; i < out->count; i++) {
        const double v = start + (double)i * step;
        onnx_type_of(out->type)->put(data, i, v, (int64_t)v);
    }
    return HP_OK;
}

/* --- reshaping --- */

/* The constant with other dimensions; it remains the same initializer, even one quantised by rows. */
static hp_status same_data(onnx_call *c, const onnx_const *x, int n_dim, const int64_t *dim,
                           onnx_const *out) {
    *out = *x;
    out->n_dim = n_dim;
    memcpy(out->dim, dim, sizeof *dim * (size_t)n_dim);
    if (!onnx_count(n_dim, dim, &out->count)) return onnx_fail(c, "its shape is not valid");
    if (n_dim < 1 || x->n_dim < 1 || dim[0] != x->dim[0]) out->q = NULL;
    if (out->count == x->count) return HP_OK;
    return onnx_fail(c, "reshapes a constant to another number of elements");
}

hp_status onnx_fold_reshape(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    int64_t dim[ONNX_MOST_DIMS], known = 1, allow_zero = 0;
    int n, open = -1;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_attr_int(c, "allowzero", 0, 1, &allow_zero));
    HP_TRY(onnx_ints(c, "shape", 1, ONNX_MOST_DIMS, dim, &n));
    for (int d = 0; d < n; d++) {
        if (dim[d] == 0 && !allow_zero && d < x->n_dim) dim[d] = x->dim[d];
        if (dim[d] == -1 && open < 0)
            open = d;
        else if (dim[d] < 0 || __builtin_mul_overflow(known, dim[d], &known))
            return onnx_fail(c, "its shape is not valid");
    }
    if (open >= 0) dim[open] = known ? x->count / known : 0;
    return same_data(c, x, n, dim, out);
}

hp_status onnx_fold_flatten(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    int64_t dim[2] = {1, 1}, axis = 1;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_attr_int(c, "axis", -x->n_dim, x->n_dim, &axis));
    axis = axis < 0 ? axis + x->n_dim : axis;
    for (int d = 0; d < x->n_dim; d++) dim[d < axis ? 0 : 1] *= x->dim[d];
    return same_data(c, x, 2, dim, out);
}

hp_status onnx_fold_squeeze(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    int64_t axes[ONNX_MOST_DIMS], dim[ONNX_MOST_DIMS];
    bool drop[ONNX_MOST_DIMS] = {0};
    int n, left = 0;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_ints(c, "axes", 1, ONNX_MOST_DIMS, axes, &n));
    for (int i = 0; i < n; i++) {
        int axis;
        HP_TRY(onnx_axis(c, axes[i], x->n_dim, &axis));
        drop[axis] = true;
    }
    for (int d = 0; d < x->n_dim; d++)
        if (!drop[d] && (n > 0 || x->dim[d] != 1)) dim[left++] = x->dim[d];
    return same_data(c, x, left, dim, out);
}

hp_status onnx_fold_unsqueeze(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    int64_t axes[ONNX_MOST_DIMS], dim[ONNX_MOST_DIMS];
    bool added[ONNX_MOST_DIMS] = {0};
    int n, next = 0, count = 0;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_ints(c, "axes", 1, ONNX_MOST_DIMS, axes, &n));
    if (x->n_dim + n > ONNX_MOST_DIMS) return onnx_fail(c, "makes more than %d dimensions", ONNX_MOST_DIMS);
    for (int i = 0; i < n; i++) {
        int axis;
        HP_TRY(onnx_axis(c, axes[i], x->n_dim + n, &axis));
        count += !added[axis];
        added[axis] = true;
    }
    if (count != n) return onnx_fail(c, "adds a dimension twice");
    for (int d = 0; d < x->n_dim + n; d++) dim[d] = added[d] ? 1 : x->dim[next++];
    return same_data(c, x, x->n_dim + n, dim, out);
}

hp_status onnx_fold_identity(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    *out = *x;
    return HP_OK;
}

/* --- reordering, cutting, joining --- */

/* out[i] = in at base + sum of (index along d) * step[d]. */
static void copy_strided(const onnx_const *x, const onnx_const *out, void *data, int64_t base,
                         const int64_t *step) {
    for (int64_t i = 0; data && i < out->count; i++) {
        int64_t rest = i, at = base;
        for (int d = out->n_dim - 1; d >= 0; d--) {
            at += rest % out->dim[d] * step[d];
            rest /= out->dim[d];
        }
        onnx_put(out, data, i, x, at);
    }
}

static void steps_of(const onnx_const *x, int64_t *step) {
    int64_t n = 1;
    for (int d = x->n_dim - 1; d >= 0; d--) {
        step[d] = n;
        n *= x->dim[d];
    }
}

hp_status onnx_fold_transpose(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    int64_t perm[ONNX_MOST_DIMS], step[ONNX_MOST_DIMS], own[ONNX_MOST_DIMS];
    bool seen[ONNX_MOST_DIMS] = {0};
    int n;
    void *data;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_attr_ints(c, "perm", ONNX_MOST_DIMS, perm, &n));
    for (int d = 0; d < x->n_dim && n == 0; d++) perm[d] = x->n_dim - 1 - d;
    if (n != 0 && n != x->n_dim)
        return onnx_fail(c, "its perm has %d numbers for %d dimensions", n, x->n_dim);
    steps_of(x, own);
    *out = (onnx_const){.name = x->name, .type = onnx_result_type(x->type), .n_dim = x->n_dim};
    for (int d = 0; d < x->n_dim; d++) {
        if (perm[d] < 0 || perm[d] >= x->n_dim || seen[perm[d]])
            return onnx_fail(c, "its perm is not a permutation");
        seen[perm[d]] = true;
        out->dim[d] = x->dim[perm[d]];
        step[d] = own[perm[d]];
    }
    if (x->n_dim == 2 && perm[0] == 1 && *x->name) out->turned = x->name;
    HP_TRY(onnx_const_room(c, x->data != NULL, out, &data));
    copy_strided(x, out, data, 0, step);
    return HP_OK;
}

/* Keeps the last two dimensions' elements on and above a diagonal, or on and below it; the rest becomes 0. */
hp_status onnx_fold_trilu(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    const int64_t zero = 0;
    const onnx_const nothing = {.name = "", .type = ONNX_INT64, .count = 1, .data = &zero};
    int64_t upper = 1;
    double k = 0;
    void *data;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_attr_int(c, "upper", 0, 1, &upper));
    HP_TRY(onnx_need_number(c, 1, "diagonal", &k));
    if (x->n_dim < 2) return onnx_fail(c, "its input is not a matrix");
    *out = (onnx_const){.name = "", .type = onnx_result_type(x->type), .n_dim = x->n_dim};
    memcpy(out->dim, x->dim, sizeof out->dim);
    HP_TRY(onnx_const_room(c, x->data != NULL, out, &data));
    for (int64_t i = 0; data && i < out->count; i++) {
        const int64_t cols = x->dim[x->n_dim - 1], row = i / cols % x->dim[x->n_dim - 2], col = i % cols;
        const bool keep = upper ? (double)(col - row) >= k : (double)(col - row) <= k;
        onnx_put(out, data, i, keep ? x : &nothing, keep ? i : 0);
    }
    return HP_OK;
}

hp_status onnx_fold_expand(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    int64_t wish[ONNX_MOST_DIMS], own[ONNX_MOST_DIMS], step[ONNX_MOST_DIMS];
    int n;
    void *data;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_ints(c, "shape", 1, ONNX_MOST_DIMS, wish, &n));
    steps_of(x, own);
    *out = (onnx_const){
        .name = x->name, .type = onnx_result_type(x->type), .n_dim = n > x->n_dim ? n : x->n_dim};
    for (int d = 0; d < out->n_dim; d++) {
        const int x_d = d - (out->n_dim - x->n_dim), w_d = d - (out->n_dim - n);
        const int64_t a = x_d >= 0 ? x->dim[x_d] : 1, b = w_d >= 0 ? wish[w_d] : 1;
        if (b < 0 || (a != 1 && b != 1 && a != b)) return onnx_fail(c, "its shape is not valid");
        out->dim[d] = a == 1 ? b : a;
        step[d] = a == 1 ? 0 : own[x_d];
    }
    HP_TRY(onnx_const_room(c, x->data != NULL, out, &data));
    if (out->count != x->count) out->name = "";
    copy_strided(x, out, data, 0, step);
    return HP_OK;
}

/* Products of the dimensions before, at and after `axis`. */
typedef struct around {
    int64_t before, at, after;
} around;

static around around_of(const onnx_const *x, int axis) {
    around a = {1, x->dim[axis], 1};
    for (int d = 0; d < axis; d++) a.before *= x->dim[d];
    for (int d = axis + 1; d < x->n_dim; d++) a.after *= x->dim[d];
    return a;
}

hp_status onnx_fold_concat(onnx_call *c, onnx_const *out) {
    const onnx_const *first, *x;
    int64_t given = 0, filled = 0;
    int axis;
    bool known = true;
    void *data;
    HP_TRY(onnx_need_const(c, 0, "input", &first));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, first->n_dim, &axis));
    *out = (onnx_const){.name = "", .type = onnx_result_type(first->type), .n_dim = first->n_dim};
    memcpy(out->dim, first->dim, sizeof out->dim);
    out->dim[axis] = 0;
    for (int i = 0; i < c->n_in; i++) {
        HP_TRY(onnx_need_const(c, i, "input", &x));
        bool fits = x->n_dim == first->n_dim && x->type == first->type;
        for (int d = 0; d < first->n_dim && fits; d++) fits = d == axis || x->dim[d] == first->dim[d];
        if (!fits) return onnx_fail(c, "joins constants that do not fit");
        known &= x->data != NULL;
        out->dim[axis] += x->dim[axis];
    }
    HP_TRY(onnx_const_room(c, known, out, &data));
    const around whole = around_of(out, axis);
    for (int k = 0; data && k < c->n_in; k++) {
        HP_TRY(onnx_need_const(c, k, "input", &x));
        const around part = around_of(x, axis);
        for (int64_t i = 0; i < x->count; i++) {
            const int64_t row = i / (part.at * part.after), at = i % (part.at * part.after);
            onnx_put(out, data, row * whole.at * whole.after + filled + at, x, i);
        }
        filled += part.at * part.after;
    }
    return HP_OK;
}

hp_status onnx_fold_gather(onnx_call *c, onnx_const *out) {
    const onnx_const *x, *index;
    int64_t given = 0;
    int axis;
    void *data;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_need_const(c, 1, "indices", &index));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, x->n_dim, &axis));
    if (x->n_dim - 1 + index->n_dim > ONNX_MOST_DIMS) return onnx_fail(c, "makes too many dimensions");
    const around a = around_of(x, axis);
    *out = (onnx_const){.name = "", .type = onnx_result_type(x->type)};
    for (int d = 0; d < axis; d++) out->dim[out->n_dim++] = x->dim[d];
    for (int d = 0; d < index->n_dim; d++) out->dim[out->n_dim++] = index->dim[d];
    for (int d = axis + 1; d < x->n_dim; d++) out->dim[out->n_dim++] = x->dim[d];
    HP_TRY(onnx_const_room(c, x->data && index->data, out, &data));
    for (int64_t i = 0; data && i < out->count; i++) {
        int64_t k = onnx_integer(index, i / a.after % index->count);
        k = k < 0 ? k + a.at : k;
        if (k < 0 || k >= a.at) return onnx_fail(c, "its index is out of range");
        onnx_put(out, data, i, x, (i / (a.after * index->count) * a.at + k) * a.after + i % a.after);
    }
    return HP_OK;
}

hp_status onnx_slice_bounds(const onnx_call *c, int64_t n, int64_t start, int64_t end, int64_t step,
                            int64_t *first, int64_t *count) {
    if (step == 0 || step == INT64_MIN) return onnx_fail(c, "has a step of 0");
    start = start < 0 ? start + n : start;
    end = end < 0 && end >= -n ? end + n : end;
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    start = start < 0 ? (step > 0 ? 0 : -1) : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    const int64_t span = step > 0 ? end - start : start - end, pace = step > 0 ? step : -step;
    *first = start;
    *count = span > 0 ? (span - 1) / pace + 1 : 0;
    return HP_OK;
}

hp_status onnx_fold_slice(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    int64_t start[ONNX_MOST_DIMS], end[ONNX_MOST_DIMS], axes[ONNX_MOST_DIMS], pace[ONNX_MOST_DIMS];
    int64_t own[ONNX_MOST_DIMS], step[ONNX_MOST_DIMS], base = 0;
    bool cut[ONNX_MOST_DIMS] = {0};
    int n, n_end, n_axes, n_pace;
    void *data;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    HP_TRY(onnx_ints(c, "starts", 1, ONNX_MOST_DIMS, start, &n));
    HP_TRY(onnx_ints(c, "ends", 2, ONNX_MOST_DIMS, end, &n_end));
    HP_TRY(onnx_ints(c, "axes", 3, ONNX_MOST_DIMS, axes, &n_axes));
    HP_TRY(onnx_ints(c, "steps", 4, ONNX_MOST_DIMS, pace, &n_pace));
    if (n != n_end || (n_axes && n_axes != n) || (n_pace && n_pace != n) || n > x->n_dim)
        return onnx_fail(c, "its starts, ends, axes and steps do not belong together");
    steps_of(x, own);
    memcpy(step, own, sizeof step);
    *out = (onnx_const){.name = "", .type = onnx_result_type(x->type), .n_dim = x->n_dim};
    memcpy(out->dim, x->dim, sizeof out->dim);
    for (int i = 0; i < n; i++) {
        int axis;
        int64_t first = 0;
        HP_TRY(onnx_axis(c, n_axes ? axes[i] : i, x->n_dim, &axis));
        HP_TRY(onnx_slice_bounds(c, x->dim[axis], start[i], end[i], n_pace ? pace[i] : 1, &first,
                                 &out->dim[axis]));
        if (cut[axis]) return onnx_fail(c, "cuts a dimension twice");
        cut[axis] = true;
        base += first * own[axis];
        if (out->dim[axis] > 1 && n_pace) step[axis] = own[axis] * pace[i];
    }
    HP_TRY(onnx_const_room(c, x->data != NULL, out, &data));
    copy_strided(x, out, data, base, step);
    return HP_OK;
}
