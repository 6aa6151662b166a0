/* device_move.c - copies the intersection of two boxes, in runs as long as both buffers are contiguous;
 * see device_move.h. */
#include "exec/device/device_move.h"

#include "plan/program/runs.h"

#include <string.h>

static void add_f64(double *dst, const double *src, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] += src[i];
}

/* Copies n runs of `bytes`, with strides in bytes. Short runs, such as a pixel's channels, are copied inline:
 * calls of memcpy would take longer than the copies. */
static void copy_runs(unsigned char *to, const unsigned char *from, int64_t n, int64_t to_step,
                      int64_t from_step, int64_t bytes) {
#define EACH(size)                                                                                           \
    case size:                                                                                               \
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, size);                \
        return
    switch (bytes) {
        EACH(4);
        EACH(8);
        EACH(16);
        EACH(32);
        EACH(64);
    default:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
    }
#undef EACH
}

static void add_run(const hp_bound *b, int64_t to, int64_t from, int64_t elems, hp_add_f32 *add) {
    if (b->dtype == HP_F64) {
        add_f64((double *)b->y + to, (const double *)b->x[0] + from, elems);
        return;
    }
    HP_ASSERT(b->dtype == HP_F32 && add);
    add((float *)b->y + to, (const float *)b->x[0] + from, elems);
}

/* Moves the runs along the innermost axis that is walked. */
static void move_line(const hp_bound *b, const hp_runs *r, int64_t to, int64_t from, hp_add_f32 *add) {
    const int last = HP_AXES - 2;
    const int64_t bytes = hp_dtype_bytes(b->dtype), n = r->n[last], to_step = r->to_stride[last],
                  from_step = r->from_stride[last];
    if (!(b->task->flags & HP_FLAG_ADD)) {
        copy_runs((unsigned char *)b->y + to * bytes, (const unsigned char *)b->x[0] + from * bytes, n,
                  to_step * bytes, from_step * bytes, r->run * bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++) add_run(b, to + i * to_step, from + i * from_step, r->run, add);
}

void hp_move_copy(const hp_bound *b, hp_add_f32 *add) {
    const hp_box both = hp_box_and(b->copy.dst, b->copy.src), part = hp_task_box(b->task, &both);
    if (hp_box_empty(&part)) return;
    const hp_runs r = hp_runs_between(b->copy.dst, b->copy.src, &part);
    for (int64_t n = 0; n < r.n[HP_AXIS_N]; n++)
        for (int64_t h = 0; h < r.n[HP_AXIS_H]; h++)
            move_line(b, &r, r.to + n * r.to_stride[HP_AXIS_N] + h * r.to_stride[HP_AXIS_H],
                      r.from + n * r.from_stride[HP_AXIS_N] + h * r.from_stride[HP_AXIS_H], add);
}

void hp_move_zero(const hp_bound *b) {
    if (b->count > 0) memset(b->y, 0, (size_t)(b->count * hp_dtype_bytes(b->dtype)));
}
