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
    HP_TRY(hp_image_read(d->o.name, &d->decoded, err)); /* so that a bad file is reported before the run */
    d->count = 1;
    return HP_OK;
}

static hp_status pixels(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    (void)index;
    (void)err;
    *view = (hp_pixels){d->decoded.h, d->decoded.w, d->decoded.c, d->decoded.px};
    return HP_OK;
}

static int32_t label(const hp_dataset *d, int64_t index) {
    (void)d;
    (void)index;
    return -1;
}

static void close_file(hp_dataset *d) {
    (void)d;
}

const hp_dataset_kind hp_dataset_file = {"file", owns, open_file, pixels, label, close_file};
