/* bands.c - decodes strips and tiles band by band; see image/bands.h. */
#include "exec/data/image/bands.h"

/* A strip of more pixels than this is decoded in part where the format allows it, and not cached. */
enum { LARGE_BAND = 1 << 24 };

static int32_t align_down(int32_t at, int32_t step) {
    return at / step * step;
}

static int32_t align_up(int32_t at, int32_t step, int32_t end) {
    const int64_t next = ((int64_t)at + step - 1) / step * step;
    return next < end ? (int32_t)next : end;
}

static int32_t least(int32_t a, int32_t b) {
    return a < b ? a : b;
}

/* The row of tiles that contains row y, as wide as `part` requires. */
static hp_crop band_at(const hp_bands *b, const hp_reader *r, const hp_crop *part, int32_t y) {
    const hp_image *image = &r->kept;
    hp_crop band = {align_down(y, b->rows), align_down(part->x0, b->columns),
                    align_up(y + 1, b->rows, image->h), align_up(part->x1, b->columns, image->w)};
    if (b->splittable && (int64_t)hp_crop_rows(&band) * hp_crop_columns(&band) > LARGE_BAND) {
        const int32_t most = HP_MAX_PIXELS / hp_crop_columns(&band);
        band.y0 = y;
        band.y1 = least(band.y1, least(part->y1, y + (most > 1 ? most : 1)));
    }
    return band;
}

static hp_status decode_band(hp_bands *b, hp_reader *r, const hp_crop *band, hp_error *err) {
    const int64_t n = (int64_t)hp_crop_rows(band) * hp_crop_columns(band);
    if (n > HP_MAX_PIXELS)
        return hp_fail(
            err, HP_EDATA,
            "%s: stored in pieces of %d x %d, which are decoded whole: more than %d pixels; save it "
            "with tiles of 256 x 256",
            r->path, hp_crop_rows(band), hp_crop_columns(band), (int)HP_MAX_PIXELS);
    b->held = (hp_crop){0};
    if ((size_t)n > b->capacity) {
        free(b->raster);
        b->raster = malloc((size_t)n * sizeof *b->raster);
        b->capacity = b->raster ? (size_t)n : 0;
        r->decoder_bytes = b->capacity * sizeof *b->raster;
    }
    if (!b->raster)
        return hp_fail(err, HP_EDATA, "%s: no memory to decode %d x %d pixels; scale the image down", r->path,
                       hp_crop_rows(band), hp_crop_columns(band));
    hp_pulse_beat(&r->o.pulse);
    HP_TRY(b->decode(r, band, b->raster, err));
    b->held = *band;
    return HP_OK;
}

static void unpack(const uint32_t *from, size_t n, int32_t c, uint8_t *to) {
    for (size_t i = 0; i < n; i++) {
        *to++ = (uint8_t)from[i];
        if (c == 1) continue;
        *to++ = (uint8_t)(from[i] >> 8);
        *to++ = (uint8_t)(from[i] >> 16);
    }
}

hp_status hp_bands_rows(hp_bands *b, hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    const size_t n = (size_t)hp_crop_columns(part);
    for (int32_t y = part->y0; y < part->y1;) {
        const hp_crop line = {y, part->x0, y + 1, part->x1};
        if (!hp_crop_within(&line, &b->held)) {
            const hp_crop band = band_at(b, r, part, y);
            HP_TRY(decode_band(b, r, &band, err));
        }
        for (; y < part->y1 && y < b->held.y1; y++, px += n * (size_t)r->kept.c)
            unpack(b->raster + (size_t)(y - b->held.y0) * (size_t)hp_crop_columns(&b->held) +
                       (part->x0 - b->held.x0),
                   n, r->kept.c, px);
    }
    return HP_OK;
}

void hp_bands_free(hp_bands *b) {
    free(b->raster);
    *b = (hp_bands){0};
}
