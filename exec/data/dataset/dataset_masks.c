/* dataset_masks.c - images with a class per pixel: DIR/{train,test}/images/NAME.png|jpg|tif and, with the
 * same height and width, DIR/{train,test}/masks/NAME.png. The value of a mask's pixel is its class; 255 means
 * ignored (as in PASCAL VOC). */
#include "exec/data/dataset/dataset_kind.h"

#include <string.h>

enum { IGNORED = 255 };

typedef struct pair {
    const char *image, *mask; /* paths */
} pair;

static bool has_both(const char *name, int32_t split) {
    hp_arena *a = hp_arena_new();
    const bool both = hp_is_dir(hp_arena_printf(a, "%s/%s/images", name, hp_split_name(split))) &&
                      hp_is_dir(hp_arena_printf(a, "%s/%s/masks", name, hp_split_name(split)));
    hp_arena_free(a);
    return both;
}

static bool accepts_name(const char *name) {
    return has_both(name, HP_SPLIT_TRAIN) || has_both(name, HP_SPLIT_TEST);
}

static hp_status find_mask(hp_dataset *d, const char *dir, const char *image, const char **mask,
                           hp_error *err) {
    const int stem = (int)(strrchr(image, '.') - image);
    *mask = hp_arena_printf(d->arena, "%s/masks/%.*s.png", dir, stem, image);
    if (hp_is_file(*mask)) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s is missing, the mask of %s/images/%s; add it or remove the image",
                   *mask, dir, image);
}

static hp_status open_masks(hp_dataset *d, hp_error *err) {
    d->masks.o.mask = true;
    const char *dir = hp_arena_printf(d->arena, "%s/%s", d->o.name, hp_split_name(d->o.split));
    const char *images = hp_arena_printf(d->arena, "%s/images", dir);
    hp_names files = {0};
    if (!has_both(d->o.name, d->o.split))
        return hp_fail(err, HP_EDATA, "%s has no images and masks folders; add both", dir);
    HP_TRY(hp_names_list(d->arena, images, hp_is_image, &files, err));
    hp_names_count_others(d, &files);
    if (files.n == 0)
        return hp_fail(err, HP_EDATA, "%s has no .png, .jpg, .jpeg, .tif or .tiff; add images", images);
    pair *pairs = d->self = HP_NEW(d->arena, pair, files.n);
    for (int i = 0; i < files.n; i++) {
        pairs[i].image = hp_arena_printf(d->arena, "%s/%s", images, files.name[i]);
        HP_TRY(find_mask(d, dir, files.name[i], &pairs[i].mask, err));
    }
    d->count = files.n;
    return HP_OK;
}

static const pair *pair_of(const hp_dataset *d, int64_t index) {
    return (const pair *)d->self + index;
}

static hp_status reader(hp_dataset *d, int64_t index, hp_reader **r, hp_error *err) {
    return hp_reader_pool_get(&d->readers, index, pair_of(d, index)->image, r, err);
}

static hp_status size(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    return hp_reader_pool_size(&d->readers, index, pair_of(d, index)->image, view, err);
}

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    return hp_reader_pool_window(&d->readers, index, pair_of(d, index)->image, window, view, err);
}

/* --- the label map --- */

/* Nearest file position along one axis, in exact integer arithmetic. The file's n positions are scaled to
 * `full`; the network sees the centre of these, `out` positions, covered by n_label labels. Returns the
 * file's position under the centre of label o. */
static int32_t nearest(int32_t o, int32_t n_label, int32_t out, int32_t full, int32_t n) {
    const int64_t skip = (full - out) / 2;
    return (int32_t)((((2 * (int64_t)o + 1) * out + 2 * skip * n_label) * n) / (2 * (int64_t)n_label * full));
}

static int32_t row_of(const hp_dataset *d, const hp_resize *fit, int32_t y) {
    return nearest(y, d->o.label_h, fit->out_h, fit->full_h, fit->h);
}

static int32_t column_of(const hp_dataset *d, const hp_resize *fit, int32_t x) {
    return nearest(x, d->o.label_w, fit->out_w, fit->full_w, fit->w);
}

static hp_status check_size(const pair *p, const hp_pixels *image, const hp_pixels *mask, hp_error *err) {
    if (mask->h == image->h && mask->w == image->w) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s is %d x %d, its image %s is %d x %d; make them equal", p->mask, mask->h,
                   mask->w, p->image, image->h, image->w);
}

static hp_status label_at(const hp_dataset *d, const pair *p, int32_t y, int32_t x, uint8_t value,
                          int32_t *label, hp_error *err) {
    *label = value == IGNORED ? HP_LABEL_IGNORED : value;
    if (*label < d->o.classes) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "%s: value %d at row %d, column %d; the plan has %d classes, numbers 0 to %d and 255 for pixels "
        "not to be counted: simulate with --classes %d or change the mask",
        p->mask, value, y, x, d->o.classes, d->o.classes - 1, value + 1);
}

static hp_status map(hp_dataset *d, int64_t index, const hp_crop *window, int32_t *labels, hp_error *err) {
    const pair *p = pair_of(d, index);
    hp_reader *mask;
    hp_resize fit;
    hp_pixels image, view;
    HP_TRY(size(d, index, &image, err));
    HP_TRY(hp_reader_pool_get(&d->masks, index, p->mask, &mask, err));
    view = hp_reader_size(mask);
    HP_TRY(check_size(p, &image, &view, err));
    HP_TRY(hp_dataset_fit(d, view.h, view.w, &fit, err));
    const hp_crop need = {row_of(d, &fit, window->y0), column_of(d, &fit, window->x0),
                          row_of(d, &fit, window->y1 - 1) + 1, column_of(d, &fit, window->x1 - 1) + 1};
    HP_TRY(hp_reader_window(mask, &need, &view, err));
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t from_y = row_of(d, &fit, y);
        const uint8_t *row = hp_pixels_row(&view, from_y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t from_x = column_of(d, &fit, x);
            HP_TRY(label_at(d, p, from_y, from_x, row[from_x - view.window.x0], labels++, err));
        }
    }
    return HP_OK;
}

static const char *file_of(const hp_dataset *d, int64_t index, int k) {
    const pair *p = pair_of(d, index);
    return k == 0 ? p->image : k == 1 ? p->mask : NULL;
}

static void close_masks(hp_dataset *d) {
    (void)d; /* the arena owns all memory */
}

const hp_dataset_kind hp_dataset_masks = {
    .name = "masks",
    .images = true,
    .accepts = accepts_name,
    .open = open_masks,
    .size = size,
    .pixels = pixels,
    .reader = reader,
    .map = map,
    .file = file_of,
    .close = close_masks,
};
