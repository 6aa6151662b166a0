/* cpu_pad.c - adds zeros around a map, or, backward, cuts the map out of its frame. One copy does both: every
 * pixel comes from a fixed distance, and is zero if that lies outside. */
#include "exec/device/cpu/cpu_train.h"

#include <string.h>

/* A map (N, h, w, C). */
typedef struct map {
    float *at;
    int h, w;
} map;

/* to[y][x] = from[y - up][x - left]. */
static void shift_row(float *to, const float *from, map t, map f, int left, int channels) {
    const int begin = left < 0     ? 0
                      : left > t.w ? t.w
                                   : left,
              last = f.w + left < t.w ? f.w + left : t.w, end = last > begin ? last : begin;
    memset(to, 0, (size_t)begin * (size_t)channels * sizeof *to);
    if (end > begin)
        memcpy(to + (int64_t)begin * channels, from + (int64_t)(begin - left) * channels,
               (size_t)(end - begin) * (size_t)channels * sizeof *to);
    memset(to + (int64_t)end * channels, 0, (size_t)(t.w - end) * (size_t)channels * sizeof *to);
}

static void shift(map t, map f, int64_t samples, int up, int left, int channels) {
    const int64_t to_row = (int64_t)t.w * channels, from_row = (int64_t)f.w * channels;
    for (int64_t n = 0; n < samples; n++)
        for (int y = 0; y < t.h; y++) {
            float *to = t.at + (n * t.h + y) * to_row;
            if (y < up || y - up >= f.h)
                memset(to, 0, (size_t)to_row * sizeof *to);
            else
                shift_row(to, f.at + (n * f.h + y - up) * from_row, t, f, left, channels);
        }
}

hp_status hp_cpu_pad_fwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)d;
    (void)step;
    (void)err;
    const hp_shape *s = &b->shape;
    shift((map){b->y, s->oh, s->ow}, (map){b->x[0], s->ih, s->iw}, s->n, s->ph, s->pw, s->oc);
    return HP_OK;
}

hp_status hp_cpu_pad_bwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)d;
    (void)step;
    (void)err;
    const hp_shape *s = &b->shape;
    shift((map){b->dx[0], s->ih, s->iw}, (map){b->dy, s->oh, s->ow}, s->n, -s->ph, -s->pw, s->oc);
    return HP_OK;
}
