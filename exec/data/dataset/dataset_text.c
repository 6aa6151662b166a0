/* dataset_text.c - bytes of text: --data text:PATH[,PATH]..., files or whole folders (dataset/text_files.c).
 * A sample has as many bytes as the network takes ids; its labels are the following bytes: 256 classes.
 *
 * The last twentieth of each file is the test split, the rest the training split. The parts of a split are
 * concatenated in the order of the files, and samples follow each other without a gap. */
#include "exec/data/dataset/dataset_kind.h"
#include "exec/data/dataset/name.h"
#include "exec/data/dataset/text_files.h"

#include <string.h>

enum { HELD_OUT = 20 /* one byte in HELD_OUT, at the end of each file */, BYTES = 256 };

typedef struct text {
    uint8_t *bytes;
    int64_t n;
} text;

static bool accepts_name(const char *name) {
    return hp_data_name_has_kind(name, "text");
}

static hp_status check_network(const hp_dataset *d, hp_error *err) {
    const hp_data_options *o = &d->o;
    if (!o->ids)
        return hp_fail(err, HP_EDATA,
                       "--data %s are bytes, the network reads images: simulate a network of text, such as "
                       "--net gpt:4,256,4,256,256",
                       o->name);
    if (o->label_h != o->image_h || o->label_w != o->image_w || o->image_w != 1 || o->image_c != 1)
        return hp_fail(
            err, HP_EDATA,
            "--data %s: the network gives %d x %d labels for %d x %d x %d ids, text wants one for each",
            o->name, o->label_h, o->label_w, o->image_h, o->image_w, o->image_c);
    return HP_OK;
}

/* Appends the file's part of the split to those of earlier files. */
static hp_status add_file(void *self, const char *path, const uint8_t *bytes, int64_t n, hp_error *err) {
    const hp_dataset *d = self;
    text *t = d->self;
    const int64_t held = n / HELD_OUT, first = d->o.split == HP_SPLIT_TEST ? n - held : 0,
                  count = d->o.split == HP_SPLIT_TEST ? held : n - held;
    for (int64_t i = 0; i < count && d->o.classes < BYTES; i++)
        if (bytes[first + i] >= d->o.classes)
            return hp_fail(err, HP_EDATA,
                           "%s: byte %d, the plan has %d classes; simulate a network of a vocabulary of %d",
                           path, bytes[first + i], d->o.classes, BYTES);
    uint8_t *more = realloc(t->bytes, (size_t)(t->n + count) + 1);
    if (!more) return hp_fail(err, HP_EDATA, "%s: no memory for %lld more bytes", path, (long long)count);
    t->bytes = more;
    memcpy(t->bytes + t->n, bytes + first, (size_t)count);
    t->n += count;
    return HP_OK;
}

static hp_status open_text(hp_dataset *d, hp_error *err) {
    text *t = d->self = HP_NEW(d->arena, text, 1);
    HP_TRY(check_network(d, err));
    HP_TRY(hp_text_files(d->arena, strchr(d->o.name, ':') + 1, add_file, d, err));
    d->count = (t->n - 1) / d->o.image_h;
    if (t->n > d->o.image_h) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "--data %s: its %s split has %lld bytes, a sample takes %d and the one after it; give more text, "
        "or a network of shorter sequences",
        d->o.name, hp_split_name(d->o.split), (long long)t->n, d->o.image_h);
}

static hp_status size(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    const text *t = d->self;
    (void)err;
    *view = (hp_pixels){d->o.image_h, 1, 1, {0, 0, d->o.image_h, 1}, t->bytes + index * d->o.image_h};
    return HP_OK;
}

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    (void)window;
    return size(d, index, view, err);
}

static hp_status map(hp_dataset *d, int64_t index, const hp_crop *window, int32_t *labels, hp_error *err) {
    const uint8_t *next = ((const text *)d->self)->bytes + index * d->o.image_h + 1;
    (void)err;
    if (window->x1 > window->x0)
        for (int32_t y = window->y0; y < window->y1; y++) *labels++ = next[y];
    return HP_OK;
}

static void close_text(hp_dataset *d) {
    if (d->self) free(((text *)d->self)->bytes);
}

const hp_dataset_kind hp_dataset_text = {.name = "text",
                                         .accepts = accepts_name,
                                         .open = open_text,
                                         .size = size,
                                         .pixels = pixels,
                                         .map = map,
                                         .close = close_text};
