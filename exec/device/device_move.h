/* device_move.h - copy and zero tasks: move memory between boxes, the same on every device whose memory the
 * processor can address. */
#ifndef HP_DEVICE_MOVE_H
#define HP_DEVICE_MOVE_H

#include "exec/device/device_bind.h"

/* dst += src. */
typedef void hp_add_f32(float *dst, const float *src, int64_t n);

/* On the intersection of both boxes: dst = src, or dst += src with HP_FLAG_ADD: a gather and its adjoint.
 * `add`: for float32 gradients; NULL if the program has none. */
void hp_move_copy(const hp_bound *b, hp_add_f32 *add);
void hp_move_zero(const hp_bound *b);

#endif
