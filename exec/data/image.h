/* image.h - 8-bit images in memory, decoded by libpng, libjpeg and libtiff. */
#ifndef HP_IMAGE_H
#define HP_IMAGE_H

#include "plan/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Most pixels of one image: 16384 x 16384. Decoding takes up to 7 bytes a pixel, so a hostile header costs at
 * most 2 GB of address space. */
enum { HP_MAX_PIXELS = 1 << 28 };

/* Borrowed pixels. */
typedef struct hp_pixels {
    int32_t h, w, c;
    const uint8_t *px; /* (h, w, c) dense */
} hp_pixels;

/* Owned pixels; zero it before the first use. */
typedef struct hp_image {
    int32_t h, w, c;
    uint8_t *px; /* (h, w, c) dense */
    size_t capacity;
} hp_image;

/* Makes room for h x w x c and sets the sizes; keeps the allocation when it suffices.
 * Errors: HP_EDATA (empty, more than HP_MAX_PIXELS, no memory), naming `path`. */
hp_status hp_image_room(hp_image *image, int64_t h, int64_t w, int32_t c, const char *path, hp_error *err);
void hp_image_free(hp_image *image);

/* Decodes a file by its first bytes: PNG, JPEG or TIFF (first page), 8 or 16 bits a channel (16 become 8). c
 * is 1 for grey files and 3 for all others; an alpha channel is dropped. Errors: HP_EDATA with path, reason
 * and fix. */
hp_status hp_image_read(const char *path, hp_image *image, hp_error *err);

/* By the name's end: .png .jpg .jpeg .tif .tiff in any case. */
int hp_image_name(const char *name);

/* The decoders behind hp_image_read. */
hp_status hp_image_read_png(const char *path, hp_image *image, hp_error *err);
hp_status hp_image_read_jpeg(const char *path, hp_image *image, hp_error *err);
hp_status hp_image_read_tiff(const char *path, hp_image *image, hp_error *err);

/* Separable bilinear (triangle) resampling with half-pixel centres, the triangle widened when shrinking so
 * that no source pixel is skipped (Pillow's BILINEAR). The source is scaled to full_h x full_w, of which the
 * centre h x w is computed; needs h <= full_h, w <= full_w. Errors: HP_EDATA (no memory). Cost: O(source +
 * result). */
hp_status hp_image_resize(const hp_pixels *source, int32_t full_h, int32_t full_w, int32_t h, int32_t w,
                          hp_image *image, hp_error *err);

#endif
