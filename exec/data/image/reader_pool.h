/* reader_pool.h - the open image files of a data set: the least recently used are closed while their pixels
 * exceed a limit. A pass through one image, or through the images of one batch strip by strip, so finds its
 * readers at their last position, and reading whole images one after another keeps only one open. */
#ifndef HP_READER_POOL_H
#define HP_READER_POOL_H

#include "exec/data/image/reader.h"

enum { HP_POOL_READERS = 64, HP_POOL_BYTES = 64 << 20 }; /* of all pools that share the limits */

typedef struct hp_reader_pool { /* empty when all zero */
    hp_reader_options o;
    int32_t sharers; /* pools that share the limits; 0: this alone */
    hp_reader *reader[HP_POOL_READERS];
    int64_t key[HP_POOL_READERS], used[HP_POOL_READERS];
    int64_t uses;
    int n;
} hp_reader_pool;

/* The reader of file `path`, identified by `key`; valid until another one is requested. Errors:
 * hp_reader_open's. */
hp_status hp_reader_pool_get(hp_reader_pool *p, int64_t key, const char *path, hp_reader **r, hp_error *err);
/* hp_reader_size and hp_reader_window of that reader. */
hp_status hp_reader_pool_size(hp_reader_pool *p, int64_t key, const char *path, hp_pixels *size,
                              hp_error *err);
hp_status hp_reader_pool_window(hp_reader_pool *p, int64_t key, const char *path, const hp_crop *window,
                                hp_pixels *view, hp_error *err);
void hp_reader_pool_free(hp_reader_pool *p);

#endif
