/* image_tiff.c - TIFF through libtiff's RGBA reader: strips, tiles and every compression libtiff knows; the
 * first page. Errors and the cap on one allocation are set per file, so that no handler of the process
 * changes (libtiff >= 4.5). */
#include "exec/data/image.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <tiffio.h>

/* Largest single allocation libtiff may make for itself (a strip or tile): what the raster may be, four bytes
 * a pixel. */
enum { TIFF_ALLOC_MAX = 1 << 30 };

static int keep_error(TIFF *tif, void *text, const char *module, const char *fmt, va_list ap) {
    (void)tif;
    (void)module;
    if (!*(char *)text) vsnprintf(text, 256, fmt, ap);
    return 1;
}

static int drop_warning(TIFF *tif, void *text, const char *module, const char *fmt, va_list ap) {
    (void)tif;
    (void)text;
    (void)module;
    (void)fmt;
    (void)ap;
    return 1;
}

static bool is_grey(TIFF *tif) {
    uint16_t photometric = PHOTOMETRIC_RGB;
    TIFFGetField(tif, TIFFTAG_PHOTOMETRIC, &photometric);
    return photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
}

static void unpack(const uint32_t *raster, hp_image *image) {
    const size_t n = (size_t)image->h * (size_t)image->w;
    uint8_t *px = image->px;
    for (size_t i = 0; i < n; i++) {
        *px++ = (uint8_t)TIFFGetR(raster[i]);
        if (image->c == 1) continue;
        *px++ = (uint8_t)TIFFGetG(raster[i]);
        *px++ = (uint8_t)TIFFGetB(raster[i]);
    }
}

static hp_status decode(TIFF *tif, const char *path, hp_image *image, char text[1024], hp_error *err) {
    uint32_t w = 0, h = 0;
    TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &w);
    TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &h);
    char why[1024] = "";
    if (!TIFFRGBAImageOK(tif, why))
        return hp_fail(err, HP_EDATA, "%s: libtiff: %.256s; convert it to 8-bit grey or RGB", path, why);
    HP_TRY(hp_image_room(image, h, w, is_grey(tif) ? 1 : 3, path, err));
    uint32_t *raster = malloc((size_t)h * w * sizeof *raster);
    if (!raster)
        return hp_fail(err, HP_EDATA, "%s: no memory to decode %u x %u pixels; scale the image down", path, h,
                       w);
    const bool ok = TIFFReadRGBAImageOriented(tif, w, h, raster, ORIENTATION_TOPLEFT, 1) && !*text;
    if (ok) unpack(raster, image);
    free(raster);
    return ok ? HP_OK : hp_fail(err, HP_EDATA, "%s: libtiff: %.256s; replace the file", path, text);
}

hp_status hp_image_read_tiff(const char *path, hp_image *image, hp_error *err) {
    char text[1024] = "";
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    HP_ASSERT(options);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, TIFF_ALLOC_MAX);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, text);
    TIFFOpenOptionsSetWarningHandlerExtR(options, drop_warning, NULL);
    TIFF *tif = TIFFOpenExt(path, "rm", options); /* m: a map would fault where a read fails */
    const hp_status s = tif ? decode(tif, path, image, text, err)
                            : hp_fail(err, HP_EDATA, "%s: libtiff: %.256s; replace the file", path, text);
    if (tif) TIFFClose(tif);
    TIFFOpenOptionsFree(options);
    return s;
}
