/* dataset_kind.h - the interface that a kind of data set implements; private to exec/data. */
#ifndef HP_DATASET_KIND_H
#define HP_DATASET_KIND_H

#include "exec/data/dataset/dataset.h"
#include "exec/data/image/reader_pool.h"
#include "base/arena.h"

#include <stdatomic.h>

typedef struct hp_dataset_kind {
    const char *name;
    bool images;   /* samples are image files */
    bool one_file; /* samples are parts of one image, which is read from its top to its bottom */
    bool computed; /* a pixel costs nothing but itself: several handles can share a sample */
    /* Is --data `name` of this kind? The first kind in the list that accepts it opens it. */
    bool (*accepts)(const char *name);
    /* Sets count and self; close is called even after an error. */
    hp_status (*open)(hp_dataset *d, hp_error *err);
    /* h, w, c and type of a sample's image, without decoding it. */
    hp_status (*size)(hp_dataset *d, int64_t index, hp_pixels *size, hp_error *err);
    /* Pixels of at least that window; valid until the next call. */
    hp_status (*pixels)(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err);
    /* The class of an image. NULL: the data only have a class per pixel. */
    int32_t (*label)(const hp_dataset *d, int64_t index);
    /* A window of the label map (label_h x label_w), dense. NULL: the data only have a class per image. */
    hp_status (*map)(hp_dataset *d, int64_t index, const hp_crop *window, int32_t *label, hp_error *err);
    /* The open file of a sample, for hp_reader_said. NULL: samples are not image files. */
    hp_status (*reader)(hp_dataset *d, int64_t index, hp_reader **r, hp_error *err);
    /* The k-th file of a sample; NULL after the last. NULL: samples have no files of their own. */
    const char *(*file)(const hp_dataset *d, int64_t index, int k);
    void (*close)(hp_dataset *d); /* self may be NULL */
} hp_dataset_kind;

/* State of the first image that any handle reads. */
enum { HP_SEEN_NOTHING, HP_SEEN_BEGUN, HP_SEEN_ONE };
typedef struct hp_dataset_seen {
    atomic_int state;
    hp_pixel_type type;
    uint32_t said;
    int32_t h, w;
    bool as_bytes; /* for a network of bytes */
} hp_dataset_seen;

struct hp_dataset {
    const hp_dataset_kind *kind;
    hp_data_options o; /* name is a copy */
    hp_arena *arena;
    int64_t count;
    int64_t left_out;                   /* files beside the samples that are not images */
    const char *other;                  /* one of them */
    bool *broken;                       /* samples that are left out; NULL: none */
    void *self;                         /* not changed after open: all handles share it */
    hp_dataset *of;                     /* the handle that owns arena and self; NULL: this one */
    hp_dataset_seen seen;               /* set only in the owner */
    hp_reader_pool readers, masks;      /* open files of the samples, by index */
    hp_decoder *decoder;                /* reads the files; NULL: this process */
    hp_image drawn, resized;            /* buffers reused for every sample */
    float (*f32)[256];                  /* per channel: 8-bit pixel -> network input; owned by the arena */
    uint16_t (*bf16)[256], (*f16)[256]; /* the same rounded */
};

extern const hp_dataset_kind hp_dataset_synthetic, hp_dataset_idx, hp_dataset_masks, hp_dataset_folder,
    hp_dataset_patched, hp_dataset_file, hp_dataset_text;

static inline bool hp_dataset_maps(const hp_dataset *d) {
    return (int64_t)d->o.label_h * d->o.label_w > 1;
}

/* dataset/dataset_read.c: fits an h x w image to the network's size, with or without --resize. Errors:
 * HP_EDATA (too large). */
hp_status hp_dataset_fit(const hp_dataset *d, int32_t h, int32_t w, hp_resize *fit, hp_error *err);

/* dataset/describe.c: notes that sample `index` was read; hp_dataset_describe speaks about the
 * first one. Thread-safe. */
void hp_dataset_notice(hp_dataset *d, int64_t index, hp_dtype dtype);

/* dataset/list.c */
bool hp_is_dir(const char *path);
bool hp_is_file(const char *path);
bool hp_is_image(const char *path); /* a file whose name hp_is_image_name accepts */

typedef struct hp_names {
    char **name;
    int n, capacity;
    int others;        /* number of files that `wanted` rejected */
    const char *other; /* one of them */
} hp_names;

/* Lists the paths in `dir` that `wanted` accepts, without hidden files, sorted bytewise. Errors: HP_EDATA. */
hp_status hp_names_list(hp_arena *a, const char *dir, bool (*wanted)(const char *path), hp_names *out,
                        hp_error *err);
/* Counts rejected files as files left out. */
void hp_names_count_others(hp_dataset *d, const hp_names *names);
/* Index of `name`, or -1. */
int hp_names_find(const hp_names *names, const char *name);
/* "train" or "test". */
const char *hp_split_name(int32_t split);

#endif
