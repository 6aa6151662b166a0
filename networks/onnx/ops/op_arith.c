/* op_arith.c - Add, Sub, Mul, Div, Neg and Sum of tensors, or of a tensor and a constant, which becomes a
 * factor and a bias per channel. */
#include "networks/onnx/onnx_inside.h"

#include <inttypes.h>
#include <string.h>

/* --- with constants --- */

static char *shape_text(hp_arena *arena, int n_dim, const int64_t *dim) {
    char *text = "(";
    for (int i = 0; i < n_dim; i++)
        text = hp_arena_printf(arena, "%s%s%" PRId64, text, i ? ", " : "", dim[i]);
    return hp_arena_printf(arena, "%s)", text);
}

typedef double elementwise(double v);

static double negated(double v) {
    return -v;
}

static double inverse(double v) {
    return 1 / v;
}

/* One number per channel of x; NULL if the constant is not stored. */
static float *channel_floats(const onnx_call *c, const onnx_value *x, const onnx_const *k, elementwise *f) {
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
    if (!k->data) return NULL;
    float *out = HP_NEW(c->r->arena, float, channels);
    for (int64_t i = 0; i < channels; i++) {
        const double v = onnx_real(k, k->count == 1 ? 0 : i);
        out[i] = (float)(f ? f(v) : v);
    }
    return out;
}

static float *same_float(const onnx_call *c, const onnx_value *x, float v) {
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
    float *out = HP_NEW(c->r->arena, float, channels);
    for (int64_t i = 0; i < channels; i++) out[i] = v;
    return out;
}

/* An operator with a constant as an affine map of x; for - and /, it depends on the constant's side. */
typedef struct affine {
    bool factor_is_k, bias_is_k;
    elementwise *f; /* applied to the constant */
    float factor;   /* factor of x if the constant is the bias */
} affine;

static hp_status apply_constant(onnx_call *c, const onnx_value *x, const onnx_const *k, affine a) {
    int32_t y;
    onnx_value like = *x;
    if (!onnx_per_channel(c->r, x, k))
        return onnx_fail(
            c,
            "combines %s with a constant of %s, which varies along more than channels; one number or "
            "one per channel is supported",
            shape_text(c->r->scratch, x->n_dim, x->dim), shape_text(c->r->scratch, k->n_dim, k->dim));
    const float *own = channel_floats(c, x, k, a.f);
    HP_TRY(onnx_emit_scale(c, x->tensor, a.factor_is_k ? own : same_float(c, x, a.factor), NULL, &y));
    if (a.bias_is_k) {
        const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
        HP_TRY(onnx_emit_param(c, HP_PARAM_BIAS, "", "bias", 1, &channels, 1, (hp_onnx_param){own}));
    }
    like.type = ONNX_FLOAT;
    onnx_result_like(c, y, &like);
    return HP_OK;
}

/* --- tensors --- */

static bool same_size(const onnx_reader *r, const onnx_value *x, const onnx_value *y) {
    const hp_tensor *a = &r->graph->tensor[x->tensor], *b = &r->graph->tensor[y->tensor];
    return a->h == b->h && a->w == b->w && a->c == b->c;
}

static bool is_vector_of(const onnx_reader *r, const onnx_value *vector, const onnx_value *map) {
    const hp_tensor *v = &r->graph->tensor[vector->tensor];
    return v->h == 1 && v->w == 1 && v->c == r->graph->tensor[map->tensor].c;
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Does each axis have the same length in both, or length one in either? */
static bool repeats(const onnx_reader *r, const onnx_value *x, const onnx_value *y) {
    const hp_tensor *a = &r->graph->tensor[x->tensor], *b = &r->graph->tensor[y->tensor];
    return (a->h == b->h || a->h == 1 || b->h == 1) && (a->w == b->w || a->w == 1 || b->w == 1) &&
           (a->c == b->c || a->c == 1 || b->c == 1);
}

static hp_status repeat_both(const onnx_call *c, const onnx_value *x, const onnx_value *y, int32_t *x_tensor,
                             int32_t *y_tensor) {
    const hp_tensor a = c->r->graph->tensor[x->tensor], b = c->r->graph->tensor[y->tensor];
    const int32_t h = larger(a.h, b.h), w = larger(a.w, b.w), channels = larger(a.c, b.c);
    HP_TRY(onnx_emit_repeated(c, h, w, channels, x_tensor));
    return onnx_emit_repeated(c, h, w, channels, y_tensor);
}

/* Uses x's layout, or y's if it has more dimensions; both have the same axes. */
static void result_of_two(onnx_call *c, int32_t tensor, const onnx_value *x, const onnx_value *y) {
    onnx_value like = x->n_dim >= y->n_dim ? *x : *y;
    for (int i = 1; i <= like.n_dim; i++) {
        const int64_t a = i <= x->n_dim ? x->dim[x->n_dim - i] : 1,
                      b = i <= y->n_dim ? y->dim[y->n_dim - i] : 1;
        like.dim[like.n_dim - i] = a > b ? a : b;
    }
    memcpy(like.order, x->order, sizeof like.order);
    like.type = ONNX_FLOAT;
    onnx_result_like(c, tensor, &like);
}

hp_status onnx_combine(onnx_call *c, hp_layer_op op, const onnx_value *x, int32_t x_tensor,
                       const onnx_value *y, int32_t y_tensor) {
    int32_t out;
    if (!onnx_same_axes(c->r, x, y))
        return onnx_fail(c, "combines %s with %s, which are laid out differently",
                         shape_text(c->r->scratch, x->n_dim, x->dim),
                         shape_text(c->r->scratch, y->n_dim, y->dim));
    const bool vector = op == HP_MUL && is_vector_of(c->r, y, x);
    if (!same_size(c->r, x, y) && !vector) {
        if (!repeats(c->r, x, y))
            return onnx_fail(c, "combines %s with %s: sizes must be equal, or 1",
                             shape_text(c->r->scratch, x->n_dim, x->dim),
                             shape_text(c->r->scratch, y->n_dim, y->dim));
        HP_TRY(repeat_both(c, x, y, &x_tensor, &y_tensor));
    }
    HP_TRY(onnx_emit(c, (hp_layer){.op = op, .n_in = 2, .in = {x_tensor, y_tensor}}, 0, &out));
    result_of_two(c, out, x, y);
    return HP_OK;
}

/* The two inputs: a tensor and a constant (*k), with their order; or two tensors. */
typedef struct operands {
    onnx_value *x, *y;
    const onnx_const *k;
    bool constant_first;
} operands;

static hp_status read_operands(const onnx_call *c, operands *o) {
    onnx_value *a = onnx_in(c, 0), *b = onnx_in(c, 1);
    *o = (operands){0};
    if (!a || !b) return onnx_fail(c, "an input is missing");
    o->constant_first = a->kind == ONNX_CONST;
    o->x = o->constant_first ? b : a;
    o->y = o->constant_first ? a : b;
    if (o->y->kind == ONNX_CONST)
        o->k = &o->y->c;
    else
        HP_TRY(onnx_settle(c, o->y));
    return onnx_settle(c, o->x);
}

hp_status onnx_read_add(onnx_call *c) {
    operands o;
    HP_TRY(read_operands(c, &o));
    if (o.k) return apply_constant(c, o.x, o.k, (affine){.bias_is_k = true, .factor = 1});
    return onnx_combine(c, HP_ADD, o.x, o.x->tensor, o.y, o.y->tensor);
}

hp_status onnx_read_sub(onnx_call *c) {
    operands o;
    int32_t minus;
    HP_TRY(read_operands(c, &o));
    if (o.k && o.constant_first)
        return apply_constant(c, o.x, o.k, (affine){.bias_is_k = true, .factor = -1});
    if (o.k) return apply_constant(c, o.x, o.k, (affine){.bias_is_k = true, .factor = 1, .f = negated});
    HP_TRY(onnx_emit_scale(c, o.y->tensor, same_float(c, o.y, -1), NULL, &minus));
    return onnx_combine(c, HP_ADD, o.x, o.x->tensor, o.y, minus);
}

hp_status onnx_read_mul(onnx_call *c) {
    operands o;
    HP_TRY(read_operands(c, &o));
    if (o.k) return apply_constant(c, o.x, o.k, (affine){.factor_is_k = true});
    if (is_vector_of(c->r, o.x, o.y) && !is_vector_of(c->r, o.y, o.x))
        return onnx_combine(c, HP_MUL, o.y, o.y->tensor, o.x, o.x->tensor);
    return onnx_combine(c, HP_MUL, o.x, o.x->tensor, o.y, o.y->tensor);
}

hp_status onnx_read_div(onnx_call *c) {
    operands o;
    HP_TRY(read_operands(c, &o));
    if (!o.k || o.constant_first)
        return onnx_fail(c, "division by a tensor is not supported: only by constants");
    return apply_constant(c, o.x, o.k, (affine){.factor_is_k = true, .f = inverse});
}

hp_status onnx_read_neg(onnx_call *c) {
    onnx_value *x;
    int32_t y;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_emit_scale(c, x->tensor, same_float(c, x, -1), NULL, &y));
    onnx_result_like(c, y, x);
    return HP_OK;
}

/* One input, or a chain of additions. */
hp_status onnx_read_sum(onnx_call *c) {
    onnx_value *x, *y;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    onnx_value sum = *x;
    for (int i = 1; i < c->n_in; i++) {
        HP_TRY(onnx_need_tensor(c, i, &y));
        HP_TRY(onnx_combine(c, HP_ADD, &sum, sum.tensor, y, y->tensor));
        sum = *c->out;
    }
    onnx_result_like(c, sum.tensor, &sum);
    return HP_OK;
}
