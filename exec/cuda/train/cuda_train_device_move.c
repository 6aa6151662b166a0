/* cuda_train_device_move.c - copies between boxes, concatenation, padding, zeros: all as runs of elements. */
#include "exec/cuda/train/cuda_train_device.h"
#include "plan/program/runs.h"

#include <string.h>

/* The intersection of two boxes as runs; `bytes` per element. */
static hp_cuda_runs runs_of(void *to, const hp_box *to_box, const void *from, const hp_box *from_box,
                            const hp_box *part, int bytes) {
    const hp_runs r = hp_runs_between(to_box, from_box, part);
    hp_cuda_runs c = {.to = (unsigned char *)to + r.to * bytes,
                      .from = (const unsigned char *)from + r.from * bytes,
                      .run = r.run};
    memcpy(c.n, r.n, sizeof c.n);
    memcpy(c.to_stride, r.to_stride, sizeof c.to_stride);
    memcpy(c.from_stride, r.from_stride, sizeof c.from_stride);
    return c;
}

hp_status hp_cuda_copy_boxes(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_box meet = hp_box_and(b->copy.dst, b->copy.src), both = hp_task_box(b->task, &meet);
    const int bytes = hp_dtype_bytes(b->dtype);
    if (hp_box_empty(&both)) return HP_OK;
    const hp_cuda_runs r = runs_of(b->y, b->copy.dst, b->x[0], b->copy.src, &both, bytes);
    if (b->task->flags & HP_FLAG_ADD)
        HP_CUDA(hp_cuda_move_add(b->dtype, &r, d->cuda->compute));
    else
        HP_CUDA(hp_cuda_move(bytes, &r, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_clear(hp_device *d, void *at, int64_t bytes, hp_error *err) {
    if (bytes > 0) HP_CUDA(cudaMemsetAsync(at, 0, (size_t)bytes, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_zero(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    return hp_cuda_clear(d, b->y, b->count * hp_dtype_bytes(b->dtype), err);
}

/* --- concatenation: copies channels between each input's box and their place in the output's --- */

static hp_status move_channels(hp_device *d, const hp_bound *b, int i, void *part, void *whole, bool split,
                               hp_error *err) {
    const int bytes = hp_dtype_bytes(hp_cuda_elements(d, b));
    const int64_t c = b->map.in_c[i], out = b->shape.oc;
    unsigned char *place = (unsigned char *)whole + b->map.in_at[i] * bytes;
    const hp_cuda_runs r = {.to = split ? part : place,
                            .from = split ? place : part,
                            .n = {1, 1, hp_cuda_pixels(&b->shape)},
                            .to_stride = {0, 0, split ? c : out},
                            .from_stride = {0, 0, split ? out : c},
                            .run = c};
    HP_CUDA(hp_cuda_move(bytes, &r, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_concat_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    for (int i = 0; i < b->n_in; i++)
        if (b->x[i]) HP_TRY(move_channels(d, b, i, b->x[i], b->y, false, err));
    return HP_OK;
}

hp_status hp_cuda_concat_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    for (int i = 0; i < b->n_in; i++)
        if (b->dx[i]) HP_TRY(move_channels(d, b, i, b->dx[i], b->dy, true, err));
    return HP_OK;
}

/* --- padding: zeros, then the part of the map inside --- */

/* A map (n, h, w, c) at row y, column x of a plane. */
static hp_box map_at(const hp_shape *s, int y, int x, int h, int w) {
    return (hp_box){{0, y, x, 0}, {(int32_t)s->n, y + h, x + w, s->oc}};
}

static hp_status shift(hp_device *d, const hp_bound *b, void *to, const hp_box *to_box, const void *from,
                       const hp_box *from_box, hp_error *err) {
    const int bytes = hp_dtype_bytes(hp_cuda_elements(d, b));
    const hp_box both = hp_box_and(to_box, from_box);
    HP_TRY(hp_cuda_clear(d, to, hp_box_elems(to_box) * bytes, err));
    if (hp_box_empty(&both)) return HP_OK;
    const hp_cuda_runs r = runs_of(to, to_box, from, from_box, &both, bytes);
    HP_CUDA(hp_cuda_move(bytes, &r, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_pad_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_shape *s = &b->shape;
    const hp_box in = map_at(s, s->ph, s->pw, s->ih, s->iw), out = map_at(s, 0, 0, s->oh, s->ow);
    return shift(d, b, b->y, &out, b->x[0], &in, err);
}

hp_status hp_cuda_pad_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_shape *s = &b->shape;
    const hp_box in = map_at(s, s->ph, s->pw, s->ih, s->iw), out = map_at(s, 0, 0, s->oh, s->ow);
    return shift(d, b, b->dx[0], &in, b->dy, &out, err);
}
