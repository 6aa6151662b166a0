/* cpu_axis.h - outputs of a convolution along one axis, in groups that read the same taps in the same way:
 * the interior, every kind of border, and the phases of a transposed convolution. */
#ifndef HP_CPU_AXIS_H
#define HP_CPU_AXIS_H

#include "base/arena.h"
#include "plan/tiles/tile.h"

/* Outputs out, out + step, ...; tap `tap` of the first reads input `in`, the next output's `in_step` further
 * on; taps tap, tap + tap_step, ... read inputs `in_tap` apart. Every input that is read is inside. */
typedef struct hp_axis_group {
    int32_t out, step, n;
    int32_t in, in_step;
    int32_t tap, tap_step, taps, in_tap; /* taps 0: padding alone */
} hp_axis_group;

typedef struct hp_axis {
    hp_axis_group *group;
    int32_t n;
} hp_axis;

/* Of the rows, or the columns, of a conv, linear or convt layer. Lives in `arena`. */
hp_axis hp_axis_of(hp_arena *arena, const hp_shape *s, bool transposed, bool rows);

#endif
