/* fingerprint.c - what a resumed run compares: how samples are read, and each sample's class and its
 * files' names and sizes. For samples in memory it includes the pixels. Files are not read: a million
 * images would take hours. */
#include "exec/data/dataset/dataset_kind.h"
#include "base/hash.h"

#include <string.h>
#include <sys/stat.h>

static uint64_t add(uint64_t h, const void *data, size_t bytes) {
    return hp_hash64(data, bytes, h);
}

/* Independent of where the folder is mounted. */
static uint64_t add_file(uint64_t h, const char *path) {
    struct stat st;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const int64_t size = stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
    return add(add(h, name, strlen(name)), &size, sizeof size);
}

static hp_status add_pixels(hp_dataset *d, int64_t index, uint64_t *h, hp_error *err) {
    hp_pixels size, view;
    HP_TRY(d->kind->size(d, index, &size, err));
    const hp_crop all = {0, 0, size.h, size.w};
    HP_TRY(d->kind->pixels(d, index, &all, &view, err));
    for (int32_t y = 0; y < size.h; y++)
        *h = add(*h, hp_pixels_row(&view, y), (size_t)size.w * hp_pixel_bytes(size.c, size.type));
    return HP_OK;
}

static uint64_t add_options(uint64_t h, const hp_dataset *d) {
    const hp_data_options *o = &d->o;
    h = add(h, d->kind->name, strlen(d->kind->name));
    h = add(h, (int32_t[]){o->channels, o->resize}, 2 * sizeof(int32_t));
    if (o->n_band) h = add(h, o->band, sizeof *o->band * (size_t)o->n_band);
    h = add(h, o->mean, sizeof *o->mean * (size_t)o->image_c);
    return add(h, o->std, sizeof *o->std * (size_t)o->image_c);
}

hp_status hp_dataset_fingerprint(hp_dataset *d, uint64_t *fingerprint, hp_error *err) {
    uint64_t h = add_options(0, d);
    const bool drawn = d->kind == &hp_dataset_synthetic; /* determined by the seed alone */
    for (int64_t i = 0; i < d->count && !drawn; i++) {
        const int32_t label = d->kind->label ? d->kind->label(d, i) : 0;
        h = add(h, &label, sizeof label);
        for (int k = 0; d->kind->file && d->kind->file(d, i, k); k++) h = add_file(h, d->kind->file(d, i, k));
        if (!d->kind->file) HP_TRY(add_pixels(d, i, &h, err));
    }
    *fingerprint = h;
    return HP_OK;
}
