/* image.c - image buffers and the choice of decoder by the file's first bytes. */
#include "exec/data/image.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

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

hp_status hp_image_room(hp_image *image, const hp_crop *window, const char *path, hp_error *err) {
    const hp_crop whole = {0, 0, image->h, image->w};
    const hp_crop *want = window ? window : &whole;
    const int64_t rows = hp_crop_rows(want), columns = hp_crop_columns(want);
    if (rows < 1 || columns < 1 || !hp_crop_within(want, &whole))
        return hp_fail(err, HP_EDATA, "%s: changed while it was read; leave the data alone during a run",
                       path);
    if (rows * columns > HP_MAX_PIXELS)
        return hp_fail(err, HP_EDATA,
                       "%s: %lld x %lld is more than %d pixels; take more tiles, or scale or split the image",
                       path, (long long)rows, (long long)columns, (int)HP_MAX_PIXELS);
    HP_TRY(allocate(image, (size_t)rows * (size_t)columns * (size_t)image->c, path, err));
    image->window = *want;
    return HP_OK;
}

void hp_image_keep(hp_image *image, int32_t y, const uint8_t *row) {
    const hp_crop *w = &image->window;
    if (y < w->y0 || y >= w->y1) return;
    const size_t c = (size_t)image->c, n = (size_t)hp_crop_columns(w) * c;
    memcpy(image->px + (size_t)(y - w->y0) * n, row + (size_t)w->x0 * c, n);
}

void hp_image_free(hp_image *image) {
    free(image->px);
    *image = (hp_image){0};
}

typedef struct format {
    const char *magic;
    size_t size;
    hp_status (*decode)(const hp_decode_job *j);
} format;

static const format formats[] = {
    {"\x89PNG\r\n\x1a\n", 8, hp_decode_png},
    {"\xff\xd8\xff", 3, hp_decode_jpeg},
    {"II*\0", 4, hp_decode_tiff},
    {"MM\0*", 4, hp_decode_tiff},
    {"II+\0", 4, hp_decode_tiff},
    {"MM\0+", 4, hp_decode_tiff},
};

static hp_status decode(const hp_decode_job *j) {
    char head[8] = {0};
    FILE *f = fopen(j->path, "rbe");
    if (!f)
        return hp_fail(j->err, HP_EDATA, "cannot open %s: %s; check the path and its permissions", j->path,
                       strerror(errno));
    const size_t got = fread(head, 1, sizeof head, f);
    fclose(f);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (got >= formats[i].size && memcmp(head, formats[i].magic, formats[i].size) == 0)
            return formats[i].decode(j);
    return hp_fail(j->err, HP_EDATA, "%s: neither PNG, JPEG nor TIFF%s; convert it or remove the file",
                   j->path, got == 0 ? " (no bytes)" : "");
}

hp_status hp_image_read(const char *path, const hp_crop *window, hp_image *image, hp_error *err) {
    return decode(&(hp_decode_job){path, HP_DECODE_PIXELS, window, image, err});
}

hp_status hp_image_head(const char *path, hp_image *image, hp_error *err) {
    return decode(&(hp_decode_job){path, HP_DECODE_HEAD, NULL, image, err});
}

hp_status hp_mask_read(const char *path, const hp_crop *window, hp_image *image, hp_error *err) {
    return hp_decode_png(&(hp_decode_job){path, HP_DECODE_MASK, window, image, err});
}

hp_status hp_mask_head(const char *path, hp_image *image, hp_error *err) {
    return hp_decode_png(&(hp_decode_job){path, HP_DECODE_MASK_HEAD, NULL, image, err});
}

int hp_image_name(const char *name) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".tif", ".tiff"};
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name) return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcasecmp(dot, ends[i]) == 0) return 1;
    return 0;
}
