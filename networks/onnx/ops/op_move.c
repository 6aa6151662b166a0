/* op_move.c - nodes that only regroup, reorder or join: Reshape, Flatten, Squeeze, Unsqueeze, Transpose,
 * Expand, Identity, Dropout, Cast, Concat; and Shape, which turns a tensor's shape into a constant. */
#include "networks/onnx/ops/op_view.h"

#include <inttypes.h>
#include <string.h>

static int64_t product(const int64_t *dim, int first, int end) {
    int64_t n = 1; /* product of a tensor's dimensions, within 62 bits (onnx/onnx_emit.c) */
    for (int i = first; i < end; i++) n *= dim[i];
    return n;
}

static hp_status emit_regrouped(onnx_call *c, const onnx_value *x, const int64_t *dim, int n_dim) {
    onnx_value as = *x;
    onnx_view w;
    if (x->kind == ONNX_TENSOR && onnx_regroup(c->r, &as, dim, n_dim)) {
        onnx_result_like(c, x->tensor, &as);
        c->out->quant = x->quant;
        return HP_OK;
    }
    if (x->quant || !onnx_view_of(c->r, x, &w) || !onnx_view_reshape(&w, dim, n_dim))
        return onnx_fail(
            c, "regroups elements across samples, channels, rows or columns, which is not supported: "
               "only flattening and cutting are (is the --image the one that the model was made for?)");
    onnx_result_view(c, c->out, x, &w, n_dim, dim);
    return HP_OK;
}

/* Shape with 0 (keep the input's) and one -1 (the rest). */
hp_status onnx_resolve_shape(const onnx_call *c, const onnx_value *x, bool allow_zero, int64_t *dim, int n) {
    int64_t known = 1, whole = product(x->dim, 0, x->n_dim);
    int open = -1;
    for (int i = 0; i < n; i++) {
        if (dim[i] == 0 && !allow_zero && i < x->n_dim) dim[i] = x->dim[i];
        if (dim[i] == -1 && open < 0)
            open = i;
        else if (dim[i] < 1 || __builtin_mul_overflow(known, dim[i], &known))
            return onnx_fail(c, "its shape is not valid");
    }
    if (open >= 0 && whole % known == 0) {
        dim[open] = whole / known;
        known = whole;
    }
    if (known != whole)
        return onnx_fail(c,
                         "reshapes %" PRId64
                         " elements to another number of them: is the --image the one that "
                         "the model was made for?",
                         whole);
    return HP_OK;
}

hp_status onnx_read_reshape(onnx_call *c) {
    onnx_value *x;
    int64_t dim[ONNX_MOST_DIMS], allow_zero = 0;
    int n;
    HP_TRY(onnx_need_view(c, 0, &x));
    HP_TRY(onnx_attr_int(c, "allowzero", 0, 1, &allow_zero));
    if (!onnx_in(c, 1) && !onnx_attr(c, "shape")) return onnx_fail(c, "its shape is missing");
    HP_TRY(onnx_ints(c, "shape", 1, ONNX_MOST_DIMS, dim, &n));
    HP_TRY(onnx_resolve_shape(c, x, allow_zero != 0, dim, n));
    return emit_regrouped(c, x, dim, n);
}

hp_status onnx_read_flatten(onnx_call *c) {
    onnx_value *x;
    int64_t axis = 1;
    HP_TRY(onnx_need_view(c, 0, &x));
    HP_TRY(onnx_attr_int(c, "axis", -x->n_dim, x->n_dim, &axis));
    const int at = (int)(axis < 0 ? axis + x->n_dim : axis);
    const int64_t dim[2] = {product(x->dim, 0, at), product(x->dim, at, x->n_dim)};
    return emit_regrouped(c, x, dim, 2);
}

hp_status onnx_read_squeeze(onnx_call *c) {
    onnx_value *x;
    int64_t axes[ONNX_MOST_DIMS], dim[ONNX_MOST_DIMS];
    bool drop[ONNX_MOST_DIMS] = {0};
    int n, left = 0;
    HP_TRY(onnx_need_view(c, 0, &x));
    HP_TRY(onnx_ints(c, "axes", 1, ONNX_MOST_DIMS, axes, &n));
    for (int i = 0; i < n; i++) {
        int axis;
        HP_TRY(onnx_axis(c, axes[i], x->n_dim, &axis));
        if (x->dim[axis] != 1) return onnx_fail(c, "squeezes a dimension of %" PRId64, x->dim[axis]);
        drop[axis] = true;
    }
    for (int d = 0; d < x->n_dim; d++)
        if (!drop[d] && (n > 0 || x->dim[d] != 1)) dim[left++] = x->dim[d];
    return emit_regrouped(c, x, dim, left);
}

hp_status onnx_read_unsqueeze(onnx_call *c) {
    onnx_value *x;
    int64_t axes[ONNX_MOST_DIMS], dim[ONNX_MOST_DIMS];
    bool added[ONNX_MOST_DIMS] = {0};
    int n, next = 0;
    HP_TRY(onnx_need_view(c, 0, &x));
    HP_TRY(onnx_ints(c, "axes", 1, ONNX_MOST_DIMS, axes, &n));
    if (x->n_dim + n > ONNX_MOST_DIMS) return onnx_fail(c, "makes more than %d dimensions", ONNX_MOST_DIMS);
    for (int i = 0; i < n; i++) {
        int axis;
        HP_TRY(onnx_axis(c, axes[i], x->n_dim + n, &axis));
        if (added[axis]) return onnx_fail(c, "adds a dimension twice");
        added[axis] = true;
    }
    for (int d = 0; d < x->n_dim + n; d++) dim[d] = added[d] ? 1 : x->dim[next++];
    return emit_regrouped(c, x, dim, x->n_dim + n);
}

/* --- order --- */

static hp_status read_perm(const onnx_call *c, int n_dim, int *perm) {
    int64_t given[ONNX_MOST_DIMS];
    int n;
    bool seen[ONNX_MOST_DIMS] = {0};
    HP_TRY(onnx_attr_ints(c, "perm", ONNX_MOST_DIMS, given, &n));
    for (int d = 0; d < n_dim && n == 0; d++) perm[d] = n_dim - 1 - d;
    if (n != 0 && n != n_dim) return onnx_fail(c, "its perm has %d numbers for %d dimensions", n, n_dim);
    for (int d = 0; d < n; d++) {
        if (given[d] < 0 || given[d] >= n_dim || seen[given[d]])
            return onnx_fail(c, "its perm is not a permutation");
        seen[given[d]] = true;
        perm[d] = (int)given[d];
    }
    return HP_OK;
}

/* Axes of extent 1 keep their position if every dimension is one axis; otherwise they come last. */
static void permute_order(const onnx_reader *r, const onnx_value *x, const int *perm, const int *of,
                          int8_t order[HP_AXES]) {
    bool one_to_one = x->n_dim == HP_AXES;
    int n = 0;
    for (int i = 0; i < HP_AXES && one_to_one; i++) one_to_one = x->dim[i] == onnx_extent(r, x, x->order[i]);
    for (int d = 0; d < x->n_dim && one_to_one; d++) order[d] = x->order[perm[d]];
    if (one_to_one) return;
    for (int d = 0; d <= x->n_dim; d++)
        for (int i = 0; i < HP_AXES; i++)
            if (of[x->order[i]] == (d < x->n_dim ? perm[d] : -1)) order[n++] = x->order[i];
}

hp_status onnx_read_transpose(onnx_call *c) {
    onnx_value *x;
    int perm[ONNX_MOST_DIMS], of[HP_AXES];
    HP_TRY(onnx_need_view(c, 0, &x));
    HP_TRY(read_perm(c, x->n_dim, perm));
    onnx_value as = *x;
    for (int d = 0; d < x->n_dim; d++) as.dim[d] = x->dim[perm[d]];
    if (x->kind == ONNX_VIEW) {
        onnx_view w = *x->view;
        onnx_view_permute(&w, perm, x->n_dim);
        onnx_result_view(c, c->out, x, &w, x->n_dim, as.dim);
        return HP_OK;
    }
    if (!onnx_axes(c->r, x, of)) return onnx_fail(c, "transposes something that was cut through an axis");
    permute_order(c->r, x, perm, of, as.order);
    onnx_result_like(c, x->tensor, &as);
    c->out->quant = x->quant;
    return HP_OK;
}

/* --- identity --- */

static hp_status pass_through(onnx_call *c) {
    const onnx_value own = *c->out;
    if (!onnx_in(c, 0)) return onnx_fail(c, "its input is missing");
    *c->out = *onnx_in(c, 0);
    c->out->name = own.name;
    c->out->producer = own.producer;
    c->out->needed = own.needed;
    return HP_OK;
}

hp_status onnx_read_identity(onnx_call *c) {
    return pass_through(c);
}

hp_status onnx_read_dropout(onnx_call *c) {
    double training = 0, ratio = 0.5;
    HP_TRY(onnx_attr_float(c, "ratio", &ratio));
    HP_TRY(onnx_need_number(c, 1, "ratio", &ratio));
    HP_TRY(onnx_need_number(c, 2, "training_mode", &training));
    if (training != 0 && ratio != 0)
        return onnx_fail(c, "in training mode is not supported: export for inference");
    return pass_through(c);
}

/* The plan decides the precision of reals (--prec); integers stay integers. */
hp_status onnx_read_cast(onnx_call *c) {
    const onnx_value *x = onnx_in(c, 0);
    int64_t to = 0;
    if (!x) return onnx_fail(c, "its input is missing");
    HP_TRY(onnx_attr_int(c, "to", 1, INT32_MAX, &to));
    const onnx_type *type = onnx_type_of((int)to), *from = onnx_type_of(x->type);
    if (!type || (type->whole && !from->whole) || (type->whole && type->bytes < from->bytes))
        return onnx_fail(c, "of a tensor to another kind of whole numbers is not supported");
    HP_TRY(pass_through(c));
    c->out->type = (int)to;
    return HP_OK;
}

hp_status onnx_read_expand(onnx_call *c) {
    onnx_value *x;
    int64_t given[ONNX_MOST_DIMS], dim[ONNX_MOST_DIMS];
    int n;
    HP_TRY(onnx_need_view(c, 0, &x));
    HP_TRY(onnx_ints(c, "shape", 1, ONNX_MOST_DIMS, given, &n));
    const int n_dim = n > x->n_dim ? n : x->n_dim;
    for (int d = 0; d < n_dim; d++) {
        const int own = d - (n_dim - x->n_dim), wish = d - (n_dim - n);
        dim[d] = own >= 0 ? x->dim[own] : 1;
        if (wish >= 0 && given[wish] != 1 && given[wish] != dim[d])
            return onnx_fail(c, "that repeats elements is not supported");
    }
    return emit_regrouped(c, x, dim, n_dim);
}

/* --- dimensions as constants --- */

static hp_status fold_shape(const onnx_call *c, int n, const int64_t *dim, onnx_const *out) {
    int64_t start = 0, end = INT64_MAX;
    HP_TRY(onnx_attr_int(c, "start", INT64_MIN, INT64_MAX, &start));
    HP_TRY(onnx_attr_int(c, "end", INT64_MIN, INT64_MAX, &end));
    start = start < 0 ? start + n : start;
    end = end < 0 ? end + n : end;
    start = start < 0 ? 0 : start;
    end = end > n ? n : end;
    const int64_t count = end > start ? end - start : 0;
    int64_t *data = HP_NEW(c->r->scratch, int64_t, count + 1);
    for (int64_t i = 0; i < count; i++) data[i] = dim[start + i];
    *out = (onnx_const){
        .name = "", .type = ONNX_INT64, .n_dim = 1, .dim = {count}, .count = count, .data = data};
    return HP_OK;
}

static hp_status fold_size(const onnx_call *c, int64_t count, onnx_const *out) {
    int64_t *data = HP_NEW(c->r->scratch, int64_t, 1);
    *data = count;
    *out = (onnx_const){.name = "", .type = ONNX_INT64, .count = 1, .data = data};
    return HP_OK;
}

hp_status onnx_fold_shape(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    return fold_shape(c, x->n_dim, x->dim, out);
}

hp_status onnx_read_shape(onnx_call *c) {
    const onnx_value *x = onnx_in(c, 0);
    if (!x) return onnx_fail(c, "its input is missing");
    c->out->kind = ONNX_CONST;
    return fold_shape(c, x->n_dim, x->dim, &c->out->c);
}

hp_status onnx_fold_size(onnx_call *c, onnx_const *out) {
    const onnx_const *x;
    HP_TRY(onnx_need_const(c, 0, "input", &x));
    return fold_size(c, x->count, out);
}

hp_status onnx_read_size(onnx_call *c) {
    const onnx_value *x = onnx_in(c, 0);
    if (!x) return onnx_fail(c, "its input is missing");
    c->out->kind = ONNX_CONST;
    return fold_size(c, product(x->dim, 0, x->n_dim), &c->out->c);
}

/* --- joining --- */

hp_status onnx_check_part(const onnx_call *c, const onnx_value *first, const onnx_value *x, int axis) {
    bool fits = x->n_dim == first->n_dim && onnx_is_channel_dim(c->r, x, axis);
    for (int d = 0; d < x->n_dim && fits; d++) fits = d == axis || x->dim[d] == first->dim[d];
    const bool swapped = (x->order[HP_AXES - 1] == HP_AXIS_C) != (first->order[HP_AXES - 1] == HP_AXIS_C);
    if (fits && !(swapped && onnx_extent(c->r, x, HP_AXIS_H) * onnx_extent(c->r, x, HP_AXIS_W) > 1))
        return HP_OK;
    return onnx_fail(
        c,
        "joins along dimension %d what differs elsewhere or is laid out differently; maps of equal "
        "size joined along channels are supported",
        axis);
}

/* If there are more inputs than a layer can have, they form a chain. */
hp_status onnx_join(onnx_call *c, const int32_t *part, int n, int32_t *y) {
    *y = part[0];
    for (int next = 1; next < n;) {
        hp_layer l = {.op = HP_CONCAT, .n_in = 1, .in = {*y}};
        while (l.n_in < HP_MAX_IN && next < n) l.in[l.n_in++] = part[next++];
        HP_TRY(onnx_emit(c, l, 0, y));
    }
    return HP_OK;
}

hp_status onnx_read_concat(onnx_call *c) {
    onnx_value *first, *x;
    int64_t given = 1, channels = 0;
    int axis;
    int32_t part[ONNX_MOST_IN] = {0}, y;
    HP_TRY(onnx_need_tensor(c, 0, &first));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, first->n_dim, &axis));
    for (int i = 0; i < c->n_in; i++) {
        HP_TRY(onnx_need_tensor(c, i, &x));
        HP_TRY(onnx_check_part(c, first, x, axis));
        part[i] = x->tensor;
        channels += x->dim[axis];
    }
    HP_TRY(onnx_join(c, part, c->n_in, &y));
    onnx_value like = *first;
    like.dim[axis] = channels;
    onnx_result_like(c, y, &like);
    return HP_OK;
}
