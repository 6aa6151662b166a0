/* ref_round.c - mixed precision by its definition: a task computes in float64 on operands as they are
 * stored, and what it puts out is rounded to how that is stored. Matrix layers read weights, and in tf32 maps
 * too, rounded to what their products take. */
#include "exec/device/ref/ref.h"
#include "base/alloc.h"
#include "exec/base/half.h"
#include "networks/graph/precision.h"
#include "plan/program/operands.h"

#include <stdlib.h>

/* --- numbers --- */

static double read_as(hp_dtype t, const void *x, int64_t i) {
    if (t == HP_BF16) return (double)from_bf16(((const uint16_t *)x)[i]);
    if (t == HP_F16) return (double)from_f16(((const uint16_t *)x)[i]);
    return ((const double *)x)[i];
}

static void write_as(hp_dtype t, void *x, int64_t i, double v) {
    if (t == HP_BF16) ((uint16_t *)x)[i] = to_bf16((float)v);
    if (t == HP_F16) ((uint16_t *)x)[i] = to_f16((float)v);
    if (t == HP_F64) ((double *)x)[i] = v;
}

/* As a factor of a product. */
static double factor(int32_t prec, double v) {
    if (prec == HP_PREC_TF32) return (double)to_tf32((float)v);
    if (prec == HP_PREC_BF16) return (double)from_bf16(to_bf16((float)v));
    return prec == HP_PREC_FP16 ? (double)from_f16(to_f16((float)v)) : v;
}

/* --- copies of operands --- */

typedef struct copied {
    void *from;    /* where the task has it */
    double *value; /* NULL: not copied */
    int64_t n;
    hp_dtype dtype;
    bool written;
} copied;

static double *copy_of(void *x, hp_dtype t, int64_t n) {
    double *value = hp_alloc(sizeof *value * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++) value[i] = read_as(t, x, i);
    return value;
}

static void replace(void **at, const copied *c) {
    if (*at && *at == c->from) *at = c->value;
}

static void replace_all(hp_bound *b, const copied *c) {
    replace(&b->y, c);
    replace(&b->dy, c);
    for (int k = 0; k < HP_MAX_IN; k++) {
        replace(&b->x[k], c);
        replace(&b->dx[k], c);
    }
}

static void round_factors(double *v, int64_t n, int32_t prec) {
    for (int64_t i = 0; i < n; i++) v[i] = factor(prec, v[i]);
}

/* Layers that multiply matrices; the optimiser's tasks have no layer. */
static bool multiplies(const hp_bound *b) {
    return b->layer && (b->layer->op == HP_CONV || b->layer->op == HP_CONVT || b->layer->op == HP_LINEAR);
}

static copied operand_at(const hp_device_config *c, const hp_task *t, int i) {
    const int32_t id = c->role->operand[t->operand + i];
    if (id < 0 || !hp_buffer_has_box(&c->role->buffer[id])) return (copied){0};
    const hp_buffer *at = &c->role->buffer[id];
    return (copied){.from = c->arena + at->offset,
                    .dtype = (hp_dtype)at->dtype,
                    .n = at->bytes / hp_dtype_bytes((hp_dtype)at->dtype),
                    .written = hp_operand_access(c->graph, t, i) != 'r'};
}

static double *rounded_weights(const hp_device_config *c, const hp_bound *b) {
    if (!multiplies(b) || !b->param[0]) return NULL;
    const int32_t from = b->shape.oc0;
    const int64_t n = hp_param_elements(c->graph, b->layer, 0, from, from + b->shape.oc).count;
    double *w = copy_of(b->param[0], HP_F64, n);
    round_factors(w, n, c->graph->prec);
    return w;
}

static void put_back(const copied *o) {
    for (int64_t i = 0; o->written && i < o->n; i++) write_as(o->dtype, o->from, i, o->value[i]);
}

/* What is written in place of what is read has one copy. */
static bool joins(copied *o, int n, const copied *more) {
    for (int i = 0; i < n; i++) {
        if (o[i].from != more->from) continue;
        HP_ASSERT(o[i].n == more->n && o[i].dtype == more->dtype);
        o[i].written |= more->written;
        return true;
    }
    return false;
}

static void copy_operands(const hp_device_config *c, hp_bound *b, copied *o) {
    for (int i = 0; i < b->task->n_operand; i++) {
        o[i] = operand_at(c, b->task, i);
        if (!o[i].from || joins(o, i, &o[i])) {
            o[i] = (copied){0};
            continue;
        }
        o[i].value = copy_of(o[i].from, o[i].dtype, o[i].n);
        if (multiplies(b) && !o[i].written) round_factors(o[i].value, o[i].n, c->graph->prec);
        replace_all(b, &o[i]);
    }
}

void hp_ref_run_rounded(const hp_device_config *c, const hp_bound *b, hp_ref_fn *f, const hp_step *s) {
    if (b->task->op == HP_TASK_ZERO) { /* zero is zero in all types */
        f(b, s);
        return;
    }
    copied *o = calloc((size_t)b->task->n_operand + 1, sizeof *o);
    hp_bound wide = *b;
    HP_ASSERT(o);
    copy_operands(c, &wide, o);
    double *weights = rounded_weights(c, b);
    if (weights) wide.param[0] = weights;
    wide.dtype = HP_F64;
    f(&wide, s);
    for (int i = 0; i < b->task->n_operand; i++) put_back(&o[i]);
    for (int i = 0; i < b->task->n_operand; i++) free(o[i].value);
    free(weights);
    free(o);
}
