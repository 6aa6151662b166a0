/* tissue.h - where a slide shows tissue: the cells of a coarse map whose saturation (colour) or darkness
 * (grey) is above Otsu's threshold. Glass is bright and colourless. Source: Otsu, "A threshold selection
 * method from gray-level histograms", IEEE SMC 9, 1979. */
#ifndef HP_TISSUE_H
#define HP_TISSUE_H

#include "exec/data/image/reader.h"
#include "base/arena.h"

typedef struct hp_tissue {
    int32_t h, w;          /* cells */
    double cell_h, cell_w; /* rows and columns of the image per cell */
    uint8_t *level;        /* (h, w): saturation of the cell's mean colour, 0 .. 255 */
    int32_t threshold;     /* a cell is tissue where level > threshold; 255: none is */
} hp_tissue;

/* The threshold that maximises the variance between the two classes, the lowest on a tie; 255 if there
 * is only one level. */
int32_t hp_otsu(const int64_t count[256]);

/* Saturation (max - min) / max, scaled to 0 .. 255. */
uint8_t hp_saturation(uint8_t r, uint8_t g, uint8_t b);

/* Computes the map of an image of image_h x image_w; `r` may read a smaller level, and cells are `side`
 * pixels of that. One pass from top to bottom; memory: `side` rows and the map. Errors: the reader's. */
hp_status hp_tissue_find(hp_arena *a, hp_reader *r, int32_t image_h, int32_t image_w, int32_t side,
                         hp_tissue *t, hp_error *err);

/* Fraction of a window's cells that are tissue: cells whose centres lie in it, or the one at its centre. */
double hp_tissue_share(const hp_tissue *t, const hp_crop *window);

#endif
