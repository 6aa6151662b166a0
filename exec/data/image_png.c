/* image_png.c - PNG through libpng's simplified API, which keeps its errors in a struct: no longjmp crosses
 * this file. All PNG types become 8-bit grey or RGB. */
#include "exec/data/image.h"

#include <png.h>
#include <stdbool.h>
#include <string.h>

/* (pixels, c + 1) -> (pixels, c), in place. */
static void drop_alpha(hp_image *image) {
    const size_t n = (size_t)image->h * (size_t)image->w, c = (size_t)image->c - 1;
    for (size_t i = 1; i < n; i++) memmove(image->px + i * c, image->px + i * (c + 1), c);
    image->c = (int32_t)c;
}

static hp_status decode(png_image *png, const char *path, hp_image *image, hp_error *err) {
    const bool colour = png->format & PNG_FORMAT_FLAG_COLOR, alpha = png->format & PNG_FORMAT_FLAG_ALPHA;
    png->format = (colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0u);
    png->flags |= PNG_IMAGE_FLAG_16BIT_sRGB; /* 16-bit samples are the 8-bit ones with more digits */
    HP_TRY(hp_image_room(image, png->height, png->width, (colour ? 3 : 1) + alpha, path, err));
    if (!png_image_finish_read(png, NULL, image->px, 0, NULL))
        return hp_fail(err, HP_EDATA, "%s: libpng: %s; replace the file", path, png->message);
    if (alpha) drop_alpha(image);
    return HP_OK;
}

hp_status hp_image_read_png(const char *path, hp_image *image, hp_error *err) {
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_file(&png, path))
        return hp_fail(err, HP_EDATA, "%s: libpng: %s; replace the file", path, png.message);
    const hp_status s = decode(&png, path, image, err);
    png_image_free(&png);
    return s;
}
