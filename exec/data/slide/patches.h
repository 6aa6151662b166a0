/* patches.h - the patch-based way with very large images: a grid of square patches, those with tissue chosen,
 * each classified by itself, and the slide's class, and a map of it, made from theirs. What whole-image
 * inference is compared with. (Campanella et al., Nature Medicine 25, 2019; Lu et al., CLAM, Nature BME 5,
 * 2021.)
 *
 * The data set `patches:IMAGE` (slide/dataset.c) yields the chosen patches as samples, so that an ordinary
 * program of batch B runs over them. Then every rank adds its logits to votes (votes.h), the votes are added
 * up over ranks, and the probabilities go to a heat map. */
#ifndef HP_PATCHES_H
#define HP_PATCHES_H

#include "exec/data/output/output.h"
#include "exec/data/slide/tissue.h"

typedef struct hp_patches_options {
    int32_t size, stride; /* rows and columns of a patch, and from one to the next */
    double tissue;        /* least share of tissue; 0: all patches, tissue is not looked for */
} hp_patches_options;

/* size 256, stride 256, tissue 0.5. */
hp_patches_options hp_patches_options_default(void);

typedef struct hp_patches {
    int32_t size, stride, image_h, image_w;
    int32_t rows, cols; /* of the grid; the last row and column are moved inwards to end with the image */
    int32_t n;          /* chosen */
    int32_t *cell;      /* row * cols + column of each, ascending */
} hp_patches;

enum { HP_MAX_PATCHES = 1 << 26 /* of a grid */ };

/* Side of the tissue map's cells: a sixteenth of a patch, or coarser where the map would be too large. */
int32_t hp_patches_cell_side(const hp_patches_options *o, int32_t image_h, int32_t image_w);

/* `t` NULL: all patches. Errors: HP_EDATA (a patch larger than the image, too many, none with tissue). */
hp_status hp_patches_choose(hp_arena *a, const hp_patches_options *o, int32_t image_h, int32_t image_w,
                            const hp_tissue *t, hp_patches *p, hp_error *err);

/* Where patch `k` of the chosen lies in the image. */
hp_crop hp_patches_window(const hp_patches *p, int32_t k);

/* --- the heat map: (1, rows, cols, classes) probabilities, no number (classes: 255) where no patch was
 * chosen; created by rank 0, the rest as output.h says --- */

hp_output_spec hp_patches_heat_spec(const hp_patches *p, const char *path, int32_t classes, bool as_classes);
/* Errors: hp_output_create's. */
hp_status hp_patches_heat_create(const hp_patches *p, const hp_output_spec *s, hp_output **o, hp_error *err);
/* Logits (n, classes) of patches first .. first + n - 1 of the chosen. Errors: HP_EIO. */
hp_status hp_patches_heat_put(const hp_patches *p, hp_output *o, int32_t first, int32_t n, int32_t classes,
                              const float *logits, hp_error *err);

#endif
