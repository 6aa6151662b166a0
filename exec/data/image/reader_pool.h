/* reader_pool.h - the open image files of a data set. The least recently used are closed while their pixels
 * exceed a limit. So a pass through one image, or through a batch's images strip by strip, finds its readers
 * at their last position. Reading whole images one after another keeps only one open. */
#ifndef HP_READER_POOL_H
#define HP_READER_POOL_H

#include "exec/data/image/reader.h"

enum { HP_POOL_READERS = 64, HP_POOL_BYTES = 64 << 20 }; /* limits over all pools that share them */

typedef struct hp_reader_pool { /* empty when all zero */
    hp_reader_options o;
    int32_t sharers; /* number of pools that share the limits; 0: this one alone */
    hp_reader *reader[HP_POOL_READERS];
    int64_t key[HP_POOL_READERS], used[HP_POOL_READERS];
    int64_t uses;
    int n;
} hp_reader_pool;

/* Returns the reader of file `path`, identified by `key`; valid until the next request.
 * Errors: hp_reader_open's. */
hp_status hp_reader_pool_get(hp_reader_pool *p, int64_t key, const char *path, hp_reader **r, hp_error *err);
/* hp_reader_size and hp_reader_window of that reader. */
hp_status hp_reader_pool_size(hp_reader_pool *p, int64_t key, const char *path, hp_pixels *size,
                              hp_error *err);
hp_status hp_reader_pool_window(hp_reader_pool *p, int64_t key, const char *path, const hp_crop *window,
                                hp_pixels *view, hp_error *err);
void hp_reader_pool_free(hp_reader_pool *p);

#endif
