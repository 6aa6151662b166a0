/* read_image.c - see read_image.h. */
#include "tests/support/exec/read_image.h"

#include <string.h>

static void copy(const hp_pixels *view, hp_image *image) {
    const size_t bytes = (size_t)hp_crop_rows(&view->window) * (size_t)hp_crop_columns(&view->window) *
                         hp_pixel_bytes(view->c, view->type);
    hp_image_free(image);
    *image = (hp_image){view->h, view->w, view->c, view->window, malloc(bytes), bytes, view->type};
    HP_ASSERT(image->px != NULL);
    memcpy(image->px, view->px, bytes);
}

hp_status read_window(const char *path, const hp_crop *window, hp_image *image, hp_error *err) {
    hp_reader *r;
    hp_pixels view;
    HP_TRY(hp_reader_open(path, NULL, &r, err));
    const hp_status s = hp_reader_window(r, window, &view, err);
    if (s == HP_OK) copy(&view, image);
    hp_reader_close(r);
    return s;
}

hp_status read_head(const char *path, hp_image *image, hp_error *err) {
    hp_reader *r;
    HP_TRY(hp_reader_open(path, NULL, &r, err));
    const hp_pixels size = hp_reader_size(r);
    image->h = size.h;
    image->w = size.w;
    image->c = size.c;
    hp_reader_close(r);
    return HP_OK;
}

static hp_status from_memory(void *self, const hp_crop *window, hp_pixels *view, hp_error *err) {
    (void)window;
    (void)err;
    *view = *(const hp_pixels *)self;
    return HP_OK;
}

hp_status resize_pixels(const hp_resize *r, const hp_pixels *source, const hp_crop *out, hp_image *image,
                        hp_error *err) {
    hp_pixels pixels = *source;
    const hp_pixel_source whole = {.get = from_memory, .self = &pixels};
    return hp_image_resize_from(r, &whole, out, image, err);
}
