/* gradient_bands.h - splits a convolution's weight gradient, a sum over all output pixels, into bands. A CPU
 * sums each band in float32 over a few thousand pixels and adds the bands in float64, so that the error does
 * not grow with the map. */
#ifndef HP_GRADIENT_BANDS_H
#define HP_GRADIENT_BANDS_H

#include "plan/tiles/tile.h"

enum { HP_GRADIENT_PIXELS = 4096 }; /* pixels per band; two rows if these have more */

/* Whole samples, or rows of one: an even number of rows, as Winograd tiles have two. */
typedef struct hp_gradient_band {
    hp_shape shape; /* the convolution between the band's boxes; ih 0: its inputs are all padding */
    int64_t x, y;   /* first pixels of the band's input and output */
} hp_gradient_band;

/* Number of bands of a shape; 1: the whole shape. */
int64_t hp_gradient_bands(const hp_shape *s);
hp_gradient_band hp_gradient_band_of(const hp_shape *s, int64_t k);
/* Bytes at the end of scratch for the float64 sums and one band's float32 sums; 0 if there is one band. */
int64_t hp_gradient_bytes(const hp_shape *s);

static inline int64_t hp_gradient_weights(const hp_shape *s) {
    return s->groups < 1 ? 0
                         : (int64_t)s->oc * (s->ic / s->groups) * s->kh * s->kw; /* 0 groups: no channels */
}

#endif
