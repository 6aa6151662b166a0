/* fuzz_image.c - whatever bytes: PNG, JPEG, TIFF readers give an error with a message, or an image whose
 * strips are the whole's. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/fuzz/fuzz_file.h"

#include "exec/data/image/reader.h"

#include <string.h>

/* Images that are read whole. */
enum { WHOLE = 1 << 20 };

static void check(hp_status s, const hp_error *err) {
    if (s != HP_OK && (s != HP_EDATA || !err->text[0])) abort();
}

/* Strips that overlap by a row, from the top to the bottom, each against the whole. */
static void read_strips(hp_reader *r, const hp_pixels *whole) {
    const int32_t h = whole->h, rows = h / 4 + 1;
    const size_t n = (size_t)whole->w * hp_pixel_bytes(whole->c, whole->type);
    for (int32_t y = 0; y < h; y += rows) {
        const hp_crop w = {y ? y - 1 : 0, 0, h - y < rows ? h : y + rows, whole->w};
        hp_pixels view;
        hp_error err = {0};
        if (hp_reader_window(r, &w, &view, &err) != HP_OK) abort(); /* the whole could be read */
        for (int32_t k = w.y0; k < w.y1; k++)
            if (memcmp(hp_pixels_row(&view, k), whole->px + (size_t)k * n, n) != 0) abort();
    }
}

/* Reads a corner at the top of an image too large to hold. */
static void read_corner(hp_reader *r, const hp_pixels *size) {
    const hp_crop w = {0, 0, size->h < 64 ? size->h : 64, size->w < 64 ? size->w : 64};
    hp_pixels view;
    hp_error err = {0};
    check(hp_reader_window(r, &w, &view, &err), &err);
}

static void read_whole(const char *path, const hp_reader_options *o, hp_reader *strips) {
    hp_reader *r;
    hp_pixels whole;
    hp_error err = {0};
    if (hp_reader_open(path, o, &r, &err) != HP_OK) abort(); /* it could be opened */
    const hp_status s = hp_reader_window(r, NULL, &whole, &err);
    check(s, &err);
    if (s == HP_OK) read_strips(strips, &whole);
    hp_reader_close(r);
}

static void read_image(const char *path, bool mask) {
    const hp_reader_options o = {.mask = mask};
    hp_reader *r = NULL;
    hp_error err = {0};
    const hp_status s = hp_reader_open(path, &o, &r, &err);
    check(s, &err);
    if (s != HP_OK) return;
    const hp_pixels size = hp_reader_size(r);
    if ((int64_t)size.h * size.w * (int64_t)hp_pixel_bytes(size.c, size.type) > 4 * WHOLE) {
        read_corner(r, &size);
    } else {
        read_whole(path, &o, r);
    }
    hp_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    const int fd = fuzz_file(data, size, path);
    read_image(path, false);
    if (size && data[0] == 0x89) read_image(path, true);
    close(fd);
    return 0;
}
