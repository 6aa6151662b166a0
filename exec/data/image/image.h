/* image.h - images in memory, whole or in part, and their resampling. reader.h reads them from files. */
#ifndef HP_IMAGE_H
#define HP_IMAGE_H

#include "exec/data/image/image_samples.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits on each buffer of pixels: 16384 x 16384 with at most four bytes per pixel on average. They apply to
 * a window: a whole image may have HP_MAX_SIDE rows and columns, 2^40 pixels. A decoder's memory limit
 * (decoders.c) bounds its total, whatever a header claims. */
enum { HP_MAX_PIXELS = 1 << 28, HP_MAX_BYTES = 1 << 30, HP_MAX_SIDE = 1 << 20 };
enum { HP_MAX_BANDS = 256 /* bands read from an image: the most channels of a network's image */ };

/* Rows [y0, y1) and columns [x0, x1). */
typedef struct hp_crop {
    int32_t y0, x0, y1, x1;
} hp_crop;

/* Borrowed pixels. */
typedef struct hp_pixels {
    int32_t h, w, c;    /* the whole image */
    hp_crop window;     /* the part of it that px holds */
    const uint8_t *px;  /* (rows, columns, c), dense */
    hp_pixel_type type; /* type of px */
} hp_pixels;

/* Owned pixels; zero-initialise before the first use. */
typedef struct hp_image {
    int32_t h, w, c;
    hp_crop window;
    uint8_t *px;
    size_t capacity; /* bytes */
    hp_pixel_type type;
} hp_image;

/* Bytes per pixel. */
static inline size_t hp_pixel_bytes(int32_t c, hp_pixel_type type) {
    return (size_t)c * hp_sample_bytes(type);
}

static inline int32_t hp_crop_rows(const hp_crop *w) {
    return w->y1 - w->y0;
}
static inline int32_t hp_crop_columns(const hp_crop *w) {
    return w->x1 - w->x0;
}
static inline bool hp_crop_within(const hp_crop *in, const hp_crop *out) {
    return in->y0 >= out->y0 && in->y1 <= out->y1 && in->x0 >= out->x0 && in->x1 <= out->x1;
}
static inline hp_pixels hp_image_pixels(const hp_image *i) {
    return (hp_pixels){i->h, i->w, i->c, i->window, i->px, i->type};
}

/* First pixel of the window in row y of the image. */
static inline const uint8_t *hp_pixels_row(const hp_pixels *p, int32_t y) {
    return p->px +
           (size_t)(y - p->window.y0) * (size_t)hp_crop_columns(&p->window) * hp_pixel_bytes(p->c, p->type);
}

/* Sets the size of the whole image. Errors: HP_EDATA (empty, a side above HP_MAX_SIDE), naming `path`. */
hp_status hp_image_sizes(hp_image *image, int64_t h, int64_t w, int32_t c, const char *path, hp_error *err);
/* Allocates memory for a window (NULL: the whole image), reusing the allocation when it suffices. Errors:
 * HP_EDATA (more than HP_MAX_PIXELS or HP_MAX_BYTES, not within the image, no memory), naming `path`. */
hp_status hp_image_room(hp_image *image, const hp_crop *window, const char *path, hp_error *err);
/* The same for a window that starts at or below the first row held; keeps the rows that both windows share.
 * *from: first missing row of the window. If the columns differ, all rows are missing. */
hp_status hp_image_move(hp_image *image, const hp_crop *window, const char *path, int32_t *from,
                        hp_error *err);
void hp_image_free(hp_image *image);

/* Is this the name of an image, by its suffix: .png .jpg .jpeg .tif .tiff, or a slide's, in any case? */
int hp_is_image_name(const char *name);

/* Separable bilinear (triangle) resampling with half-pixel centres; when shrinking, the triangle is widened
 * so that no source pixel is skipped (Pillow's BILINEAR). An h x w image is scaled to full_h x full_w, and
 * the result is the centre out_h x out_w; needs out_h <= full_h, out_w <= full_w. */
typedef struct hp_resize {
    int32_t h, w, full_h, full_w, out_h, out_w;
} hp_resize;

/* Source of pixels for resampling: provides at least `window`, valid until the next call. */
typedef struct hp_pixel_source {
    hp_status (*get)(void *self, const hp_crop *window, hp_pixels *view, hp_error *err);
    void *self;
} hp_pixel_source;

/* Computes a window of the result; its pixels do not depend on the window. Reads the source from the top
 * in bands of rows, a few million pixels each. Errors: HP_EDATA (no memory), the source's. Cost: O(source
 * window + result window). */
hp_status hp_image_resize_from(const hp_resize *r, const hp_pixel_source *source, const hp_crop *out,
                               hp_image *image, hp_error *err);

#endif
