/* tiff_samples.h - samples as TIFF stores them (BitsPerSample, SampleFormat) made into those of image_samples.h. */
#ifndef HP_TIFF_SAMPLES_H
#define HP_TIFF_SAMPLES_H

#include "exec/data/image/image_samples.h"

#include <stdbool.h>

/* n samples of a decoded row, whose order of bytes is the machine's: sample `first` of it, then each `step`-th, to each
 * `to_step`-th of `to`. */
typedef struct hp_tiff_row {
    const void *row;
    size_t first, step, n;
    void *to;
    size_t to_step;
    int32_t bits; /* of a sample */
} hp_tiff_row;

typedef struct hp_tiff_samples {
    int32_t bits_from, bits_to; /* that it reads */
    int32_t format;             /* SampleFormat: 1 unsigned, 2 signed, 3 float */
    hp_pixel_type type;         /* what they become, */
    bool scaled, rounded;       /* floats by division; of fewer bits than the file's */
    void (*convert)(const hp_tiff_row *r);
} hp_tiff_samples;

/* The row of the table for them, NULL: there is none. Undefined samples (4) are unsigned. */
const hp_tiff_samples *hp_tiff_samples_of(int32_t bits, int32_t format);

/* n samples that stand apart by `step`, each v becomes the largest minus v (min-is-white). Of U8 and U16. */
void hp_tiff_samples_invert(hp_pixel_type type, void *px, size_t n, size_t step);

#endif
