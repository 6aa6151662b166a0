/* tiff.c - TIFF and BigTIFF through libtiff: strips, tiles and every compression that libtiff supports; the
 * first page. Grey, RGB, palettes and any number of bands are read as stored (tiff_rows.c); libtiff's RGBA
 * interface converts YCbCr, CMYK, CIE L*a*b* and SGI's LogLuv to 8-bit RGB. Only strips or tiles that a
 * window overlaps are decoded, one row of them at a time. Error handlers and the limit on one allocation are
 * set per file, so the process's handlers stay unchanged (libtiff >= 4.5). */
#include "exec/data/image/tiff.h"

#include <stdarg.h>
#include <string.h>

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
    const hp_tiff *t = r->self;
    return hp_fail(err, HP_EDATA, "%s: libtiff: %.256s; replace the file", r->path,
                   *t->text ? t->text : "no pixels");
}

static uint16_t number(const hp_tiff *t, uint32_t tag, uint16_t otherwise) {
    uint16_t value = otherwise;
    return TIFFGetFieldDefaulted(t->file, tag, &value) ? value : otherwise;
}

/* --- what is stored --- */

static uint16_t photometric(const hp_tiff *t, int32_t bands) {
    return number(t, TIFFTAG_PHOTOMETRIC, bands >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
}

/* Does it need libtiff's RGBA interface, for its colours or for its compression? */
static bool needs_conversion(const hp_tiff *t, uint16_t colours) {
    const uint16_t c = number(t, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    return colours == PHOTOMETRIC_YCBCR || colours == PHOTOMETRIC_SEPARATED ||
           colours == PHOTOMETRIC_CIELAB || colours == PHOTOMETRIC_LOGL || colours == PHOTOMETRIC_LOGLUV ||
           c == COMPRESSION_OJPEG || c == COMPRESSION_JBIG;
}

static uint32_t said_of(const hp_tiff *t, int32_t bands, int32_t colour) {
    uint16_t n = 0, *kind = NULL;
    uint32_t said = 0, bytes = 0;
    void *profile = NULL;
    TIFFGetFieldDefaulted(t->file, TIFFTAG_EXTRASAMPLES, &n, &kind);
    if (bands == colour + 1 && n == 1 && kind[0] != EXTRASAMPLE_UNSPECIFIED)
        said |= HP_SAID_ALPHA | (kind[0] == EXTRASAMPLE_ASSOCALPHA ? HP_SAID_MULTIPLIED : 0u);
    if (TIFFGetField(t->file, TIFFTAG_ICCPROFILE, &bytes, &profile) && bytes > 0) said |= HP_SAID_PROFILE;
    if (!TIFFLastDirectory(t->file)) said |= HP_SAID_PAGES;
    return said;
}

static hp_status fail_kind(const hp_reader *r, const char *what, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: TIFF of %s; convert it to grey or RGB of 8 or 16 bits, or to float",
                   r->path, what);
}

/* Some programs write colour maps of 8-bit numbers: none is above 255. */
static void find_shift(hp_tiff *t) {
    t->map_shift = 0;
    for (int k = 0; k < 3; k++)
        for (int v = 0; v < 1 << t->bits; v++)
            if (t->colour[k][v] > 255) t->map_shift = 8;
}

static hp_status find_samples(hp_reader *r, hp_stored_image *s, uint16_t colours, hp_error *err) {
    hp_tiff *t = r->self;
    const int32_t format = number(t, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    char what[96];
    t->samples = hp_tiff_samples_of(t->bits, format);
    snprintf(what, sizeof what, "%d-bit %s samples", t->bits,
             format == SAMPLEFORMAT_INT      ? "signed"
             : format == SAMPLEFORMAT_IEEEFP ? "float"
             : format == SAMPLEFORMAT_UINT   ? "unsigned"
                                             : "complex or undefined");
    if (!t->samples) return fail_kind(r, what, err);
    t->inverse = colours == PHOTOMETRIC_MINISWHITE;
    if (t->inverse && t->samples->type == HP_SAMPLE_F32)
        return fail_kind(r, "float or signed samples whose least is white", err);
    t->map = colours == PHOTOMETRIC_PALETTE;
    if (t->map && (t->bits > 8 || t->samples->type != HP_SAMPLE_U8 || s->bands != 1 ||
                   !TIFFGetField(t->file, TIFFTAG_COLORMAP, &t->colour[0], &t->colour[1], &t->colour[2])))
        return fail_kind(r, "a palette of other than one band of 1, 2, 4 or 8 bits", err);
    if (t->map) find_shift(t), s->bands = 3;
    s->type = t->samples->type;
    if (t->samples->scaled) s->said |= HP_SAID_SCALED;
    if (t->samples->rounded) s->said |= HP_SAID_ROUNDED;
    return HP_OK;
}

/* Finds what is stored, and how to read it. */
static hp_status find_layout(hp_reader *r, hp_stored_image *s, hp_error *err) {
    hp_tiff *t = r->self;
    s->bands = number(t, TIFFTAG_SAMPLESPERPIXEL, 1);
    t->bits = number(t, TIFFTAG_BITSPERSAMPLE, 1);
    t->planes = s->bands > 1 && number(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE;
    const uint16_t colours = photometric(t, s->bands);
    const bool grey = colours == PHOTOMETRIC_MINISBLACK || colours == PHOTOMETRIC_MINISWHITE;
    s->colour = grey ? 1 : 3;
    s->said = said_of(t, s->bands, s->colour);
    s->position = number(t, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    if (needs_conversion(t, colours)) {
        s->bands = s->colour;
        s->said = (s->said & ~(uint32_t)HP_SAID_ALPHA) | (grey ? 0u : HP_SAID_CONVERTED);
        return HP_OK;
    }
    if (!grey && colours != PHOTOMETRIC_RGB && colours != PHOTOMETRIC_PALETTE) {
        char what[64];
        snprintf(what, sizeof what, "PhotometricInterpretation %d", colours);
        return fail_kind(r, what, err);
    }
    if (colours == PHOTOMETRIC_RGB && s->bands < 3)
        return fail_kind(r, "RGB with fewer than three bands", err);
    return find_samples(r, s, colours, err);
}

static int32_t at_most(uint32_t n, int32_t side) {
    return n == 0 || n > (uint32_t)side ? side : (int32_t)n;
}

/* Size of the file's strips or tiles. Strips with subsampled colours cannot be split between
 * rows that share them. */
static void find_pieces(hp_reader *r) {
    hp_tiff *t = r->self;
    uint32_t h = 0, w = 0;
    t->tiled = TIFFIsTiled(t->file);
    if (t->tiled) {
        TIFFGetField(t->file, TIFFTAG_TILELENGTH, &h);
        TIFFGetField(t->file, TIFFTAG_TILEWIDTH, &w);
    } else {
        TIFFGetFieldDefaulted(t->file, TIFFTAG_ROWSPERSTRIP, &h);
    }
    t->bands.rows = at_most(h, r->kept.h);
    t->bands.columns = at_most(w, r->kept.w);
    t->bands.splittable = !t->tiled && photometric(t, r->bands) != PHOTOMETRIC_YCBCR;
}

/* --- decoding --- */

static hp_status no_memory(const hp_reader *r, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: no memory to decode it; save it with smaller strips or tiles",
                   r->path);
}

/* Allocates a row, or a tile, of all samples before the first is decoded. */
static hp_status begin_rows(hp_reader *r, hp_error *err) {
    hp_tiff *t = r->self;
    const uint64_t bytes = t->tiled ? TIFFTileSize64(t->file) : TIFFScanlineSize64(t->file);
    if (bytes == 0 || bytes > HP_MAX_BYTES)
        return hp_fail(err, HP_EDATA,
                       "%s: %s of %llu bytes, hplan decodes 1 to %d at once; save it with tiles of 256 x 256",
                       r->path, t->tiled ? "a tile" : "a row", (unsigned long long)bytes, (int)HP_MAX_BYTES);
    t->row_bytes = t->bands.beside = (size_t)bytes;
    t->row = calloc(1, t->row_bytes);
    return t->row ? HP_OK : no_memory(r, err);
}

static hp_status begin_rgba(hp_reader *r, hp_error *err) {
    hp_tiff *t = r->self;
    char why[1024] = "";
    if (!TIFFRGBAImageOK(t->file, why) || !TIFFRGBAImageBegin(&t->rgba, t->file, 1, why))
        return hp_fail(err, HP_EDATA, "%s: libtiff: %.256s; convert it to 8-bit grey or RGB", r->path, why);
    t->rgba.orientation = t->rgba.req_orientation = ORIENTATION_TOPLEFT; /* as stored: turned.c turns it */
    t->begun = true;
    return HP_OK;
}

static hp_status rgba_room(hp_reader *r, size_t n, hp_error *err) {
    hp_tiff *t = r->self;
    if (n <= t->capacity) return HP_OK;
    free(t->raster);
    t->raster = malloc(n * sizeof *t->raster);
    t->capacity = t->raster ? n : 0;
    t->bands.beside = t->capacity * sizeof *t->raster;
    return t->raster ? HP_OK : no_memory(r, err);
}

static hp_status decode_rgba(hp_reader *r, const hp_crop *band, uint8_t *raster, hp_error *err) {
    hp_tiff *t = r->self;
    const size_t n = (size_t)hp_crop_rows(band) * (size_t)hp_crop_columns(band);
    if (!t->begun) HP_TRY(begin_rgba(r, err));
    HP_TRY(rgba_room(r, n, err));
    t->rgba.row_offset = band->y0;
    t->rgba.col_offset = band->x0;
    if (!TIFFRGBAImageGet(&t->rgba, t->raster, (uint32_t)hp_crop_columns(band),
                          (uint32_t)hp_crop_rows(band)) ||
        *t->text)
        return fail_decode(r, err);
    for (size_t i = 0; i < n; i++, raster += r->kept.c) {
        const uint32_t v = t->raster[i];
        const uint8_t rgb[3] = {(uint8_t)TIFFGetR(v), (uint8_t)TIFFGetG(v), (uint8_t)TIFFGetB(v)};
        hp_reader_pick(r, rgb, 1, raster);
    }
    return HP_OK;
}

static hp_status decode_rows(hp_reader *r, const hp_crop *band, uint8_t *raster, hp_error *err) {
    hp_tiff *t = r->self;
    if (!t->row) HP_TRY(begin_rows(r, err));
    return hp_tiff_rows(r, band, raster) ? HP_OK : fail_decode(r, err);
}

static hp_status decode_band(hp_reader *r, const hp_crop *band, uint8_t *raster, hp_error *err) {
    hp_tiff *t = r->self;
    const hp_status s = (t->samples ? decode_rows : decode_rgba)(r, band, raster, err);
    t->text[0] = '\0';
    return s;
}

static hp_status open_tiff(hp_reader *r, hp_error *err) {
    hp_tiff *t = r->self = calloc(1, sizeof *t);
    HP_ASSERT(t);
    t->next = -1;
    t->options = TIFFOpenOptionsAlloc();
    HP_ASSERT(t->options);
    TIFFOpenOptionsSetMaxSingleMemAlloc(t->options, HP_MAX_BYTES);
    TIFFOpenOptionsSetErrorHandlerExtR(t->options, keep_error, t->text);
    TIFFOpenOptionsSetWarningHandlerExtR(t->options, drop_warning, NULL);
    t->file = TIFFOpenExt(r->path, "rm", t->options); /* m: no memory map, whose I/O errors raise SIGBUS */
    if (!t->file || *t->text) return fail_decode(r, err);
    uint32_t w = 0, h = 0;
    TIFFGetField(t->file, TIFFTAG_IMAGEWIDTH, &w);
    TIFFGetField(t->file, TIFFTAG_IMAGELENGTH, &h);
    hp_stored_image s = {.h = h, .w = w};
    HP_TRY(find_layout(r, &s, err));
    HP_TRY(hp_reader_stores(r, &s, err));
    t->bands.decode = decode_band;
    find_pieces(r);
    return HP_OK;
}

static hp_status rows(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    return hp_bands_rows(&((hp_tiff *)r->self)->bands, r, part, px, err);
}

static void close_tiff(hp_reader *r) {
    hp_tiff *t = r->self;
    if (!t) return;
    if (t->begun) TIFFRGBAImageEnd(&t->rgba);
    if (t->file) TIFFClose(t->file);
    TIFFOpenOptionsFree(t->options);
    hp_bands_free(&t->bands);
    free(t->row);
    free(t->raster);
    free(t);
}

const hp_reader_kind hp_reader_tiff = {.open = open_tiff, .rows = rows, .close = close_tiff};
