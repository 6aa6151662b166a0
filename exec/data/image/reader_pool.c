/* reader_pool.c - keeps recently used image files open; see reader_pool.h. */
#include "exec/data/image/reader_pool.h"

static int find(const hp_reader_pool *p, int64_t key) {
    for (int i = 0; i < p->n; i++)
        if (p->key[i] == key) return i;
    return -1;
}

static void drop(hp_reader_pool *p, int i) {
    hp_reader_close(p->reader[i]);
    const int last = --p->n;
    p->reader[i] = p->reader[last];
    p->key[i] = p->key[last];
    p->used[i] = p->used[last];
}

static int oldest(const hp_reader_pool *p) {
    int at = 0;
    for (int i = 1; i < p->n; i++)
        if (p->used[i] < p->used[at]) at = i;
    return at;
}

static size_t bytes(const hp_reader_pool *p) {
    size_t sum = 0;
    for (int i = 0; i < p->n; i++) sum += hp_reader_bytes(p->reader[i]);
    return sum;
}

static bool full(const hp_reader_pool *p) {
    const int32_t sharers = p->sharers > 1 ? p->sharers : 1;
    return p->n >= (HP_POOL_READERS + sharers - 1) / sharers ||
           bytes(p) > (size_t)HP_POOL_BYTES / (size_t)sharers;
}

hp_status hp_reader_pool_get(hp_reader_pool *p, int64_t key, const char *path, hp_reader **r, hp_error *err) {
    int i = find(p, key);
    if (i < 0) {
        while (p->n > 0 && full(p)) drop(p, oldest(p));
        i = p->n;
        HP_TRY(hp_reader_open(path, &p->o, &p->reader[i], err));
        p->key[i] = key;
        p->n++;
    }
    p->used[i] = ++p->uses;
    *r = p->reader[i];
    return HP_OK;
}

hp_status hp_reader_pool_size(hp_reader_pool *p, int64_t key, const char *path, hp_pixels *size,
                              hp_error *err) {
    hp_reader *r;
    HP_TRY(hp_reader_pool_get(p, key, path, &r, err));
    *size = hp_reader_size(r);
    return HP_OK;
}

hp_status hp_reader_pool_window(hp_reader_pool *p, int64_t key, const char *path, const hp_crop *window,
                                hp_pixels *view, hp_error *err) {
    hp_reader *r;
    HP_TRY(hp_reader_pool_get(p, key, path, &r, err));
    return hp_reader_window(r, window, view, err);
}

void hp_reader_pool_free(hp_reader_pool *p) {
    while (p->n) drop(p, p->n - 1);
}
