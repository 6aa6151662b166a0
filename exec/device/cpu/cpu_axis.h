/* cpu_axis.h - outputs of a convolution along one axis, grouped by how they read taps: the interior, every
 * kind of border, and the phases of a transposed convolution. */
#ifndef HP_CPU_AXIS_H
#define HP_CPU_AXIS_H

#include "base/arena.h"
#include "plan/tiles/tile.h"

/* Outputs out, out + step, ... Tap `tap` of the first output reads input `in`, that of the next `in_step`
 * further on. Taps tap, tap + tap_step, ... read inputs `in_tap` apart. All these inputs are inside. */
typedef struct hp_axis_group {
    int32_t out, step, n;
    int32_t in, in_step;
    int32_t tap, tap_step, taps, in_tap; /* taps 0: only padding */
} hp_axis_group;

typedef struct hp_axis {
    hp_axis_group *group;
    int32_t n;
} hp_axis;

/* Groups of the rows or columns of a conv, linear or convt layer, in `arena`. */
hp_axis hp_axis_of(hp_arena *arena, const hp_shape *s, bool transposed, bool rows);

#endif
