/* data_synthetic.c - images nobody has to fetch: every pixel and label is a pure function of (seed, split,
 * sample). Sixteen pixels per Philox call, so that a 224 x 224 x 3 image costs a fraction of a millisecond on
 * the timed path. */
#include "exec/data/dataset_kind.h"
#include "exec/data/streams.h"
#include "plan/base/rng.h"

#include <string.h>

/* About ImageNet's size (1.28 million), and a power of two so that every usual batch divides it. */
enum { TRAIN_COUNT = 1 << 20, TEST_COUNT = 1 << 13 };

static bool owns(const char *name) {
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

static hp_status pixels(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    const hp_data_options *o = &d->o;
    HP_TRY(hp_image_room(&d->decoded, o->image_h, o->image_w, o->image_c, "synthetic image", err));
    const size_t n = (size_t)o->image_h * (size_t)o->image_w * (size_t)o->image_c;
    const uint64_t stream = HP_STREAM_PIXELS | split_bit(d) | (uint64_t)index;
    for (size_t i = 0; i < n; i += 16) {
        const hp_rng4 r = hp_philox(o->seed, stream, i / 16);
        memcpy(d->decoded.px + i, r.v, n - i < 16 ? n - i : 16);
    }
    *view = (hp_pixels){o->image_h, o->image_w, o->image_c, d->decoded.px};
    return HP_OK;
}

static int32_t label(const hp_dataset *d, int64_t index) {
    return (int32_t)hp_rng_below(d->o.seed, HP_STREAM_LABELS | split_bit(d), (uint64_t)index,
                                 (uint64_t)d->o.classes);
}

static void close_synthetic(hp_dataset *d) {
    (void)d;
}

const hp_dataset_kind hp_dataset_synthetic = {"synthetic", owns,  open_synthetic,
                                              pixels,      label, close_synthetic};
