/* dataset_file.c - images without labels, for inference and calibration: FILE[,FILE]..., or
 * slide:FILE[,level=N] to open any file with OpenSlide. */
#include "exec/data/dataset/name.h"
#include "exec/data/dataset/dataset_kind.h"

#include <string.h>

/* The name up to its first comma, unless the whole name is a file. */
static char *first_of(hp_arena *a, const char *name) {
    return hp_arena_printf(a, "%.*s", (int)strcspn(name, ","), name);
}

static bool accepts_name(const char *name) {
    hp_arena *scratch = hp_arena_new();
    const bool mine =
        hp_is_file(name) || hp_data_name_has_kind(name, "slide") || hp_is_file(first_of(scratch, name));
    hp_arena_free(scratch);
    return mine;
}

static void list_files(hp_dataset *d, const char *name) {
    hp_names *files = d->self;
    for (const char *at = name; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        HP_ROOM(d->arena, files->name, files->n, files->capacity);
        files->name[files->n++] = first_of(d->arena, at);
    }
}

static hp_status list_slide(hp_dataset *d, hp_error *err) {
    hp_names *files = d->self;
    double level = 0;
    const hp_data_key key = {"level", 0, 31, true, &level};
    HP_ROOM(d->arena, files->name, files->n, files->capacity);
    HP_TRY(hp_data_name_parse(d->arena, d->o.name, &key, 1, &files->name[files->n++], err));
    d->readers.o.slide = true, d->readers.o.level = (int32_t)level;
    return HP_OK;
}

static const char *path_of(const hp_dataset *d, int64_t index) {
    return ((const hp_names *)d->self)->name[index];
}

static const char *file_of(const hp_dataset *d, int64_t index, int k) {
    return k == 0 ? path_of(d, index) : NULL;
}

static hp_status reader(hp_dataset *d, int64_t index, hp_reader **r, hp_error *err) {
    return hp_reader_pool_get(&d->readers, index, path_of(d, index), r, err);
}

static hp_status size(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    return hp_reader_pool_size(&d->readers, index, path_of(d, index), view, err);
}

static hp_status open_files(hp_dataset *d, hp_error *err) {
    if (d->o.split == HP_SPLIT_TRAIN)
        return hp_fail(err, HP_EDATA,
                       "--data %s: files without labels; to train, give a folder DIR/train/CLASS/*",
                       d->o.name);
    hp_names *files = d->self = HP_NEW(d->arena, hp_names, 1);
    hp_pixels view;
    if (hp_is_file(d->o.name)) {
        HP_ROOM(d->arena, files->name, files->n, files->capacity);
        files->name[files->n++] = hp_arena_strdup(d->arena, d->o.name);
    } else if (hp_data_name_has_kind(d->o.name, "slide")) {
        HP_TRY(list_slide(d, err));
    } else {
        list_files(d, d->o.name);
    }
    d->count = files->n;
    for (int i = 0; i < files->n; i++) HP_TRY(size(d, i, &view, err)); /* a bad file fails before the run */
    return HP_OK;
}

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    return hp_reader_pool_window(&d->readers, index, path_of(d, index), window, view, err);
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

const hp_dataset_kind hp_dataset_file = {
    .name = "file",
    .images = true,
    .accepts = accepts_name,
    .open = open_files,
    .size = size,
    .pixels = pixels,
    .reader = reader,
    .label = label,
    .map = map,
    .file = file_of,
    .close = close_file,
};
