/* ref_mul.c - products of two maps, or of a map and a vector per sample, and parametric ReLU, float64. */
#include "exec/device/ref/ref.h"
#include "exec/device/device_act.h"

#include <string.h>

/* Element of the second input's box for element i of the output's: along an axis of one pixel always that. */
static int64_t second_at(const hp_bound *b, int64_t i) {
    const hp_shape *s = &b->shape;
    const hp_box *box = &b->map.in_box[1];
    const int64_t c = i % s->oc, x = i / s->oc % s->ow, y = i / s->oc / s->ow % s->oh,
                  n = i / s->oc / s->ow / s->oh;
    const int64_t h = hp_box_len(box, HP_AXIS_H), w = hp_box_len(box, HP_AXIS_W);
    return ((n * h + (h == s->oh ? y : 0)) * w + (w == s->ow ? x : 0)) * s->oc + c;
}

void hp_ref_mul_fwd(const hp_bound *b, const hp_step *step) {
    const hp_act_args k = hp_act_args_of(b->layer);
    const double *x = b->x[0], *second = b->x[1];
    double *y = b->y;
    (void)step;
    for (int64_t i = 0; i < b->out_elems; i++)
        y[i] = hp_act_of_f64(b->layer->act, x[i] * second[second_at(b, i)], k.a, k.b);
}

void hp_ref_mul_bwd(const hp_bound *b, const hp_step *step) {
    const hp_act_args k = hp_act_args_of(b->layer);
    const double *x = b->x[0], *second = b->x[1], *y = b->y, *dy = b->dy;
    double *dx = b->dx[0], *dsecond = b->dx[1];
    (void)step;
    if (dsecond) memset(dsecond, 0, (size_t)hp_box_elems(&b->map.in_box[1]) * sizeof *dsecond);
    for (int64_t i = 0; i < b->out_elems; i++) {
        const bool passes =
            !hp_layer_has_act(b->layer) || hp_act_slope_of_f64(b->layer->act, y[i], k.a, k.b) != 0;
        const double g = passes ? dy[i] : 0;
        const int64_t at = second_at(b, i);
        if (dx) dx[i] = g * second[at];
        if (dsecond) dsecond[at] += g * x[i];
    }
}

/* --- parametric ReLU (He and others 2015) --- */

static int64_t slope_at(const hp_bound *b, int64_t i) {
    return b->layer->groups == 1 ? 0 : i % b->shape.oc;
}

void hp_ref_prelu_fwd(const hp_bound *b, const hp_step *step) {
    const double *x = b->x[0], *slope = b->param[0];
    double *y = b->y;
    (void)step;
    for (int64_t i = 0; i < b->out_elems; i++) y[i] = x[i] < 0 ? slope[slope_at(b, i)] * x[i] : x[i];
}

void hp_ref_prelu_bwd(const hp_bound *b, const hp_step *step) {
    const double *x = b->x[0], *slope = b->param[0], *dy = b->dy;
    double *dx = b->dx[0], *dslope = b->grad[0];
    const int slopes = b->layer->groups == 1 ? 1 : b->shape.oc;
    (void)step;
    if (!(b->task->flags & HP_FLAG_ADD)) memset(dslope, 0, (size_t)slopes * sizeof *dslope);
    for (int64_t i = 0; i < b->out_elems; i++) {
        const int64_t c = slope_at(b, i);
        if (x[i] < 0) dslope[c] += x[i] * dy[i];
        if (dx) dx[i] = x[i] < 0 ? slope[c] * dy[i] : dy[i];
    }
}
