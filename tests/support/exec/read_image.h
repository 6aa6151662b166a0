/* read_image.h - reads images, whole or a window, with a reader opened for each; resizes images in memory. */
#ifndef HP_TESTS_READ_IMAGE_H
#define HP_TESTS_READ_IMAGE_H

#include "exec/data/image/reader.h"

/* Opens the file, decodes a window (NULL: all) and closes it. Errors: the reader's. */
hp_status read_window(const char *path, const hp_crop *window, hp_image *image, hp_error *err);
/* Reads only h, w and c. */
hp_status read_head(const char *path, hp_image *image, hp_error *err);
/* `source` holds at least what is needed. */
hp_status resize_pixels(const hp_resize *r, const hp_pixels *source, const hp_crop *out, hp_image *image,
                        hp_error *err);

#endif
