/* dataset_folder.c - image folders in the layout of torchvision's ImageFolder: DIR/{train,test}/CLASS/image.
 * Classes and files are sorted bytewise. Both splits number the classes of train/. */
#include "exec/data/dataset/dataset_kind.h"

#include <string.h>

typedef struct sample {
    const char *path;
    int32_t label;
} sample;

typedef struct folder {
    sample *sample;
    int n, capacity;
} folder;

static bool accepts_name(const char *name) {
    return hp_is_dir(name);
}

static hp_status list_classes(hp_dataset *d, hp_names *classes, hp_error *err) {
    hp_arena *a = d->arena;
    const char *dir = d->o.name, *of = hp_arena_printf(a, "%s/train", dir);
    if (!hp_is_dir(of)) of = hp_arena_printf(a, "%s/%s", dir, hp_split_name(d->o.split));
    if (!hp_is_dir(of))
        return hp_fail(err, HP_EDATA,
                       "%s holds neither %s/CLASS/* images nor IDX files; sort the images into class folders",
                       dir, hp_split_name(d->o.split));
    HP_TRY(hp_names_list(a, of, hp_is_dir, classes, err));
    if (classes->n == 0) return hp_fail(err, HP_EDATA, "%s has no class folders; make one per class", of);
    if (classes->n > d->o.classes)
        return hp_fail(err, HP_EDATA, "%s has %d classes, the plan %d; simulate with --classes %d", of,
                       classes->n, d->o.classes, classes->n);
    return HP_OK;
}

static hp_status add_class(hp_dataset *d, const char *dir, int32_t label, hp_error *err) {
    folder *f = d->self;
    hp_names files = {0};
    HP_TRY(hp_names_list(d->arena, dir, hp_is_image, &files, err));
    hp_names_count_others(d, &files);
    if (files.n == 0)
        return hp_fail(err, HP_EDATA,
                       "%s has no .png, .jpg, .jpeg, .tif or .tiff; add images or remove the folder", dir);
    for (int i = 0; i < files.n; i++) {
        HP_ROOM(d->arena, f->sample, f->n, f->capacity);
        f->sample[f->n++] = (sample){hp_arena_printf(d->arena, "%s/%s", dir, files.name[i]), label};
    }
    return HP_OK;
}

static hp_status open_folder(hp_dataset *d, hp_error *err) {
    folder *f = d->self = HP_NEW(d->arena, folder, 1);
    hp_names classes = {0}, here = {0};
    HP_TRY(list_classes(d, &classes, err));
    const char *root = hp_arena_printf(d->arena, "%s/%s", d->o.name, hp_split_name(d->o.split));
    HP_TRY(hp_names_list(d->arena, root, hp_is_dir, &here, err));
    for (int i = 0; i < here.n; i++) {
        const int label = hp_names_find(&classes, here.name[i]);
        if (label < 0)
            return hp_fail(err, HP_EDATA, "%s/%s is not a class of %s/train; rename or remove it", root,
                           here.name[i], d->o.name);
        HP_TRY(add_class(d, hp_arena_printf(d->arena, "%s/%s", root, here.name[i]), label, err));
    }
    if (f->n == 0) return hp_fail(err, HP_EDATA, "%s has no class folders; make one per class", root);
    d->count = f->n;
    return HP_OK;
}

static const char *path_of(const hp_dataset *d, int64_t index) {
    return ((const folder *)d->self)->sample[index].path;
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

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    return hp_reader_pool_window(&d->readers, index, path_of(d, index), window, view, err);
}

static int32_t label(const hp_dataset *d, int64_t index) {
    return ((const folder *)d->self)->sample[index].label;
}

static void close_folder(hp_dataset *d) {
    (void)d; /* the arena owns all memory */
}

const hp_dataset_kind hp_dataset_folder = {
    .name = "folder",
    .images = true,
    .accepts = accepts_name,
    .open = open_folder,
    .size = size,
    .pixels = pixels,
    .reader = reader,
    .label = label,
    .file = file_of,
    .close = close_folder,
};
