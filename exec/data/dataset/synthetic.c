/* synthetic.c - generated images: every pixel and label is a pure function of (seed, split, sample) and its
 * position, so a tile costs only its own pixels. A Philox call gives sixteen pixels or four labels: a 224 x
 * 224 x 3 image takes a fraction of a millisecond on the timed path. */
#include "exec/data/dataset/dataset_kind.h"
#include "exec/base/streams.h"
#include "base/rng.h"

#include <string.h>

/* About ImageNet's size (1.28 million), and a power of two so that every usual batch size divides it. */
enum { TRAIN_COUNT = 1 << 20, TEST_COUNT = 1 << 13 };
enum { BLOCK = 64 /* calls at a time: a kibibyte, which stays in the cache */ };

static bool accepts_name(const char *name) {
    return strcmp(name, "synthetic") == 0;
}

static hp_status open_synthetic(hp_dataset *d, hp_error *err) {
    (void)err;
    d->count = d->o.split == HP_SPLIT_TRAIN ? TRAIN_COUNT : TEST_COUNT;
    return HP_OK;
}

static uint64_t split_bit(const hp_dataset *d) {
    return (uint64_t)(d->o.split == HP_SPLIT_TEST) << 48;
}

static hp_status size(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    (void)index;
    (void)err;
    *view = (hp_pixels){.h = d->o.image_h, .w = d->o.image_w, .c = d->o.image_c};
    return HP_OK;
}

/* Writes bytes [from, from + n) of the image's stream. */
static void draw(const hp_dataset *d, int64_t index, uint64_t from, uint64_t n, uint8_t *px) {
    const uint64_t stream = HP_STREAM_PIXELS | split_bit(d) | (uint64_t)index, end = from + n;
    for (uint64_t i = from; i < end;) {
        hp_rng4 r[BLOCK];
        const uint64_t first = i / 16, last = (end + 15) / 16, skip = i % 16,
                       count = last - first < BLOCK ? last - first : BLOCK,
                       stop = first + count < last ? (first + count) * 16 : end;
        hp_philox_run(d->o.seed, stream, first, (int64_t)count, r);
        memcpy(px, (const uint8_t *)r + skip, stop - i);
        px += stop - i;
        i = stop;
    }
}

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    const hp_data_options *o = &d->o;
    HP_TRY(hp_image_sizes(&d->drawn, o->image_h, o->image_w, o->image_c, "synthetic image", err));
    HP_TRY(hp_image_room(&d->drawn, window, "synthetic image", err));
    const uint64_t c = (uint64_t)o->image_c, row = (uint64_t)hp_crop_columns(window) * c;
    for (int32_t y = window->y0; y < window->y1; y++)
        draw(d, index, ((uint64_t)y * (uint64_t)o->image_w + (uint64_t)window->x0) * c, row,
             d->drawn.px + (uint64_t)(y - window->y0) * row);
    *view = hp_image_pixels(&d->drawn);
    return HP_OK;
}

static int32_t label(const hp_dataset *d, int64_t index) {
    return (int32_t)hp_rng_below(d->o.seed, HP_STREAM_LABELS | split_bit(d), (uint64_t)index,
                                 (uint64_t)d->o.classes);
}

static hp_status map(hp_dataset *d, int64_t index, const hp_crop *window, int32_t *labels, hp_error *err) {
    (void)err;
    const uint64_t stream = HP_STREAM_MASKS | split_bit(d) | (uint64_t)index,
                   classes = (uint64_t)d->o.classes;
    for (int32_t y = window->y0; y < window->y1; y++) {
        hp_rng4 r = {{0}};
        for (int32_t x = window->x0; x < window->x1; x++) {
            const uint64_t at = (uint64_t)y * (uint64_t)d->o.label_w + (uint64_t)x;
            if (x == window->x0 || at % 4 == 0) r = hp_philox(d->o.seed, stream, at / 4);
            *labels++ = (int32_t)(r.v[at % 4] * classes >> 32);
        }
    }
    return HP_OK;
}

static void close_synthetic(hp_dataset *d) {
    (void)d;
}

const hp_dataset_kind hp_dataset_synthetic = {
    .name = "synthetic",
    .computed = true,
    .accepts = accepts_name,
    .open = open_synthetic,
    .size = size,
    .pixels = pixels,
    .label = label,
    .map = map,
    .close = close_synthetic,
};
