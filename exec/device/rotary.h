/* rotary.h - the angles by which rotary positions rotate pairs of channels c, c + d/2 (Su et al. 2021). */
#ifndef HP_ROTARY_H
#define HP_ROTARY_H

#include "exec/device/device_bind.h"

/* Elements of an attention layer's table, (pixels of the whole map, channels of a head); 0: the
 * layer does not rotate. */
int64_t hp_rotary_elems(const hp_bound *b);
/* Fills in each pixel's cosines for half of the channels, then sines. */
void hp_rotary_fill(const hp_bound *b, float *turn);

#endif
