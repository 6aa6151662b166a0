/* tiff_samples.h - converts samples as TIFF stores them (BitsPerSample, SampleFormat) to those
 * of image_samples.h. */
#ifndef HP_TIFF_SAMPLES_H
#define HP_TIFF_SAMPLES_H

#include "exec/data/image/image_samples.h"

#include <stdbool.h>

/* n samples of a decoded row in the machine's byte order: from sample `first` every `step`-th one, written to
 * every `to_step`-th of `to`. */
typedef struct hp_tiff_row {
    const void *row;
    size_t first, step, n;
    void *to;
    size_t to_step;
    int32_t bits; /* bits per sample */
} hp_tiff_row;

typedef struct hp_tiff_samples {
    int32_t bits_from, bits_to; /* that it reads */
    int32_t format;             /* SampleFormat: 1 unsigned, 2 signed, 3 float */
    hp_pixel_type type;         /* what they become, */
    bool scaled, rounded;       /* integers divided to floats; fewer bits than in the file */
    void (*convert)(const hp_tiff_row *r);
} hp_tiff_samples;

/* The table's row for them; NULL: none. Undefined samples (4) count as unsigned. */
const hp_tiff_samples *hp_tiff_samples_of(int32_t bits, int32_t format);

/* Inverts n samples that are `step` apart: v becomes the largest minus v (min-is-white).
 * Only for U8 and U16. */
void hp_tiff_samples_invert(hp_pixel_type type, void *px, size_t n, size_t step);

#endif
