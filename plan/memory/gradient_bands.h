/* gradient_bands.h - a convolution's weight gradient is a sum over all pixels of its output. A CPU takes it band by band, each in
 * float32 over a few thousand pixels, and adds the bands in float64: the error does not grow with the map. */
#ifndef HP_GRADIENT_BANDS_H
#define HP_GRADIENT_BANDS_H

#include "plan/tiles/tile.h"

enum { HP_GRADIENT_PIXELS = 4096 }; /* of a band, or two rows where these have more */

/* Whole samples, or rows of one: an even number, since Winograd's tiles have two. */
typedef struct hp_gradient_band {
    hp_shape shape; /* of the convolution between the band's boxes; ih 0: they read padding alone */
    int64_t x, y;   /* first pixels of its input and its output */
} hp_gradient_band;

/* How many bands a shape has; 1: the whole shape. */
int64_t hp_gradient_bands(const hp_shape *s);
hp_gradient_band hp_gradient_band_of(const hp_shape *s, int64_t k);
/* Of the end of scratch: the sums in float64, and a band's. 0: there is one band. */
int64_t hp_gradient_bytes(const hp_shape *s);

static inline int64_t hp_gradient_weights(const hp_shape *s) {
    return s->groups < 1 ? 0
                         : (int64_t)s->oc * (s->ic / s->groups) * s->kh * s->kw; /* 0 groups: no channels */
}

#endif
