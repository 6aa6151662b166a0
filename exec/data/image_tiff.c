/* image_tiff.c - TIFF through libtiff's RGBA reader: strips, tiles and every compression libtiff knows; the
 * first page. Of a window only the strips or tiles that it touches are decoded, one row of them at a time.
 * Errors and the cap on one allocation are set per file, so that no handler of the process changes (libtiff
 * >= 4.5). */
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

/* How the file is cut: every strip or tile begins at a multiple of these. Files stored mirrored are one
 * piece, for the reader to turn round. */
static void pieces(TIFF *tif, const hp_image *image, int32_t *rows, int32_t *columns) {
    uint32_t h = 0, w = (uint32_t)image->w;
    uint16_t orientation = ORIENTATION_TOPLEFT;
    TIFFGetFieldDefaulted(tif, TIFFTAG_ORIENTATION, &orientation);
    if (TIFFIsTiled(tif)) {
        TIFFGetField(tif, TIFFTAG_TILELENGTH, &h);
        TIFFGetField(tif, TIFFTAG_TILEWIDTH, &w);
    } else {
        TIFFGetFieldDefaulted(tif, TIFFTAG_ROWSPERSTRIP, &h);
    }
    const bool whole = orientation != ORIENTATION_TOPLEFT;
    *rows = whole || h == 0 || h > (uint32_t)image->h ? image->h : (int32_t)h;
    *columns = whole || w == 0 || w > (uint32_t)image->w ? image->w : (int32_t)w;
}

/* The window grown to whole pieces, within the image. */
static hp_crop covering(const hp_image *image, int32_t rows, int32_t columns) {
    const hp_crop *w = &image->window;
    const int64_t y1 = ((int64_t)w->y1 + rows - 1) / rows * rows,
                  x1 = ((int64_t)w->x1 + columns - 1) / columns * columns;
    return (hp_crop){w->y0 / rows * rows, w->x0 / columns * columns, y1 < image->h ? (int32_t)y1 : image->h,
                     x1 < image->w ? (int32_t)x1 : image->w};
}

/* Rows [y0, y1) of the raster, which begins at column x0 of the image, to the window. */
static void unpack(const uint32_t *raster, const hp_crop *from, hp_image *image) {
    const hp_crop *w = &image->window;
    const int32_t y0 = from->y0 > w->y0 ? from->y0 : w->y0, y1 = from->y1 < w->y1 ? from->y1 : w->y1;
    const size_t columns = (size_t)hp_crop_columns(w);
    for (int32_t y = y0; y < y1; y++) {
        uint8_t *px = image->px + (size_t)(y - w->y0) * columns * (size_t)image->c;
        const uint32_t *row =
            raster + (size_t)(y - from->y0) * (size_t)hp_crop_columns(from) + (w->x0 - from->x0);
        for (size_t i = 0; i < columns; i++) {
            *px++ = (uint8_t)TIFFGetR(row[i]);
            if (image->c == 1) continue;
            *px++ = (uint8_t)TIFFGetG(row[i]);
            *px++ = (uint8_t)TIFFGetB(row[i]);
        }
    }
}

typedef struct job {
    const hp_decode_job *j;
    TIFF *tif;
    char text[1024]; /* libtiff's first complaint */
} job;

static hp_status refuse(const job *t) {
    return hp_fail(t->j->err, HP_EDATA, "%s: libtiff: %.256s; replace the file", t->j->path, t->text);
}

/* One row of pieces at a time, so that the raster of four bytes a pixel stays small. */
static hp_status read_pieces(job *t, TIFFRGBAImage *reader, const hp_crop *all, int32_t rows) {
    hp_image *image = t->j->image;
    const int32_t most = rows < hp_crop_rows(all) ? rows : hp_crop_rows(all);
    uint32_t *raster = malloc((size_t)most * (size_t)hp_crop_columns(all) * sizeof *raster);
    if (!raster)
        return hp_fail(t->j->err, HP_EDATA, "%s: no memory to decode %d x %d pixels; scale the image down",
                       t->j->path, most, hp_crop_columns(all));
    bool ok = true;
    for (int32_t y = all->y0; ok && y < all->y1; y += rows) {
        const hp_crop band = {y, all->x0, y + rows < all->y1 ? y + rows : all->y1, all->x1};
        reader->row_offset = band.y0;
        reader->col_offset = band.x0;
        ok = TIFFRGBAImageGet(reader, raster, (uint32_t)hp_crop_columns(&band),
                              (uint32_t)hp_crop_rows(&band)) &&
             !*t->text;
        if (ok) unpack(raster, &band, image);
    }
    free(raster);
    return ok ? HP_OK : refuse(t);
}

static hp_status read_file(job *t) {
    const hp_decode_job *j = t->j;
    uint32_t w = 0, h = 0;
    char why[1024] = "";
    TIFFGetField(t->tif, TIFFTAG_IMAGEWIDTH, &w);
    TIFFGetField(t->tif, TIFFTAG_IMAGELENGTH, &h);
    HP_TRY(hp_image_sizes(j->image, h, w, is_grey(t->tif) ? 1 : 3, j->path, j->err));
    if (j->what == HP_DECODE_HEAD) return HP_OK;
    HP_TRY(hp_image_room(j->image, j->window, j->path, j->err));
    int32_t rows, columns;
    pieces(t->tif, j->image, &rows, &columns);
    const hp_crop all = covering(j->image, rows, columns);
    TIFFRGBAImage reader;
    if (!TIFFRGBAImageOK(t->tif, why) || !TIFFRGBAImageBegin(&reader, t->tif, 1, why))
        return hp_fail(j->err, HP_EDATA, "%s: libtiff: %.256s; convert it to 8-bit grey or RGB", j->path,
                       why);
    reader.req_orientation = ORIENTATION_TOPLEFT;
    const hp_status s = read_pieces(t, &reader, &all, rows);
    TIFFRGBAImageEnd(&reader);
    return s;
}

hp_status hp_decode_tiff(const hp_decode_job *j) {
    job t = {.j = j};
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    HP_ASSERT(options);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, TIFF_ALLOC_MAX);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, t.text);
    TIFFOpenOptionsSetWarningHandlerExtR(options, drop_warning, NULL);
    t.tif = TIFFOpenExt(j->path, "rm", options); /* m: a map would fault where a read fails */
    const hp_status s = t.tif ? read_file(&t) : refuse(&t);
    if (t.tif) TIFFClose(t.tif);
    TIFFOpenOptionsFree(options);
    return s;
}
