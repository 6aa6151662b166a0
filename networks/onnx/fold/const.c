/* const.c - constants: reads the file's tensors and allocates computed ones. */
#include "networks/onnx/onnx_inside.h"

#include <inttypes.h>
#include <string.h>

bool onnx_count(int n_dim, const int64_t *dim, int64_t *count) {
    const int64_t most = INT64_C(1) << 40;
    int64_t room = 1; /* product of the non-empty dimensions, so that products of any subset stay small */
    *count = 1;
    for (int d = 0; d < n_dim; d++) {
        if (dim[d] < 0 || dim[d] > most) return false;
        if (dim[d] > 0 && (__builtin_mul_overflow(room, dim[d], &room) || room > most)) return false;
        *count *= dim[d] > 0;
    }
    *count *= room;
    return true;
}

/* --- tensors of the file --- */

static hp_status tensor_fail(const onnx_reader *r, const Onnx__TensorProto *t, const char *what) {
    return hp_fail(r->err, HP_EDATA, "%s: constant '%s': %s", r->file,
                   onnx_clean(r->scratch, t->name ? t->name : ""), what);
}

static hp_status read_shape(const onnx_reader *r, const Onnx__TensorProto *t, onnx_const *c) {
    if (t->n_dims > ONNX_MOST_DIMS) return tensor_fail(r, t, "more than 8 dimensions are not supported");
    c->n_dim = (int)t->n_dims;
    for (int i = 0; i < c->n_dim; i++) c->dim[i] = t->dims[i];
    if (!onnx_count(c->n_dim, c->dim, &c->count))
        return tensor_fail(r, t, "its dimensions are negative or too large");
    return HP_OK;
}

/* The typed array that holds the elements if there are no raw bytes. */
typedef struct typed {
    const void *data;
    size_t n;
    int type; /* type of the array's elements */
} typed;

static typed typed_of(const Onnx__TensorProto *t) {
    switch (t->data_type) {
    case ONNX_FLOAT:
        return (typed){t->float_data, t->n_float_data, ONNX_FLOAT};
    case ONNX_INT64:
        return (typed){t->int64_data, t->n_int64_data, ONNX_INT64};
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        return (typed){t->double_data, t->n_double_data, t->data_type};
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
        return (typed){t->uint64_data, t->n_uint64_data, ONNX__TENSOR_PROTO__DATA_TYPE__UINT64};
    default:
        return (typed){t->int32_data, t->n_int32_data, ONNX_INT32};
    }
}

/* Narrow types are stored in wider arrays: 16-bit reals as their bits. */
static const void *narrow_elements(hp_arena *arena, typed from, int bytes, int64_t count) {
    unsigned char *to = hp_arena_alloc(arena, (size_t)(bytes * count));
    const int wide = onnx_type_of(from.type)->bytes;
    for (int64_t i = 0; i < count; i++) /* little-endian: the low bytes come first */
        memcpy(to + i * bytes, (const unsigned char *)from.data + i * wide, (size_t)bytes);
    return to;
}

static hp_status read_typed(const onnx_reader *r, const Onnx__TensorProto *t, const onnx_type *type,
                            onnx_const *c) {
    const typed from = typed_of(t);
    if (from.n == 0 && c->count > ONNX_KEPT && r->structure) return HP_OK;
    if ((int64_t)from.n != c->count)
        return tensor_fail(r, t, "it has another number of elements than its dimensions say");
    const bool same = onnx_type_of(from.type)->bytes == type->bytes;
    c->data = same ? from.data : narrow_elements(r->scratch, from, type->bytes, c->count);
    if (!c->data) c->data = hp_arena_alloc(r->scratch, 1); /* an empty constant */
    return HP_OK;
}

hp_status onnx_const_read(const onnx_reader *r, const Onnx__TensorProto *t, onnx_const *c) {
    const onnx_type *type = onnx_type_of(t->data_type);
    *c = (onnx_const){.name = t->name ? t->name : "", .type = t->data_type};
    if (!type) return tensor_fail(r, t, "its element type is not supported: convert it to float");
    if ((t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) ||
        t->n_external_data)
        return tensor_fail(r, t,
                           "its data are in another file: save the model as one file "
                           "(onnx.save_model(model, path, save_as_external_data=False))");
    if (t->segment) return tensor_fail(r, t, "tensors in segments are not supported: save it whole");
    HP_TRY(read_shape(r, t, c));
    if (!t->has_raw_data) return read_typed(r, t, type, c);
    if ((int64_t)t->raw_data.len != c->count * type->bytes)
        return tensor_fail(r, t, "it has another number of bytes than its dimensions say");
    c->data = t->raw_data.data ? t->raw_data.data : hp_arena_alloc(r->scratch, 1);
    return HP_OK;
}

/* --- computed constants --- */

/* Folding may produce more data than the file contains (expanding shapes), up to a limit. */
static int64_t most_folded(const onnx_reader *r) {
    return (INT64_C(256) << 20) + 8 * r->file_bytes;
}

hp_status onnx_spend(const onnx_call *c, int64_t bytes) {
    c->r->folded_bytes += bytes;
    if (c->r->folded_bytes <= most_folded(c->r)) return HP_OK;
    return onnx_fail(c, "computes constants that are too large");
}

hp_status onnx_const_room(onnx_call *c, bool known, onnx_const *out, void **data) {
    onnx_reader *r = c->r;
    if (!onnx_count(out->n_dim, out->dim, &out->count) || out->count > most_folded(r))
        return onnx_fail(c, "computes a constant that is too large");
    *data = NULL;
    if (!known && out->count > ONNX_KEPT) return HP_OK;
    HP_TRY(onnx_spend(c, out->count * onnx_type_of(out->type)->bytes));
    *data = hp_arena_alloc(r->scratch, (size_t)(out->count * onnx_type_of(out->type)->bytes));
    out->data = *data;
    return HP_OK;
}

/* --- constants as inputs --- */

hp_status onnx_need_const(const onnx_call *c, int k, const char *what, const onnx_const **out) {
    const onnx_value *v = onnx_in(c, k);
    if (!v) return onnx_fail(c, "its %s is missing", what);
    if (v->kind != ONNX_CONST) return onnx_fail(c, "its %s must be a constant of the model", what);
    *out = &v->c;
    return HP_OK;
}

hp_status onnx_need_number(const onnx_call *c, int k, const char *what, double *value) {
    const onnx_const *number = NULL;
    if (!onnx_in(c, k)) return HP_OK;
    HP_TRY(onnx_need_const(c, k, what, &number));
    if (number->count == 0) return HP_OK; /* an empty constant means it is omitted */
    if (number->count != 1) return onnx_fail(c, "its %s must be one number", what);
    *value = onnx_real(number, 0);
    return HP_OK;
}

static hp_status need_variable(const onnx_call *c, int k, onnx_value **x) {
    onnx_value *v = onnx_in(c, k);
    if (!v) return onnx_fail(c, "its input %d is missing", k + 1);
    if (v->kind == ONNX_CONST) return onnx_fail(c, "its input %d must depend on the image", k + 1);
    *x = v;
    return HP_OK;
}

hp_status onnx_need_view(const onnx_call *c, int k, onnx_value **x) {
    HP_TRY(need_variable(c, k, x));
    return (*x)->kind == ONNX_VIEW ? HP_OK : onnx_settle(c, *x);
}

hp_status onnx_need_tensor(const onnx_call *c, int k, onnx_value **x) {
    HP_TRY(need_variable(c, k, x));
    return onnx_settle(c, *x);
}
