/* image.c - image buffers and the choice of decoder by the file's first bytes. */
#include "exec/data/image.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

hp_status hp_image_room(hp_image *image, int64_t h, int64_t w, int32_t c, const char *path, hp_error *err) {
    if (h < 1 || w < 1)
        return hp_fail(err, HP_EDATA, "%s: the image is empty (%lld x %lld); remove the file", path,
                       (long long)h, (long long)w);
    if (h > HP_MAX_PIXELS || w > HP_MAX_PIXELS || h * w > HP_MAX_PIXELS)
        return hp_fail(err, HP_EDATA, "%s: %lld x %lld is more than %d pixels; scale or split the image",
                       path, (long long)h, (long long)w, (int)HP_MAX_PIXELS);
    const size_t size = (size_t)h * (size_t)w * (size_t)c;
    if (size > image->capacity) {
        uint8_t *px = realloc(image->px, size);
        if (!px)
            return hp_fail(err, HP_EDATA, "%s: no memory for %zu bytes of pixels; scale the image down", path,
                           size);
        image->px = px;
        image->capacity = size;
    }
    image->h = (int32_t)h;
    image->w = (int32_t)w;
    image->c = c;
    return HP_OK;
}

void hp_image_free(hp_image *image) {
    free(image->px);
    *image = (hp_image){0};
}

typedef struct format {
    const char *magic;
    size_t size;
    hp_status (*read)(const char *path, hp_image *image, hp_error *err);
} format;

static const format formats[] = {
    {"\x89PNG\r\n\x1a\n", 8, hp_image_read_png},
    {"\xff\xd8\xff", 3, hp_image_read_jpeg},
    {"II*\0", 4, hp_image_read_tiff},
    {"MM\0*", 4, hp_image_read_tiff},
    {"II+\0", 4, hp_image_read_tiff},
    {"MM\0+", 4, hp_image_read_tiff},
};

hp_status hp_image_read(const char *path, hp_image *image, hp_error *err) {
    char head[8] = {0};
    FILE *f = fopen(path, "rbe");
    if (!f)
        return hp_fail(err, HP_EDATA, "cannot open %s: %s; check the path and its permissions", path,
                       strerror(errno));
    const size_t got = fread(head, 1, sizeof head, f);
    fclose(f);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (got >= formats[i].size && memcmp(head, formats[i].magic, formats[i].size) == 0)
            return formats[i].read(path, image, err);
    return hp_fail(err, HP_EDATA, "%s: neither PNG, JPEG nor TIFF%s; convert it or remove the file", path,
                   got == 0 ? " (no bytes)" : "");
}

int hp_image_name(const char *name) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".tif", ".tiff"};
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name) return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcasecmp(dot, ends[i]) == 0) return 1;
    return 0;
}
