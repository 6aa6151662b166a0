/* patches.c - the grid of patches, the selection of those with tissue, and their heat map; see patches.h. */
#include "exec/data/slide/patches.h"

#include "exec/data/slide/votes.h"

#include <math.h>
#include <stdlib.h>

/* Limit on the cells of a tissue map: 4096 x 4096. */
static const double MOST_CELLS = 1 << 24;

hp_patches_options hp_patches_options_default(void) {
    return (hp_patches_options){.size = 256, .stride = 256, .tissue = 0.5};
}

int32_t hp_patches_cell_side(const hp_patches_options *o, int32_t image_h, int32_t image_w) {
    const int32_t least = (int32_t)ceil(sqrt((double)image_h * image_w / MOST_CELLS)), fine = o->size / 16;
    return fine > least ? fine : least;
}

/* Number of patches along one side of the image. */
static int64_t along(int32_t side, const hp_patches_options *o) {
    return ((int64_t)side - o->size + o->stride - 1) / o->stride + 1;
}

static int32_t place(int32_t k, int32_t side, const hp_patches *p) {
    const int64_t at = (int64_t)k * p->stride;
    return at + p->size <= side ? (int32_t)at : side - p->size;
}

static hp_crop cell_window(const hp_patches *p, int32_t cell) {
    const int32_t y = place(cell / p->cols, p->image_h, p), x = place(cell % p->cols, p->image_w, p);
    return (hp_crop){y, x, y + p->size, x + p->size};
}

hp_crop hp_patches_window(const hp_patches *p, int32_t k) {
    HP_ASSERT(k >= 0 && k < p->n);
    return cell_window(p, p->cell[k]);
}

hp_status hp_patches_choose(hp_arena *a, const hp_patches_options *o, int32_t image_h, int32_t image_w,
                            const hp_tissue *t, hp_patches *p, hp_error *err) {
    HP_ASSERT(o->size > 0 && o->stride > 0);
    if (o->size > image_h || o->size > image_w)
        return hp_fail(err, HP_EDATA,
                       "patches of %d pixels do not fit into an image of %d x %d; give size=%d", o->size,
                       image_h, image_w, image_h < image_w ? image_h : image_w);
    const int64_t rows = along(image_h, o), cols = along(image_w, o);
    if (rows * cols > HP_MAX_PATCHES)
        return hp_fail(err, HP_EDATA, "%lld x %lld patches are more than %d; give a larger stride",
                       (long long)rows, (long long)cols, (int)HP_MAX_PATCHES);
    *p = (hp_patches){o->size, o->stride, image_h, image_w, (int32_t)rows, (int32_t)cols, 0, NULL};
    p->cell = HP_NEW(a, int32_t, rows * cols);
    for (int32_t cell = 0; cell < (int32_t)(rows * cols); cell++) {
        const hp_crop w = cell_window(p, cell);
        if (!t || hp_tissue_share(t, &w) >= o->tissue) p->cell[p->n++] = cell;
    }
    if (p->n) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "none of the %lld patches holds %g of tissue; give a smaller tissue=, or 0 for all patches",
        (long long)(rows * cols), o->tissue);
}

/* --- heat map --- */

hp_output_spec hp_patches_heat_spec(const hp_patches *p, const char *path, int32_t classes, bool as_classes) {
    return (hp_output_spec){path, 1, p->rows, p->cols, classes, as_classes};
}

static hp_box cells(const hp_patches *p, int32_t cell, int32_t n, int32_t classes) {
    const int32_t y = cell / p->cols, x = cell % p->cols;
    return (hp_box){{0, y, x, 0}, {1, y + 1, x + n, classes}};
}

/* Fills the map with NaN; the chosen cells are overwritten later. */
static hp_status clear(const hp_patches *p, hp_output *o, int32_t classes, hp_error *err) {
    const size_t n = (size_t)p->cols * (size_t)classes;
    float *row = malloc(n * sizeof *row);
    HP_ASSERT(row);
    hp_status s = HP_OK;
    for (size_t i = 0; i < n; i++) row[i] = NAN;
    for (int32_t y = 0; s == HP_OK && y < p->rows; y++) {
        const hp_box b = cells(p, y * p->cols, p->cols, classes);
        s = hp_output_write(o, &b, row, err);
    }
    free(row);
    return s;
}

hp_status hp_patches_heat_create(const hp_patches *p, const hp_output_spec *s, hp_output **o, hp_error *err) {
    HP_TRY(hp_output_create(s, o, err));
    const hp_status status = clear(p, *o, s->c, err);
    if (status == HP_OK) return HP_OK;
    hp_output_close(*o, NULL);
    hp_output_discard(s);
    return status;
}

hp_status hp_patches_heat_write(const hp_patches *p, hp_output *o, int32_t first, int32_t n, int32_t classes,
                                const float *logits, hp_error *err) {
    float *share = malloc((size_t)classes * sizeof *share);
    HP_ASSERT(share && first >= 0 && first + n <= p->n);
    hp_status s = HP_OK;
    for (int32_t k = 0; s == HP_OK && k < n; k++, logits += classes) {
        const hp_box b = cells(p, p->cell[first + k], 1, classes);
        hp_softmax(logits, classes, share);
        s = hp_output_write(o, &b, share, err);
    }
    free(share);
    return s;
}
