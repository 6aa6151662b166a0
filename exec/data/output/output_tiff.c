/* output_tiff.c - maps as tiled TIFF: one page per sample, C float32 samples per pixel, or one uint8. Tiles
 * are written in the file's order from bands of at most BAND_BYTES. */
#include "exec/data/output/output_kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

enum { TILE = 256, BAND_BYTES = 64 << 20 };

/* Larger files use 64-bit offsets (BigTIFF). */
static const int64_t CLASSIC_BYTES = 4000000000;

typedef struct work {
    const hp_output_layout *l;
    int part;
    TIFF *tif;
    int32_t px_bytes;     /* bytes per pixel */
    int64_t band_columns; /* a multiple of TILE */
    unsigned char *band;  /* (TILE, columns of the band, px_bytes) */
    unsigned char *tile;  /* (TILE, TILE, px_bytes) */
    char text[256];       /* libtiff's first error message */
} work;

static hp_status check(const hp_output_spec *s, hp_error *err) {
    if (s->h == 1 && s->w == 1)
        return hp_fail(err, HP_EUSAGE,
                       "%s: a TIFF holds maps, the network gives one row of logits per image; end the "
                       "name in .npy or .json",
                       s->path);
    if (s->c > UINT16_MAX || s->n > UINT16_MAX)
        return hp_fail(err, HP_EUSAGE, "%s: a TIFF holds up to %d channels and pages; end the name in .npy",
                       s->path, UINT16_MAX);
    return HP_OK;
}

static int keep_error(TIFF *tif, void *text, const char *module, const char *fmt, va_list ap) {
    (void)tif;
    (void)module;
    if (!*(char *)text) vsnprintf(text, sizeof((work *)0)->text, fmt, ap);
    return 1;
}

static hp_status refuse(const work *w, const char *tmp, hp_error *err) {
    return hp_fail(err, HP_EIO, "writing %s failed: %s; free some space or give another folder", tmp,
                   *w->text ? w->text : strerror(errno));
}

static void set_fields(const work *w, int64_t page) {
    TIFF *t = w->tif;
    const bool real = w->l->elem_bytes == 4;
    const uint16_t c = (uint16_t)w->l->dim[HP_AXIS_C];
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, (uint32_t)w->l->dim[HP_AXIS_H]);
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, (uint32_t)w->l->dim[HP_AXIS_W]);
    TIFFSetField(t, TIFFTAG_TILELENGTH, TILE);
    TIFFSetField(t, TIFFTAG_TILEWIDTH, TILE);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, c);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, real ? 32 : 8);
    TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, real ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    /* maps of classes have large flat areas; logits hardly compress */
    TIFFSetField(t, TIFFTAG_COMPRESSION, real ? COMPRESSION_NONE : COMPRESSION_ADOBE_DEFLATE);
    if (w->l->dim[0] > 1) TIFFSetField(t, TIFFTAG_PAGENUMBER, (uint16_t)page, (uint16_t)w->l->dim[0]);
    if (c == 1) return;
    /* extra samples after the first: none is alpha */
    uint16_t extra[UINT16_MAX] = {EXTRASAMPLE_UNSPECIFIED};
    TIFFSetField(t, TIFFTAG_EXTRASAMPLES, c - 1, extra);
}

/* Rows [y0, y1) and columns [x0, x1) of a page, dense. */
static hp_status read_band(work *w, int64_t page, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
                           hp_error *err) {
    const int64_t *dim = w->l->dim;
    const size_t bytes = (size_t)(x1 - x0) * (size_t)w->px_bytes;
    for (int64_t y = y0; y < y1; y++) {
        const int64_t at = ((page * dim[HP_AXIS_H] + y) * dim[HP_AXIS_W] + x0) * w->px_bytes;
        HP_TRY(
            hp_output_read(w->part, w->band + (size_t)(y - y0) * bytes, bytes, w->l->header_bytes + at, err));
    }
    return HP_OK;
}

/* Writes the tiles of a band; pixels beyond the image are zero. */
static bool write_tiles(work *w, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
    const size_t px = (size_t)w->px_bytes, row = (size_t)(x1 - x0) * px;
    for (int64_t x = x0; x < x1; x += TILE) {
        const size_t n = (size_t)(x1 - x < TILE ? x1 - x : TILE) * px;
        memset(w->tile, 0, TILE * TILE * px);
        for (int64_t y = y0; y < y1; y++)
            memcpy(w->tile + (size_t)(y - y0) * TILE * px,
                   w->band + (size_t)(y - y0) * row + (size_t)(x - x0) * px, n);
        if (TIFFWriteTile(w->tif, w->tile, (uint32_t)x, (uint32_t)y0, 0, 0) < 0) return false;
    }
    return true;
}

static hp_status write_page(work *w, int64_t page, const char *tmp, hp_error *err) {
    const int64_t h = w->l->dim[HP_AXIS_H], columns = w->l->dim[HP_AXIS_W];
    set_fields(w, page);
    for (int64_t y = 0; y < h; y += TILE)
        for (int64_t x = 0; x < columns; x += w->band_columns) {
            const int64_t y1 = y + TILE < h ? y + TILE : h,
                          x1 = x + w->band_columns < columns ? x + w->band_columns : columns;
            HP_TRY(read_band(w, page, y, y1, x, x1, err));
            if (!write_tiles(w, y, y1, x, x1)) return refuse(w, tmp, err);
        }
    return TIFFWriteDirectory(w->tif) && !*w->text ? HP_OK : refuse(w, tmp, err);
}

static hp_status open_tiff(work *w, const char *tmp, hp_error *err) {
    const int64_t *dim = w->l->dim, bytes = dim[0] * dim[1] * dim[2] * dim[3] * w->l->elem_bytes;
    w->px_bytes = (int32_t)dim[HP_AXIS_C] * w->l->elem_bytes;
    const int64_t tiles = BAND_BYTES / ((int64_t)TILE * TILE * w->px_bytes),
                  all = (dim[HP_AXIS_W] + TILE - 1) / TILE;
    w->band_columns = TILE * (tiles < 1 ? 1 : tiles < all ? tiles : all);
    w->band = malloc((size_t)w->band_columns * TILE * (size_t)w->px_bytes);
    w->tile = malloc((size_t)TILE * TILE * (size_t)w->px_bytes);
    if (!w->band || !w->tile) return hp_fail(err, HP_EIO, "no memory to write %s; end the name in .npy", tmp);
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    HP_ASSERT(options);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, w->text);
    w->tif = TIFFOpenExt(tmp, bytes > CLASSIC_BYTES ? "w8" : "w", options);
    TIFFOpenOptionsFree(options);
    if (w->tif) return HP_OK;
    return hp_fail(err, HP_ECREATE, "cannot create %s: %s; give a path in an existing, writable folder", tmp,
                   strerror(errno));
}

static hp_status convert(const hp_output_layout *l, int part, const char *tmp, hp_error *err) {
    work w = {.l = l, .part = part};
    hp_status s = open_tiff(&w, tmp, err);
    for (int64_t page = 0; s == HP_OK && page < l->dim[0]; page++) s = write_page(&w, page, tmp, err);
    if (w.tif) TIFFClose(w.tif);
    if (s == HP_OK && *w.text) s = refuse(&w, tmp, err);
    free(w.band);
    free(w.tile);
    return s;
}

const hp_output_kind hp_output_tiff = {.suffix = ".tif", .check = check, .convert = convert};
