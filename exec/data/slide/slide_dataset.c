/* slide_dataset.c - the patches of one very large image as samples without labels:
 * patches:IMAGE[,size=S][,stride=T][,tissue=F][,level=N] (defaults 256, S, 0.5; level: through
 * OpenSlide). The image is read in bands of patch rows, so a run over the patches in order is one
 * pass through the file. */
#include "exec/data/dataset/name.h"
#include "exec/data/dataset/dataset_kind.h"
#include "exec/data/slide/patches.h"

/* Maximum pixels of a band that is read at once for all its patches. */
enum { MOST_BAND = 1 << 26 };

typedef struct patch_source {
    char *path;
    hp_patches patches;
    int32_t x0, x1; /* range of columns that the patches cover */
} patch_source;

static bool accepts_name(const char *name) {
    return hp_data_name_has_kind(name, "patches");
}

static hp_status read_options(hp_dataset *d, hp_patches_options *o, hp_error *err) {
    double size = o->size, stride = 0, level = -1;
    const hp_data_key keys[] = {{"size", 1, HP_MAX_SIDE, true, &size},
                                {"stride", 1, HP_MAX_SIDE, true, &stride},
                                {"tissue", 0, 1, false, &o->tissue},
                                {"level", 0, 31, true, &level}};
    patch_source *p = d->self;
    HP_TRY(hp_data_name_parse(d->arena, d->o.name, keys, sizeof keys / sizeof *keys, &p->path, err));
    o->size = (int32_t)size;
    o->stride = (int32_t)(stride > 0 ? stride : size);
    d->readers.o.slide = level >= 0, d->readers.o.level = (int32_t)(level > 0 ? level : 0);
    return HP_OK;
}

/* Searches for tissue on the smallest level of the slide that is fine enough. */
static hp_status find_tissue(hp_dataset *d, hp_reader *r, int32_t side, hp_tissue *t, hp_error *err) {
    const patch_source *p = d->self;
    const hp_pixels size = hp_reader_size(r);
    const hp_reader_options small = {.slide = true, .level = hp_reader_level(r, side), .decoder = d->decoder};
    if (small.level <= d->readers.o.level) return hp_tissue_find(d->arena, r, size.h, size.w, side, t, err);
    hp_reader *overview;
    HP_TRY(hp_reader_open(p->path, &small, &overview, err));
    const int32_t finer = size.h / hp_reader_size(overview).h, cells = finer < side ? side / finer : 1;
    const hp_status s = hp_tissue_find(d->arena, overview, size.h, size.w, cells, t, err);
    hp_reader_close(overview);
    return s;
}

static void find_columns(patch_source *p) {
    p->x0 = p->patches.image_w;
    for (int32_t k = 0; k < p->patches.n; k++) {
        const hp_crop w = hp_patches_window(&p->patches, k);
        if (w.x0 < p->x0) p->x0 = w.x0;
        if (w.x1 > p->x1) p->x1 = w.x1;
    }
}

static hp_status open_patches(hp_dataset *d, hp_error *err) {
    patch_source *p = d->self = HP_NEW(d->arena, patch_source, 1);
    hp_patches_options o = hp_patches_options_default();
    hp_tissue tissue;
    hp_reader *r;
    if (d->o.split == HP_SPLIT_TRAIN)
        return hp_fail(err, HP_EDATA, "--data %s has no labels; to train, give a folder DIR/train/CLASS/*",
                       d->o.name);
    HP_TRY(read_options(d, &o, err));
    HP_TRY(hp_reader_pool_get(&d->readers, 0, p->path, &r, err));
    const hp_pixels size = hp_reader_size(r);
    if (o.tissue > 0) HP_TRY(find_tissue(d, r, hp_patches_cell_side(&o, size.h, size.w), &tissue, err));
    HP_TRY(hp_patches_choose(d->arena, &o, size.h, size.w, o.tissue > 0 ? &tissue : NULL, &p->patches, err));
    find_columns(p);
    d->count = p->patches.n;
    return HP_OK;
}

const hp_patches *hp_dataset_patches(const hp_dataset *d) {
    return d->kind == &hp_dataset_patched ? &((const patch_source *)d->self)->patches : NULL;
}

static hp_status reader(hp_dataset *d, int64_t index, hp_reader **r, hp_error *err) {
    const patch_source *p = d->self;
    (void)index;
    return hp_reader_pool_get(&d->readers, 0, p->path, r, err);
}

static hp_status size(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    const patch_source *p = d->self;
    (void)index;
    HP_TRY(hp_reader_pool_size(&d->readers, 0, p->path, view, err));
    view->h = view->w = p->patches.size;
    return HP_OK;
}

/* Patch k and the patches left and right of it without a gap. */
static hp_crop neighbours(const hp_patches *p, int32_t k) {
    int32_t first = k, last = k;
    const int32_t row = p->cell[k] / p->cols;
    while (first > 0 && p->cell[first - 1] == p->cell[first] - 1 && p->cell[first - 1] / p->cols == row)
        first--;
    while (last + 1 < p->n && p->cell[last + 1] == p->cell[last] + 1 && p->cell[last + 1] / p->cols == row)
        last++;
    const hp_crop left = hp_patches_window(p, first), right = hp_patches_window(p, last);
    return (hp_crop){left.y0, left.x0, right.y1, right.x1};
}

/* What to read for a patch. Files decoded from the top: the same columns for all patches, so that each row is
 * decoded once. Others: only the patches' columns. */
static hp_crop band_of(const patch_source *p, const hp_reader *r, int32_t k) {
    hp_crop band = neighbours(&p->patches, k);
    if (hp_reader_is_sequential(r)) band.x0 = p->x0, band.x1 = p->x1;
    return band;
}

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    const patch_source *p = d->self;
    const hp_crop at = hp_patches_window(&p->patches, (int32_t)index);
    hp_reader *r;
    HP_TRY(hp_reader_pool_get(&d->readers, 0, p->path, &r, err));
    hp_crop band = band_of(p, r, (int32_t)index);
    const int64_t n = (int64_t)hp_crop_rows(&band) * hp_crop_columns(&band);
    const hp_pixels image = hp_reader_size(r);
    if (n > MOST_BAND || n * (int64_t)hp_pixel_bytes(image.c, image.type) > HP_MAX_BYTES)
        band = (hp_crop){at.y0 + window->y0, at.x0 + window->x0, at.y0 + window->y1, at.x0 + window->x1};
    HP_TRY(hp_reader_window(r, &band, view, err));
    const hp_crop held = view->window; /* in the image's coordinates; becomes the patch's */
    view->window = (hp_crop){held.y0 - at.y0, held.x0 - at.x0, held.y1 - at.y0, held.x1 - at.x0};
    view->h = view->w = p->patches.size;
    return HP_OK;
}

static int32_t label(const hp_dataset *d, int64_t index) {
    (void)d;
    (void)index;
    return HP_LABEL_IGNORED;
}

static hp_status map(hp_dataset *d, int64_t index, const hp_crop *window, int32_t *labels, hp_error *err) {
    (void)err;
    const int64_t n = (int64_t)hp_crop_rows(window) * hp_crop_columns(window);
    for (int64_t i = 0; i < n; i++) labels[i] = label(d, index);
    return HP_OK;
}

static void close_patches(hp_dataset *d) {
    (void)d; /* the arena owns all memory */
}

const hp_dataset_kind hp_dataset_patched = {
    .name = "patches",
    .images = true,
    .one_file = true,
    .accepts = accepts_name,
    .open = open_patches,
    .size = size,
    .pixels = pixels,
    .reader = reader,
    .label = label,
    .map = map,
    .close = close_patches,
};
