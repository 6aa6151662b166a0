/* ref_point.c - activation, sum, concatenation, dropout: one element at a time, float64. */
#include "exec/device/ref/ref.h"
#include "exec/device/device_act.h"

/* The gradient before the activation. */
static double masked(const hp_bound *b, int64_t i) {
    const hp_act_args k = hp_act_args_of(b->layer);
    const double *dy = b->dy, *from = hp_act_reads_x(b->layer) ? b->x[0] : b->y;
    if (!hp_layer_has_act(b->layer)) return dy[i];
    const double slope = hp_act_slope_of_f64(b->layer->act, from[i], k.a, k.b);
    return slope == 0 ? 0 : slope * dy[i];
}

void hp_ref_act_fwd(const hp_bound *b, const hp_step *s) {
    const hp_act_args k = hp_act_args_of(b->layer);
    (void)s;
    const double *x = b->x[0];
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) y[i] = hp_act_of_f64(b->layer->act, x[i], k.a, k.b);
}

void hp_ref_act_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    double *dx = b->dx[0];
    for (int64_t i = 0; i < b->out_elems; i++) dx[i] = masked(b, i);
}

void hp_ref_add_fwd(const hp_bound *b, const hp_step *s) {
    const hp_act_args k = hp_act_args_of(b->layer);
    (void)s;
    const double *x0 = b->x[0], *x1 = b->x[1];
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) y[i] = hp_act_of_f64(b->layer->act, x0[i] + x1[i], k.a, k.b);
}

void hp_ref_add_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    for (int64_t i = 0; i < b->out_elems; i++) {
        const double g = masked(b, i); /* dx0 may be dy itself */
        for (int k = 0; k < b->n_in; k++)
            if (b->dx[k]) ((double *)b->dx[k])[i] = g;
    }
}

typedef void concat_fn(const hp_bound *b, int k, int64_t part, int64_t whole);

/* Calls `visit` for every element of every input's box and its place in the output's. */
static void concat(const hp_bound *b, concat_fn *visit) {
    const int64_t pixels = b->out_elems / b->shape.oc;
    for (int64_t r = 0; r < pixels; r++)
        for (int k = 0; k < b->n_in; k++)
            for (int c = 0; c < b->map.in_c[k]; c++)
                visit(b, k, r * b->map.in_c[k] + c, r * b->shape.oc + b->map.in_at[k] + c);
}

static void join(const hp_bound *b, int k, int64_t part, int64_t whole) {
    ((double *)b->y)[whole] = ((const double *)b->x[k])[part];
}

static void split(const hp_bound *b, int k, int64_t part, int64_t whole) {
    if (b->dx[k]) ((double *)b->dx[k])[part] = ((const double *)b->dy)[whole];
}

void hp_ref_concat_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    concat(b, join);
}

void hp_ref_concat_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    concat(b, split);
}

static void dropout(const hp_bound *b, const hp_step *s, const double *from, double *to) {
    const bool on = s->dropout && !(b->task->flags & HP_FLAG_EVAL);
    for (int64_t i = 0; i < b->out_elems; i++) {
        const bool keep = !on || hp_dropout_at(b, s, i) > 0;
        to[i] = keep ? (on ? from[i] / (1 - (double)b->layer->p) : from[i]) : 0;
    }
}

void hp_ref_dropout_fwd(const hp_bound *b, const hp_step *s) {
    dropout(b, s, b->x[0], b->y);
}

void hp_ref_dropout_bwd(const hp_bound *b, const hp_step *s) {
    dropout(b, s, b->dy, b->dx[0]);
}
