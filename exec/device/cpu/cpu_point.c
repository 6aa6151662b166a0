/* cpu_point.c - activation, sum, concatenation and dropout tasks. */
#include "exec/device/cpu/cpu_train.h"
#include "exec/device/device_act.h"

#include <string.h>

hp_status hp_cpu_act_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    const hp_act_args k = hp_act_args_of(b->layer);
    (void)s;
    (void)err;
    if (hp_act_reads_x(b->layer))
        d->kernels->point.act(b->layer->act, b->y, b->x[0], b->out_elems, (float)k.a, (float)k.b);
    else
        d->kernels->point.clamp(b->y, b->x[0], b->out_elems, hp_clamp_of(b->layer));
    return HP_OK;
}

static void masked_copy(hp_device *d, const hp_bound *b, float *dx) {
    if (hp_layer_has_act(b->layer))
        d->kernels->point.clamp_bwd(dx, b->dy, b->y, b->out_elems, hp_clamp_of(b->layer));
    else if (dx != b->dy)
        memcpy(dx, b->dy, (size_t)b->out_elems * sizeof *dx);
}

hp_status hp_cpu_act_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    const hp_act_args k = hp_act_args_of(b->layer);
    (void)s;
    (void)err;
    if (hp_act_reads_x(b->layer))
        d->kernels->point.act_bwd(b->layer->act, b->dx[0], b->dy, b->x[0], b->out_elems, (float)k.a,
                                  (float)k.b);
    else
        masked_copy(d, b, b->dx[0]);
    return HP_OK;
}

hp_status hp_cpu_add_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    d->kernels->point.add(b->y, b->x[0], b->x[1], b->out_elems, hp_clamp_of(b->layer));
    return HP_OK;
}

/* Masking twice equals masking once, so dx0 may be dy. */
hp_status hp_cpu_add_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    for (int i = b->n_in - 1; i >= 0; i--)
        if (b->dx[i]) masked_copy(d, b, b->dx[i]);
    return HP_OK;
}

/* Copies channels between each input's box and their place in the output's. */
static void concat(const hp_bound *b, float *const *parts, float *whole, bool split) {
    const int64_t pixels = b->out_elems / b->shape.oc;
    for (int i = 0; i < b->n_in; i++) {
        const size_t bytes = (size_t)b->map.in_c[i] * sizeof(float);
        for (int64_t r = 0; parts[i] && r < pixels; r++) {
            float *part = parts[i] + r * b->map.in_c[i], *place = whole + r * b->shape.oc + b->map.in_at[i];
            if (split)
                memcpy(part, place, bytes);
            else
                memcpy(place, part, bytes);
        }
    }
}

hp_status hp_cpu_concat_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    float *parts[HP_MAX_IN];
    for (int i = 0; i < b->n_in; i++) parts[i] = b->x[i];
    concat(b, parts, b->y, false);
    return HP_OK;
}

hp_status hp_cpu_concat_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    float *parts[HP_MAX_IN];
    for (int i = 0; i < b->n_in; i++) parts[i] = b->dx[i];
    concat(b, parts, b->dy, true);
    return HP_OK;
}

static void dropout(hp_device *d, const hp_bound *b, const hp_step *s, const float *from, float *to) {
    const int64_t row = (int64_t)b->shape.ow * b->shape.oc;
    if (!s->dropout || b->task->flags & HP_FLAG_EVAL) {
        if (to != from) memcpy(to, from, (size_t)b->out_elems * sizeof *to);
        return;
    }
    for (int64_t r = 0; r < b->shape.n * b->shape.oh; r++, to += row, from += row) {
        hp_dropout_row(b, s, r / b->shape.oh, (int)(r % b->shape.oh), b->scratch.at);
        d->kernels->point.scale(to, from, b->scratch.at, row);
    }
}

hp_status hp_cpu_dropout_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)err;
    dropout(d, b, s, b->x[0], b->y);
    return HP_OK;
}

hp_status hp_cpu_dropout_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)err;
    dropout(d, b, s, b->dy, b->dx[0]);
    return HP_OK;
}
