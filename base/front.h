/* front.h - Pareto-optimal candidates in time, memory and device hours. */
#ifndef HP_FRONT_H
#define HP_FRONT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Time and device hours are per image (1 / images_per_s and gpus / images_per_s), because the candidates of a
 * sweep differ in batch size. */
typedef struct hp_front_point {
    double images_per_s, memory_bytes; /* peak bytes of the fullest rank */
    int32_t gpus;
} hp_front_point;

/* A point is dominated if another has at least its images/s, at most its memory and device hours, and is
 * better in one. Among equal points, the first is on the front. Points without images or memory are skipped.
 * `front` has room for n indices, which are written in order of increasing memory. Returns their number.
 * Cost: n log n, plus n times the number of distinct device counts. */
int hp_front(hp_arena *arena, const hp_front_point *p, int n, int *front);

#endif
