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
    /* for samples read as stored: */
    const hp_tiff_samples *samples; /* NULL: colours need a conversion by libtiff's RGBA interface */
    int32_t bits;
    bool planes;  /* each band is stored separately */
    bool inverse; /* min is white */
    bool map;     /* samples are indices into a colour map, */
    uint16_t *colour[3];
    int map_shift; /* whose entries have 16 bits, or in some files 8 */
    uint8_t *row;  /* one decoded row of a strip, or one tile */
    size_t row_bytes;
    int32_t next; /* row that the strip's decoder returns next; -1: must restart */
    /* through RGBA: */
    TIFFRGBAImage rgba;
    bool begun;       /* rgba is initialised */
    uint32_t *raster; /* pixels of a band, 0xAABBGGRR */
    size_t capacity;  /* pixels */
} hp_tiff;

/* tiff_rows.c: reads the band's rows and columns, with the image bands that are read. Returns
 * false if libtiff fails. */
bool hp_tiff_rows(hp_reader *r, const hp_crop *band, uint8_t *raster);

#endif
