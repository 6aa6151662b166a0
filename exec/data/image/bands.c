/* bands.c - decodes strips and tiles band by band; see image/bands.h. */
#include "exec/data/image/bands.h"

#include <string.h>

/* A strip with more pixels is decoded in part where the format allows, and is not cached. */
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

/* The row of tiles that contains row y, with the columns that `part` requires. */
static hp_crop band_at(const hp_bands *b, const hp_reader *r, const hp_crop *part, int32_t y) {
    const hp_image *image = &r->kept;
    hp_crop band = {align_down(y, b->rows), align_down(part->x0, b->columns),
                    align_up(y + 1, b->rows, image->h), align_up(part->x1, b->columns, image->w)};
    const size_t row = (size_t)hp_crop_columns(&band) * hp_pixel_bytes(image->c, image->type);
    const bool large = (int64_t)hp_crop_rows(&band) * hp_crop_columns(&band) > LARGE_BAND ||
                       (size_t)hp_crop_rows(&band) * row > HP_MAX_BYTES;
    if (b->splittable && large) {
        const int32_t most =
            least(HP_MAX_PIXELS / hp_crop_columns(&band), (int32_t)((size_t)HP_MAX_BYTES / row));
        band.y0 = y;
        band.y1 = least(band.y1, least(part->y1, y + (most > 1 ? most : 1)));
    }
    return band;
}

static hp_status decode_band(hp_bands *b, hp_reader *r, const hp_crop *band, hp_error *err) {
    const int64_t n = (int64_t)hp_crop_rows(band) * hp_crop_columns(band);
    const size_t bytes = (size_t)n * hp_pixel_bytes(r->kept.c, r->kept.type);
    if (n > HP_MAX_PIXELS || bytes > HP_MAX_BYTES)
        return hp_fail(
            err, HP_EDATA,
            "%s: stored in pieces of %d x %d, which are decoded whole: more than %d pixels or %d bytes; "
            "save it with tiles of 256 x 256",
            r->path, hp_crop_rows(band), hp_crop_columns(band), (int)HP_MAX_PIXELS, (int)HP_MAX_BYTES);
    b->held = (hp_crop){0};
    if (bytes > b->capacity) {
        free(b->raster);
        b->raster = malloc(bytes);
        b->capacity = b->raster ? bytes : 0;
    }
    if (!b->raster)
        return hp_fail(err, HP_EDATA, "%s: no memory to decode %d x %d pixels; scale the image down", r->path,
                       hp_crop_rows(band), hp_crop_columns(band));
    hp_pulse_beat(&r->o.pulse);
    const hp_status s = b->decode(r, band, b->raster, err);
    r->decoder_bytes = b->capacity + b->beside;
    HP_TRY(s);
    b->held = *band;
    return HP_OK;
}

hp_status hp_bands_rows(hp_bands *b, hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    const size_t pixel = hp_pixel_bytes(r->kept.c, r->kept.type), n = (size_t)hp_crop_columns(part) * pixel;
    for (int32_t y = part->y0; y < part->y1;) {
        const hp_crop line = {y, part->x0, y + 1, part->x1};
        if (!hp_crop_within(&line, &b->held)) {
            const hp_crop band = band_at(b, r, part, y);
            HP_TRY(decode_band(b, r, &band, err));
        }
        const size_t row = (size_t)hp_crop_columns(&b->held) * pixel,
                     skip = (size_t)(part->x0 - b->held.x0) * pixel;
        for (; y < part->y1 && y < b->held.y1; y++, px += n)
            memcpy(px, b->raster + (size_t)(y - b->held.y0) * row + skip, n);
    }
    return HP_OK;
}

void hp_bands_free(hp_bands *b) {
    free(b->raster);
    *b = (hp_bands){0};
}
