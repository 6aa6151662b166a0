/* data_file.c - a single image as a data set of one sample without a label: what inference reads. FILE, or
 * slide:FILE[,level=N] for what OpenSlide opens, whatever its name. */
#include "exec/data/data_name.h"
#include "exec/data/dataset_kind.h"

static bool owns(const char *name) {
    return hp_is_file(name) || hp_data_name_is(name, "slide");
}

static hp_status open_file(hp_dataset *d, hp_error *err) {
    if (d->o.split == HP_SPLIT_TRAIN)
        return hp_fail(err, HP_EDATA,
                       "--data %s is one file without a label; to train, give a folder DIR/train/CLASS/*",
                       d->o.name);
    char *path = hp_arena_strdup(d->arena, d->o.name);
    double level = 0;
    if (!hp_is_file(path)) {
        const hp_data_key key = {"level", 0, 31, true, &level};
        HP_TRY(hp_data_name_parse(d->arena, path, &key, 1, &path, err));
        d->readers.o = (hp_reader_options){.slide = true, .level = (int32_t)level};
    }
    hp_pixels view;
    d->count = 1;
    d->self = path;
    return hp_reader_pool_size(&d->readers, 0, path, &view, err); /* a bad file fails before the run */
}

static hp_status size(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    return hp_reader_pool_size(&d->readers, index, d->self, view, err);
}

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    return hp_reader_pool_window(&d->readers, index, d->self, window, view, err);
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
