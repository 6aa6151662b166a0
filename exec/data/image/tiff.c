/* tiff.c - TIFF and BigTIFF through libtiff's RGBA reader: strips, tiles and every compression libtiff
 * supports; the first page. Only the strips or tiles that a window overlaps are decoded, one row of them at a
 * time. Error handlers and the limit on one allocation are set per file, so that the process's handlers stay
 * unchanged (libtiff >= 4.5). */
#include "exec/data/image/bands.h"

#include <stdarg.h>
#include <string.h>

#include <tiffio.h>

/* Largest single allocation by libtiff (a strip or tile): the limit of the raster, four bytes per pixel. */
enum { TIFF_ALLOC_MAX = 1 << 30 };

typedef struct tiff {
    TIFF *file;
    TIFFOpenOptions *options;
    TIFFRGBAImage rgba;
    bool begun; /* rgba is initialised */
    hp_bands bands;
    char text[1024]; /* libtiff's first error message */
} tiff;

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

static hp_status fail_decode(const hp_reader *r, hp_error *err) {
    const tiff *t = r->self;
    return hp_fail(err, HP_EDATA, "%s: libtiff: %.256s; replace the file", r->path, t->text);
}

static uint16_t photometric(TIFF *file) {
    uint16_t value = PHOTOMETRIC_RGB;
    TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &value);
    return value;
}

static bool is_grey(TIFF *file) {
    const uint16_t p = photometric(file);
    return p == PHOTOMETRIC_MINISBLACK || p == PHOTOMETRIC_MINISWHITE;
}

static int32_t at_most(uint32_t n, int32_t side) {
    return n == 0 || n > (uint32_t)side ? side : (int32_t)n;
}

/* The sizes of the file's strips or tiles. Files stored mirrored are one piece, which the reader flips;
 * subsampled colours cannot be split between rows that share them. */
static void find_pieces(hp_reader *r) {
    tiff *t = r->self;
    uint32_t h = 0, w = 0;
    uint16_t orientation = ORIENTATION_TOPLEFT;
    TIFFGetFieldDefaulted(t->file, TIFFTAG_ORIENTATION, &orientation);
    const bool whole = orientation != ORIENTATION_TOPLEFT, tiled = TIFFIsTiled(t->file);
    if (tiled) {
        TIFFGetField(t->file, TIFFTAG_TILELENGTH, &h);
        TIFFGetField(t->file, TIFFTAG_TILEWIDTH, &w);
    } else {
        TIFFGetFieldDefaulted(t->file, TIFFTAG_ROWSPERSTRIP, &h);
    }
    t->bands.rows = at_most(whole ? 0 : h, r->kept.h);
    t->bands.columns = at_most(whole ? 0 : w, r->kept.w);
    t->bands.splittable = !whole && !tiled && photometric(t->file) != PHOTOMETRIC_YCBCR;
}

static hp_status begin(hp_reader *r, hp_error *err) {
    tiff *t = r->self;
    char why[1024] = "";
    if (!TIFFRGBAImageOK(t->file, why) || !TIFFRGBAImageBegin(&t->rgba, t->file, 1, why))
        return hp_fail(err, HP_EDATA, "%s: libtiff: %.256s; convert it to 8-bit grey or RGB", r->path, why);
    t->rgba.req_orientation = ORIENTATION_TOPLEFT;
    t->begun = true;
    return HP_OK;
}

static hp_status decode_band(hp_reader *r, const hp_crop *band, uint32_t *raster, hp_error *err) {
    tiff *t = r->self;
    if (!t->begun) HP_TRY(begin(r, err));
    t->rgba.row_offset = band->y0;
    t->rgba.col_offset = band->x0;
    const int ok =
        TIFFRGBAImageGet(&t->rgba, raster, (uint32_t)hp_crop_columns(band), (uint32_t)hp_crop_rows(band));
    if (ok && !*t->text) return HP_OK;
    const hp_status s = fail_decode(r, err);
    t->text[0] = '\0';
    return s;
}

static hp_status open_tiff(hp_reader *r, hp_error *err) {
    tiff *t = r->self = calloc(1, sizeof *t);
    HP_ASSERT(t);
    t->options = TIFFOpenOptionsAlloc();
    HP_ASSERT(t->options);
    TIFFOpenOptionsSetMaxSingleMemAlloc(t->options, TIFF_ALLOC_MAX);
    TIFFOpenOptionsSetErrorHandlerExtR(t->options, keep_error, t->text);
    TIFFOpenOptionsSetWarningHandlerExtR(t->options, drop_warning, NULL);
    t->file = TIFFOpenExt(r->path, "rm", t->options); /* m: no memory map, as an I/O error would raise
                                                         SIGBUS */
    if (!t->file || *t->text) return fail_decode(r, err);
    uint32_t w = 0, h = 0;
    TIFFGetField(t->file, TIFFTAG_IMAGEWIDTH, &w);
    TIFFGetField(t->file, TIFFTAG_IMAGELENGTH, &h);
    HP_TRY(hp_image_sizes(&r->kept, h, w, is_grey(t->file) ? 1 : 3, r->path, err));
    t->bands.decode = decode_band;
    find_pieces(r);
    return HP_OK;
}

static hp_status rows(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    return hp_bands_rows(&((tiff *)r->self)->bands, r, part, px, err);
}

static void close_tiff(hp_reader *r) {
    tiff *t = r->self;
    if (!t) return;
    if (t->begun) TIFFRGBAImageEnd(&t->rgba);
    if (t->file) TIFFClose(t->file);
    TIFFOpenOptionsFree(t->options);
    hp_bands_free(&t->bands);
    free(t);
}

const hp_reader_kind hp_reader_tiff = {.open = open_tiff, .rows = rows, .close = close_tiff};
