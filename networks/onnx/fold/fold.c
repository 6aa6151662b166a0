/* fold.c - arithmetic on constants: integers as int64, reals as double, results in the inputs' type. */
#include "networks/onnx/fold/fold.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- helpers --- */

/* Input k, or NULL. */
static const onnx_const *constant_input(const onnx_call *c, int k) {
    const onnx_value *v = onnx_in(c, k);
    return v ? &v->c : NULL;
}

/* Results of 16-bit reals are float. */
int onnx_result_type(int type) {
    return onnx_type_of(type)->put ? type : ONNX_FLOAT;
}

void onnx_put(const onnx_const *to, void *data, int64_t i, const onnx_const *from, int64_t k) {
    const onnx_type *type = onnx_type_of(to->type);
    if (type->whole)
        type->put(data, i, 0, onnx_integer(from, k));
    else
        type->put(data, i, onnx_real(from, k), 0);
}

/* --- broadcasting --- */

typedef struct broadcast {
    const onnx_const *in[3];
    int n;
    int64_t step[3][ONNX_MOST_DIMS]; /* per input and dimension of the output; 0: broadcast */
} broadcast;

static hp_status broadcast_shape(onnx_call *c, broadcast *b, onnx_const *out) {
    out->n_dim = 0;
    for (int i = 0; i < b->n; i++) {
        if (!b->in[i]) return onnx_fail(c, "its input %d is missing", i + 1);
        if (b->in[i]->n_dim > out->n_dim) out->n_dim = b->in[i]->n_dim;
    }
    for (int d = 0; d < out->n_dim; d++) out->dim[d] = 1;
    for (int i = 0; i < b->n; i++) {
        const int shift = out->n_dim - b->in[i]->n_dim;
        int64_t step = 1;
        for (int d = b->in[i]->n_dim - 1; d >= 0; d--) {
            const int64_t size = b->in[i]->dim[d];
            if (size != 1 && out->dim[d + shift] != 1 && size != out->dim[d + shift])
                return onnx_fail(c, "combines constants of different sizes");
            if (size != 1) out->dim[d + shift] = size;
            b->step[i][d + shift] = size == 1 ? 0 : step;
            step *= size;
        }
    }
    return HP_OK;
}

static int64_t place_of(const broadcast *b, const onnx_const *out, int input, int64_t i) {
    int64_t at = 0;
    for (int d = out->n_dim - 1; d >= 0; d--) {
        at += i % out->dim[d] * b->step[input][d];
        i /= out->dim[d];
    }
    return at;
}

static bool all_known(const broadcast *b) {
    bool known = true;
    for (int i = 0; i < b->n; i++) known &= b->in[i]->data != NULL;
    return known;
}

/* --- two inputs --- */

typedef struct binary {
    double (*real)(double a, double b);
    bool (*whole)(int64_t a, int64_t b, int64_t *out); /* false: undefined (division by zero) */
} binary;

/* A mixed pair (in Pow) is computed in reals and has the first input's type. */
static hp_status fold_pair(onnx_call *c, const onnx_const *left, const onnx_const *right, const binary *f,
                           int type, onnx_const *out) {
    broadcast b = {.n = 2, .in = {left, right}};
    void *data;
    *out = (onnx_const){.name = ""};
    HP_TRY(broadcast_shape(c, &b, out));
    out->type = type ? type : onnx_result_type(left->type);
    HP_TRY(onnx_const_room(c, all_known(&b), out, &data));
    const onnx_type *t = onnx_type_of(out->type);
    const bool whole = onnx_type_of(left->type)->whole && onnx_type_of(right->type)->whole;
    for (int64_t i = 0; data && i < out->count; i++) {
        const int64_t x = place_of(&b, out, 0, i), y = place_of(&b, out, 1, i);
        int64_t n = 0;
        if (whole && !f->whole(onnx_integer(left, x), onnx_integer(right, y), &n))
            return onnx_fail(c, "divides by zero or overflows");
        const double v = whole ? 0 : f->real(onnx_real(left, x), onnx_real(right, y));
        t->put(data, i, v, whole ? n : v < 9e18 && v > -9e18 ? (int64_t)v : 0);
    }
    return HP_OK;
}

static hp_status fold_two(onnx_call *c, onnx_const *out, const binary *f, int type) {
    const onnx_const *left = constant_input(c, 0), *right = constant_input(c, 1);
    if (!left || !right) return onnx_fail(c, "an input is missing");
    return fold_pair(c, left, right, f, type, out);
}

/* Left-associative over any number of inputs. */
static hp_status fold_many(onnx_call *c, onnx_const *out, const binary *f) {
    const onnx_const *first = constant_input(c, 0);
    if (!first) return onnx_fail(c, "an input is missing");
    *out = *first;
    for (int i = 1; i < c->n_in; i++) {
        const onnx_const so_far = *out, *next = constant_input(c, i);
        if (!next) return onnx_fail(c, "an input is missing");
        HP_TRY(fold_pair(c, &so_far, next, f, 0, out));
    }
    return HP_OK;
}

#define REAL(name, expression)                                                                               \
    static double real_##name(double a, double b) {                                                          \
        return expression;                                                                                   \
    }
#define WHOLE(name, condition, result)                                                                       \
    static bool whole_##name(int64_t a, int64_t b, int64_t *out) {                                           \
        if (!(condition)) return false;                                                                      \
        *out = (result);                                                                                     \
        return true;                                                                                         \
    }
#define CHECKED(name)                                                                                        \
    static bool whole_##name(int64_t a, int64_t b, int64_t *out) {                                           \
        return !__builtin_##name##_overflow(a, b, out);                                                      \
    }
#define FOLD(name, type)                                                                                     \
    hp_status onnx_fold_##name(onnx_call *c, onnx_const *out) {                                              \
        static const binary f = {real_##name, whole_##name};                                                 \
        return fold_two(c, out, &f, type);                                                                   \
    }
REAL(add, a + b)
REAL(sub, a - b)
REAL(mul, a *b)
REAL(div, a / b)
REAL(mod, fmod(a, b))
REAL(remainder, fmod(a, b))
REAL(pow, pow(a, b))
REAL(max, a > b ? a : b)
REAL(min, a < b ? a : b)
REAL(equal, a == b)
REAL(greater, a > b)
REAL(less, a < b)
CHECKED(add)
CHECKED(sub)
CHECKED(mul)
WHOLE(div, b != 0 && !(a == INT64_MIN && b == -1), a / b)
WHOLE(mod, b != 0 && b != -1, a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b)
WHOLE(remainder, b != 0 && b != -1, a % b)
WHOLE(max, true, a > b ? a : b)
WHOLE(min, true, a < b ? a : b)
WHOLE(equal, true, a == b)
WHOLE(greater, true, a > b)
WHOLE(less, true, a < b)

static bool whole_pow(int64_t a, int64_t b, int64_t *out) {
    *out = 1;
    if (b < 0 || b > 63) return false;
    for (; b > 0; b--)
        if (__builtin_mul_overflow(*out, a, out)) return false;
    return true;
}

FOLD(add, 0)
FOLD(sub, 0)
FOLD(mul, 0)
FOLD(div, 0)
FOLD(pow, 0)
FOLD(equal, ONNX_BOOL)
FOLD(greater, ONNX_BOOL)
FOLD(less, ONNX_BOOL)

hp_status onnx_fold_max(onnx_call *c, onnx_const *out) {
    static const binary f = {real_max, whole_max};
    return fold_many(c, out, &f);
}

hp_status onnx_fold_min(onnx_call *c, onnx_const *out) {
    static const binary f = {real_min, whole_min};
    return fold_many(c, out, &f);
}

/* The result has the sign of the divisor; with fmod, that of the dividend. */
hp_status onnx_fold_mod(onnx_call *c, onnx_const *out) {
    static const binary mod = {real_mod, whole_mod}, remainder_of = {real_remainder, whole_remainder};
    int64_t dividend = 0;
    HP_TRY(onnx_attr_int(c, "fmod", 0, 1, &dividend));
    return fold_two(c, out, dividend ? &remainder_of : &mod, 0);
}

/* --- one input --- */

static hp_status fold_one(onnx_call *c, onnx_const *out, double (*real)(double), int64_t (*whole)(int64_t)) {
    const onnx_const *x = constant_input(c, 0);
    void *data;
    if (!x) return onnx_fail(c, "its input is missing");
    if (onnx_type_of(x->type)->whole && !whole) return onnx_fail(c, "of whole numbers is not supported");
    *out = *x;
    out->name = "";
    out->q = NULL;
    out->data = NULL;
    out->type = onnx_result_type(x->type);
    HP_TRY(onnx_const_room(c, x->data != NULL, out, &data));
    const onnx_type *t = onnx_type_of(out->type);
    for (int64_t i = 0; data && i < out->count; i++)
        t->put(data, i, t->whole ? 0 : real(onnx_real(x, i)), t->whole ? whole(onnx_integer(x, i)) : 0);
    return HP_OK;
}

static int64_t same_whole(int64_t v) {
    return v;
}

static int64_t whole_neg(int64_t v) {
    return v == INT64_MIN ? v : -v;
}

static int64_t whole_abs(int64_t v) {
    return v < 0 ? whole_neg(v) : v;
}

static int64_t whole_not(int64_t v) {
    return !v;
}

static double real_neg(double v) {
    return -v;
}

hp_status onnx_fold_neg(onnx_call *c, onnx_const *out) {
    return fold_one(c, out, real_neg, whole_neg);
}

hp_status onnx_fold_abs(onnx_call *c, onnx_const *out) {
    return fold_one(c, out, fabs, whole_abs);
}

hp_status onnx_fold_not(onnx_call *c, onnx_const *out) {
    return fold_one(c, out, fabs, whole_not);
}

hp_status onnx_fold_sqrt(onnx_call *c, onnx_const *out) {
    return fold_one(c, out, sqrt, NULL);
}

hp_status onnx_fold_exp(onnx_call *c, onnx_const *out) {
    return fold_one(c, out, exp, NULL);
}

hp_status onnx_fold_floor(onnx_call *c, onnx_const *out) {
    return fold_one(c, out, floor, same_whole);
}

hp_status onnx_fold_ceil(onnx_call *c, onnx_const *out) {
    return fold_one(c, out, ceil, same_whole);
}

/* --- other --- */

hp_status onnx_fold_where(onnx_call *c, onnx_const *out) {
    broadcast b = {.n = 3, .in = {constant_input(c, 0), constant_input(c, 1), constant_input(c, 2)}};
    void *data;
    HP_TRY(broadcast_shape(c, &b, out));
    if (b.in[1]->type != b.in[2]->type) return onnx_fail(c, "chooses between different types");
    out->type = onnx_result_type(b.in[1]->type);
    HP_TRY(onnx_const_room(c, all_known(&b), out, &data));
    for (int64_t i = 0; data && i < out->count; i++) {
        const int from = onnx_integer(b.in[0], place_of(&b, out, 0, i)) ? 1 : 2;
        onnx_put(out, data, i, b.in[from], place_of(&b, out, from, i));
    }
    return HP_OK;
}

hp_status onnx_fold_cast(onnx_call *c, onnx_const *out) {
    const onnx_const *x = constant_input(c, 0);
    int64_t to = 0;
    void *data;
    if (!x) return onnx_fail(c, "its input is missing");
    HP_TRY(onnx_attr_int(c, "to", 1, INT32_MAX, &to));
    if (!onnx_type_of((int)to)) return onnx_fail(c, "to type %" PRId64 " is not supported", to);
    *out = *x;
    out->type = onnx_result_type((int)to);
    out->data = NULL;
    HP_TRY(onnx_const_room(c, x->data != NULL, out, &data));
    for (int64_t i = 0; data && i < out->count; i++) onnx_put(out, data, i, x, i);
    return HP_OK;
}

/* --- reductions --- */

/* Which dimensions are reduced; *nothing: none, by noop_with_empty_axes. */
static hp_status reduced_dims(onnx_call *c, const onnx_const *x, bool reduced[ONNX_MOST_DIMS],
                              bool *nothing) {
    int64_t axes[ONNX_MOST_DIMS], noop = 0;
    int n;
    HP_TRY(onnx_ints(c, "axes", 1, ONNX_MOST_DIMS, axes, &n));
    HP_TRY(onnx_attr_int(c, "noop_with_empty_axes", 0, 1, &noop));
    *nothing = noop && n == 0;
    for (int d = 0; d < x->n_dim; d++) reduced[d] = n == 0 && !noop;
    for (int i = 0; i < n; i++) {
        int axis;
        HP_TRY(onnx_axis(c, axes[i], x->n_dim, &axis));
        reduced[axis] = true;
    }
    return HP_OK;
}

/* Index of element i in the reduced constant. */
static int64_t reduced_place(const onnx_const *x, const bool *reduced, int64_t i) {
    int64_t at = 0, step = 1;
    for (int d = x->n_dim - 1; d >= 0; d--) {
        if (!reduced[d]) {
            at += i % x->dim[d] * step;
            step *= x->dim[d];
        }
        i /= x->dim[d];
    }
    return at;
}

static hp_status fold_over(onnx_call *c, onnx_const *out, const binary *f, int64_t start) {
    const onnx_const *x = constant_input(c, 0);
    int64_t keep = 1;
    bool reduced[ONNX_MOST_DIMS] = {0}, nothing;
    void *data;
    if (!x) return onnx_fail(c, "its input is missing");
    HP_TRY(reduced_dims(c, x, reduced, &nothing));
    HP_TRY(onnx_attr_int(c, "keepdims", 0, 1, &keep));
    *out = *x;
    if (nothing) return HP_OK;
    *out = (onnx_const){.name = "", .type = onnx_result_type(x->type)};
    for (int d = 0; d < x->n_dim; d++)
        if (keep || !reduced[d]) out->dim[out->n_dim++] = reduced[d] ? 1 : x->dim[d];
    HP_TRY(onnx_spend(c, x->count));
    HP_TRY(onnx_const_room(c, x->data != NULL, out, &data));
    const onnx_type *t = onnx_type_of(out->type);
    for (int64_t i = 0; data && i < out->count; i++) t->put(data, i, (double)start, start);
    for (int64_t i = 0; data && i < x->count; i++) {
        const int64_t at = reduced_place(x, reduced, i);
        int64_t n = 0;
        if (t->whole && !f->whole(t->integer(data, at), onnx_integer(x, i), &n))
            return onnx_fail(c, "overflows");
        t->put(data, at, t->whole ? 0 : f->real(t->real(data, at), onnx_real(x, i)), n);
    }
    return HP_OK;
}

hp_status onnx_fold_reduceprod(onnx_call *c, onnx_const *out) {
    static const binary f = {real_mul, whole_mul};
    return fold_over(c, out, &f, 1);
}

hp_status onnx_fold_reducesum(onnx_call *c, onnx_const *out) {
    static const binary f = {real_add, whole_add};
    return fold_over(c, out, &f, 0);
}
