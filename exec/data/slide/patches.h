/* patches.h - patch-based classification of very large images: chooses patches of a grid that show tissue,
 * classifies each separately, and derives the slide's class and a map of it. The baseline for whole-image
 * inference. (Campanella et al., Nature Medicine 25, 2019; Lu et al., CLAM, Nature BME 5, 2021.)
 *
 * The data set `patches:IMAGE` (slide/slide_dataset.c) yields the chosen patches as samples, so an ordinary
 * program of batch B runs over them. Every rank adds its logits to votes (votes.h), votes are all-reduced,
 * and the probabilities are written to a heat map. */
#ifndef HP_PATCHES_H
#define HP_PATCHES_H

#include "exec/data/output/output.h"
#include "exec/data/slide/tissue.h"

typedef struct hp_patches_options {
    int32_t size, stride; /* rows and columns of a patch; distance between patches */
    double tissue;        /* minimum share of tissue; 0: all patches, without a search for tissue */
} hp_patches_options;

/* size 256, stride 256, tissue 0.5. */
hp_patches_options hp_patches_options_default(void);

typedef struct hp_patches {
    int32_t size, stride, image_h, image_w;
    int32_t rows, cols; /* size of the grid; the last row and column move inwards to end with the image */
    int32_t n;          /* chosen */
    int32_t *cell;      /* row * cols + column of each chosen patch, ascending */
} hp_patches;

enum { HP_MAX_PATCHES = 1 << 26 /* patches in a grid */ };

/* Side of the tissue map's cells: a sixteenth of a patch, or larger where the map would exceed its limit. */
int32_t hp_patches_cell_side(const hp_patches_options *o, int32_t image_h, int32_t image_w);

/* `t` NULL: all patches. Errors: HP_EDATA (a patch larger than the image, too many, none with tissue). */
hp_status hp_patches_choose(hp_arena *a, const hp_patches_options *o, int32_t image_h, int32_t image_w,
                            const hp_tissue *t, hp_patches *p, hp_error *err);

/* Position of chosen patch `k` in the image. */
hp_crop hp_patches_window(const hp_patches *p, int32_t k);

/* The heat map has (1, rows, cols, classes) probabilities, NaN (classes: 255) where no patch was chosen. Rank
 * 0 creates it, then see output.h. */

/* The output at `path`; as_classes: the most likely class instead of probabilities. */
hp_output_spec hp_patches_heat_spec(const hp_patches *p, const char *path, int32_t classes, bool as_classes);
/* Errors: hp_output_create's. */
hp_status hp_patches_heat_create(const hp_patches *p, const hp_output_spec *s, hp_output **o, hp_error *err);
/* Writes logits (n, classes) of chosen patches first .. first + n - 1. Errors: HP_EIO. */
hp_status hp_patches_heat_write(const hp_patches *p, hp_output *o, int32_t first, int32_t n, int32_t classes,
                                const float *logits, hp_error *err);

#endif
