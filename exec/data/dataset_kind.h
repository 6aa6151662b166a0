/* dataset_kind.h - what a kind of data set implements; only exec/data includes it. */
#ifndef HP_DATASET_KIND_H
#define HP_DATASET_KIND_H

#include "exec/data/dataset.h"
#include "exec/data/image.h"
#include "plan/base/arena.h"

#include <stdbool.h>

typedef struct hp_dataset_kind {
    const char *name;
    bool (*owns)(
        const char *name); /* is --data `name` of this kind? The first of the list that says so opens it */
    /* Sets count and self; on an error close is called all the same. */
    hp_status (*open)(hp_dataset *d, hp_error *err);
    /* Pixels of a sample, (h, w, c) with c 1, 3 or the network's; lent until the next call. */
    hp_status (*pixels)(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err);
    int32_t (*label)(const hp_dataset *d, int64_t index);
    void (*close)(hp_dataset *d); /* self may be NULL */
} hp_dataset_kind;

struct hp_dataset {
    const hp_dataset_kind *kind;
    hp_data_options o; /* name is a copy */
    hp_arena *arena;
    int64_t count;
    void *self;
    hp_image decoded, resized;          /* reused from sample to sample */
    float table[HP_DATA_CHANNELS][256]; /* pixel value -> network input */
};

extern const hp_dataset_kind hp_dataset_synthetic, hp_dataset_idx, hp_dataset_folder, hp_dataset_file;

bool hp_is_dir(const char *path);
bool hp_is_file(const char *path);

#endif
