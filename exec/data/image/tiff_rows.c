/* tiff_rows.c - reads strips and tiles of a TIFF as stored, so that no bit and no band is lost. A row of
 * samples has all bands, or one band if they are stored separately (PlanarConfiguration 2). */
#include "exec/data/image/tiff.h"

#include <stdio.h>

/* Converts samples of a stored row to pixels [x0, x0 + n) of the raster's row at `to`: all bands that are
 * read, or only those in this plane. */
static void put_row(const hp_reader *r, const void *row, int32_t plane, size_t skip, size_t n, uint8_t *to) {
    const hp_tiff *t = r->self;
    const size_t c = (size_t)r->kept.c, bytes = hp_sample_bytes(r->kept.type), bands = (size_t)r->bands;
    if (t->map) {
        for (size_t i = 0; i < n; i++) {
            uint8_t index, rgb[3];
            t->samples->convert(&(hp_tiff_row){row, skip + i, 1, 1, &index, 1, t->bits});
            const int v = index / (255 / ((1 << t->bits) - 1));
            for (int k = 0; k < 3; k++) rgb[k] = (uint8_t)(t->colour[k][v] >> t->map_shift);
            hp_reader_pick(r, rgb, 1, to + i * c);
        }
        return;
    }
    for (size_t k = 0; k < c; k++) {
        const size_t band = (size_t)r->pick[k];
        if (plane >= 0 && (size_t)plane != band) continue;
        const hp_tiff_row s =
            plane < 0 ? (hp_tiff_row){row, skip * bands + band, bands, n, to + k * bytes, c, t->bits}
                      : (hp_tiff_row){row, skip, 1, n, to + k * bytes, c, t->bits};
        t->samples->convert(&s);
        if (t->inverse && band == 0) hp_tiff_samples_invert(r->kept.type, s.to, n, c);
    }
}

static uint8_t *raster_row(const hp_reader *r, const hp_crop *band, uint8_t *raster, int32_t y, int32_t x) {
    return raster + ((size_t)(y - band->y0) * (size_t)hp_crop_columns(band) + (size_t)(x - band->x0)) *
                        hp_pixel_bytes(r->kept.c, r->kept.type);
}

/* Rows of the strip above the band's first are decoded too, unless the last call ended there. */
static bool read_strips(hp_reader *r, const hp_crop *band, int32_t plane, uint8_t *raster) {
    hp_tiff *t = r->self;
    const uint16_t sample = (uint16_t)(plane < 0 ? 0 : plane);
    const int32_t first = band->y0 / t->bands.rows * t->bands.rows;
    const bool goes_on = t->next == band->y0 && plane < 0;
    t->next = -1;
    for (int32_t y = goes_on ? band->y0 : first; y < band->y1; y++) {
        if (TIFFReadScanline(t->file, t->row, (uint32_t)y, sample) != 1 || *t->text) return false;
        if (y % 64 == 0) hp_pulse_beat(&r->o.pulse);
        if (y >= band->y0)
            put_row(r, t->row, plane, (size_t)band->x0, (size_t)hp_crop_columns(band),
                    raster_row(r, band, raster, y, band->x0));
    }
    t->next = band->y1;
    return true;
}

/* Is the tile complete in the file? libtiff reads the full size of an uncompressed tile, however
 * many bytes are stored. */
static bool is_stored(const hp_tiff *t, uint32_t tile) {
    uint16_t compression = COMPRESSION_NONE;
    const uint64_t bytes = TIFFGetStrileByteCount(t->file, tile);
    TIFFGetFieldDefaulted(t->file, TIFFTAG_COMPRESSION, &compression);
    return bytes > 0 && (compression != COMPRESSION_NONE || bytes >= t->row_bytes);
}

static bool read_tile(hp_reader *r, const hp_crop *band, int32_t x, int32_t plane, uint8_t *raster) {
    hp_tiff *t = r->self;
    const uint32_t at =
        TIFFComputeTile(t->file, (uint32_t)x, (uint32_t)band->y0, 0, (uint16_t)(plane < 0 ? 0 : plane));
    if (!is_stored(t, at)) {
        snprintf(t->text, sizeof t->text, "tile %u is not whole in the file", at);
        return false;
    }
    const int32_t left = band->x1 - x, n = left < t->bands.columns ? left : t->bands.columns;
    if (TIFFReadEncodedTile(t->file, at, t->row, (tmsize_t)t->row_bytes) < 0 || *t->text) return false;
    const size_t row = (size_t)TIFFTileRowSize64(t->file);
    for (int32_t y = band->y0; y < band->y1; y++)
        put_row(r, t->row + (size_t)(y - band->y0) * row, plane, 0, (size_t)n,
                raster_row(r, band, raster, y, x));
    return true;
}

static bool read_plane(hp_reader *r, const hp_crop *band, int32_t plane, uint8_t *raster) {
    const hp_tiff *t = r->self;
    if (!t->tiled) return read_strips(r, band, plane, raster);
    for (int32_t x = band->x0; x < band->x1; x += t->bands.columns)
        if (!read_tile(r, band, x, plane, raster)) return false;
    return true;
}

/* Was the plane of band k already read for one of the k bands before it? */
static bool read_before(const hp_reader *r, int32_t k) {
    for (int32_t i = 0; i < k; i++)
        if (r->pick[i] == r->pick[k]) return true;
    return false;
}

bool hp_tiff_rows(hp_reader *r, const hp_crop *band, uint8_t *raster) {
    const hp_tiff *t = r->self;
    if (!t->planes) return read_plane(r, band, -1, raster);
    for (int32_t k = 0; k < r->kept.c; k++)
        if (!read_before(r, k) && !read_plane(r, band, r->pick[k], raster)) return false;
    return true;
}
