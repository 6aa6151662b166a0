/* tiff.h - an open TIFF; private to tiff.c and tiff_rows.c. */
#ifndef HP_TIFF_H
#define HP_TIFF_H

#include "exec/data/image/bands.h"
#include "exec/data/image/tiff_samples.h"

#include <tiffio.h>

typedef struct hp_tiff {
    TIFF *file;
    TIFFOpenOptions *options;
    hp_bands bands;
    char text[1024]; /* libtiff's first error message */
    bool tiled;
    /* as the samples are stored: */
    const hp_tiff_samples *samples; /* NULL: through libtiff's RGBA interface, as colours need a conversion */
    int32_t bits;
    bool planes;  /* each band by itself */
    bool inverse; /* min is white */
    bool map;     /* samples are places in a map of colours, */
    uint16_t *colour[3];
    int map_shift; /* whose numbers have 16 bits, or in some files 8 */
    uint8_t *row;  /* one decoded row of a strip, or a tile */
    size_t row_bytes;
    int32_t next; /* row that the strip's decoder gives next; -1: it must begin again */
    /* through RGBA: */
    TIFFRGBAImage rgba;
    bool begun;       /* rgba is initialised */
    uint32_t *raster; /* of a band, 0xAABBGGRR */
    size_t capacity;  /* pixels */
} hp_tiff;

/* tiff_rows.c: the band's rows and columns, those bands of it that are read. Returns false where libtiff fails. */
bool hp_tiff_rows(hp_reader *r, const hp_crop *band, uint8_t *raster);

#endif
