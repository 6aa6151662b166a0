/* front.h - the candidates that none beats in time, memory and device hours together. */
#ifndef HP_FRONT_H
#define HP_FRONT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Time and device hours are per image, 1 / images_per_s and gpus / images_per_s: candidates of a sweep differ in batch. */
typedef struct hp_front_point {
    double images_per_s, memory_bytes; /* of the fullest rank */
    int32_t gpus;
} hp_front_point;

/* Another point with no less images/s, no more memory and no more device hours beats one if it is better in any; of
 * equal ones the first is on the front. Points without images or memory are none. `front`: room for n indices; they come
 * with less memory first. Returns how many. Cost: n log n, and n times the numbers of devices there are. */
int hp_front(hp_arena *arena, const hp_front_point *p, int n, int *front);

#endif
