/* data_file.c - a single image as a data set of one sample without a label: what inference reads. */
#include "exec/data/dataset_kind.h"

static bool owns(const char *name) {
    return hp_is_file(name);
}

static hp_status open_file(hp_dataset *d, hp_error *err) {
    if (d->o.split == HP_SPLIT_TRAIN)
        return hp_fail(err, HP_EDATA,
                       "--data %s is one file without a label; to train, give a folder DIR/train/CLASS/*",
                       d->o.name);
    HP_TRY(hp_image_head(d->o.name, &d->decoded, err)); /* so that a bad file is reported before the run */
    d->count = 1;
    return HP_OK;
}

static hp_status size(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    (void)index;
    (void)err;
    *view = hp_image_pixels(&d->decoded);
    return HP_OK;
}

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    (void)index;
    HP_TRY(hp_image_read(d->o.name, window, &d->decoded, err));
    *view = hp_image_pixels(&d->decoded);
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

static void close_file(hp_dataset *d) {
    (void)d;
}

const hp_dataset_kind hp_dataset_file = {"file", owns, open_file, size, pixels, label, map, close_file};
