/* reader_pool.h - the image files of a data set that are open now: those used last, as long as the pixels
 * that they hold stay few. So a pass through one image, or through the images of one batch strip by strip,
 * finds its readers where it left them, and reading whole images one after another holds one. */
#ifndef HP_READER_POOL_H
#define HP_READER_POOL_H

#include "exec/data/image/reader.h"

enum { HP_POOL_READERS = 64, HP_POOL_BYTES = 64 << 20 };

typedef struct hp_reader_pool { /* all zero: empty */
    hp_reader_options o;
    hp_reader *reader[HP_POOL_READERS];
    int64_t key[HP_POOL_READERS], used[HP_POOL_READERS];
    int64_t uses;
    int n;
} hp_reader_pool;

/* The reader of file `path`, known as `key`; lent until another is asked for. Errors: hp_reader_open's. */
hp_status hp_reader_pool_get(hp_reader_pool *p, int64_t key, const char *path, hp_reader **r, hp_error *err);
/* hp_reader_size and hp_reader_window of it. */
hp_status hp_reader_pool_size(hp_reader_pool *p, int64_t key, const char *path, hp_pixels *size,
                              hp_error *err);
hp_status hp_reader_pool_window(hp_reader_pool *p, int64_t key, const char *path, const hp_crop *window,
                                hp_pixels *view, hp_error *err);
void hp_reader_pool_free(hp_reader_pool *p);

#endif
