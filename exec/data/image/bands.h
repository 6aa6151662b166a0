/* bands.h - for formats that decode a row of strips or tiles at a time: caches the last decoded row, so that
 * overlapping or consecutive windows decode it once. */
#ifndef HP_BANDS_H
#define HP_BANDS_H

#include "exec/data/image/reader_kind.h"

typedef struct hp_bands {
    int32_t rows, columns; /* size of a strip or tile; all start at multiples of it */
    bool splittable;       /* any part of a strip can be decoded by itself, at the cost of the rows above */
    /* Decodes `band` to raster, dense, with only the image bands that are read. Its corners lie at multiples
     * of rows and columns, or at the image's end. */
    hp_status (*decode)(hp_reader *r, const hp_crop *band, uint8_t *raster, hp_error *err);
    hp_crop held;    /* contents of raster; empty: none */
    uint8_t *raster; /* type as the reader's pixels */
    size_t capacity; /* bytes */
    size_t beside;   /* bytes that decode keeps between calls */
} hp_bands;

/* Reads rows and columns of `part`, dense. Errors: HP_EDATA (a strip of more than HP_MAX_PIXELS or
 * HP_MAX_BYTES, no memory), those of the callback. */
hp_status hp_bands_rows(hp_bands *b, hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err);
void hp_bands_free(hp_bands *b);

#endif
