/* bands.h - formats that decode a row of strips or tiles at a time: the last row decoded stays, so that
 * windows that overlap or follow one another decode it once. */
#ifndef HP_IMAGE_BANDS_H
#define HP_IMAGE_BANDS_H

#include "exec/data/image/reader_kind.h"

typedef struct hp_bands {
    int32_t rows, columns; /* of a strip or tile: all begin at multiples of these */
    bool loose;            /* any part of a strip may be decoded by itself, at the cost of what is above it */
    /* Decodes `band`, which begins at such multiples and ends there or with the image, to raster, dense. */
    hp_status (*fill)(hp_reader *r, const hp_crop *band, uint32_t *raster, hp_error *err);
    hp_crop held;     /* what raster holds; empty: nothing */
    uint32_t *raster; /* 0xAABBGGRR, A ignored */
    size_t capacity;  /* pixels */
} hp_bands;

/* Rows and columns of `part`, dense, c (1: red alone) channels. Errors: HP_EDATA (a strip of more than
 * HP_MAX_PIXELS, no memory), fill's. */
hp_status hp_bands_rows(hp_bands *b, hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err);
void hp_bands_free(hp_bands *b);

#endif
