/* image.c - image buffers: their sizes and memory, and the window that moves down an image. */
#include "exec/data/image/image.h"

#include <string.h>

hp_status hp_image_sizes(hp_image *image, int64_t h, int64_t w, int32_t c, const char *path, hp_error *err) {
    if (h < 1 || w < 1)
        return hp_fail(err, HP_EDATA, "%s: the image is empty (%lld x %lld); remove the file", path,
                       (long long)h, (long long)w);
    if (h > HP_MAX_SIDE || w > HP_MAX_SIDE)
        return hp_fail(err, HP_EDATA, "%s: %lld x %lld: more than %d rows or columns; split the image", path,
                       (long long)h, (long long)w, (int)HP_MAX_SIDE);
    image->h = (int32_t)h;
    image->w = (int32_t)w;
    image->c = c;
    return HP_OK;
}

static hp_status allocate(hp_image *image, size_t size, const char *path, hp_error *err) {
    if (size <= image->capacity) return HP_OK;
    uint8_t *px = realloc(image->px, size);
    if (!px)
        return hp_fail(err, HP_EDATA, "%s: no memory for %zu bytes of pixels; scale the image down", path,
                       size);
    image->px = px;
    image->capacity = size;
    return HP_OK;
}

static hp_status check_window(const hp_image *image, const hp_crop *want, const char *path, hp_error *err) {
    const hp_crop whole = {0, 0, image->h, image->w};
    const int64_t rows = hp_crop_rows(want), columns = hp_crop_columns(want);
    if (rows < 1 || columns < 1 || !hp_crop_within(want, &whole))
        return hp_fail(err, HP_EDATA, "%s: changed while it was read; leave the data alone during a run",
                       path);
    if (rows * columns > HP_MAX_PIXELS)
        return hp_fail(err, HP_EDATA,
                       "%s: %lld x %lld is more than %d pixels; take more tiles, or scale or split the image",
                       path, (long long)rows, (long long)columns, (int)HP_MAX_PIXELS);
    const int64_t bytes = rows * columns * (int64_t)hp_pixel_bytes(image->c, image->type);
    if (bytes > HP_MAX_BYTES)
        return hp_fail(err, HP_EDATA,
                       "%s: %lld x %lld x %d samples are more than %d bytes; take more tiles or fewer bands",
                       path, (long long)rows, (long long)columns, image->c, (int)HP_MAX_BYTES);
    return HP_OK;
}

static size_t bytes_of(const hp_image *image, const hp_crop *w) {
    return (size_t)hp_crop_rows(w) * (size_t)hp_crop_columns(w) * hp_pixel_bytes(image->c, image->type);
}

hp_status hp_image_room(hp_image *image, const hp_crop *window, const char *path, hp_error *err) {
    const hp_crop whole = {0, 0, image->h, image->w}, *want = window ? window : &whole;
    HP_TRY(check_window(image, want, path, err));
    HP_TRY(allocate(image, bytes_of(image, want), path, err));
    image->window = *want;
    return HP_OK;
}

/* Moves rows [w->y0, y1), cut to the window's columns, to the front. No row overwrites one not yet moved. */
static void compact(hp_image *image, const hp_crop *w, int32_t y1) {
    const hp_crop *old = &image->window;
    const size_t c = hp_pixel_bytes(image->c, image->type), n = (size_t)hp_crop_columns(w) * c,
                 n_old = (size_t)hp_crop_columns(old) * c;
    for (int32_t y = w->y0; y < y1; y++)
        memmove(image->px + (size_t)(y - w->y0) * n,
                image->px + (size_t)(y - old->y0) * n_old + (size_t)(w->x0 - old->x0) * c, n);
}

hp_status hp_image_move(hp_image *image, const hp_crop *window, const char *path, int32_t *from,
                        hp_error *err) {
    const hp_crop old = image->window;
    const bool shares =
        old.y0 <= window->y0 && window->y0 < old.y1 && old.x0 <= window->x0 && window->x1 <= old.x1;
    HP_TRY(check_window(image, window, path, err));
    *from = !shares ? window->y0 : old.y1 < window->y1 ? old.y1 : window->y1;
    if (shares) compact(image, window, *from);
    image->window = (hp_crop){0};
    HP_TRY(allocate(image, bytes_of(image, window), path, err));
    image->window = *window;
    return HP_OK;
}

void hp_image_free(hp_image *image) {
    free(image->px);
    *image = (hp_image){0};
}
