/* openslide.c - slides through OpenSlide: Aperio, Hamamatsu, MIRAX, Leica, Ventana, pyramidal TIFF. One
 * level of the slide is the image. Areas that were never scanned are transparent in OpenSlide and get the
 * slide's background here.
 *
 * A level is read in fixed tiles, because OpenSlide interpolates at the borders of a region and a pixel must
 * not depend on the window in which it is read. */
#include "exec/data/image/bands.h"

#include <math.h>
#include <string.h>

#include <openslide.h>

enum { TILE = 256 /* default if the slide does not tell its tile size */ };

typedef struct slide {
    openslide_t *file;
    double shrink; /* downscaling of the level */
    uint32_t background[3];
    uint32_t *tile;
    hp_bands bands;
} slide;

static hp_status fail_decode(const hp_reader *r, hp_error *err) {
    const slide *s = r->self;
    const char *why = openslide_get_error(s->file);
    return hp_fail(err, HP_EDATA, "%s: OpenSlide: %.256s; replace the file", r->path,
                   why ? why : "no pixels");
}

/* Height or width of the level's tiles, from the slide's properties if present. */
static int32_t tile_side(const slide *s, int32_t level, const char *what) {
    char name[64];
    snprintf(name, sizeof name, "openslide.level[%d].tile-%s", level, what);
    const char *text = openslide_get_property_value(s->file, name);
    const int side = text ? atoi(text) : 0;
    return side >= 16 && side <= 4096 ? side : TILE;
}

/* "RRGGBB"; white if the slide has no such property. */
static void find_background(slide *s) {
    const char *text = openslide_get_property_value(s->file, OPENSLIDE_PROPERTY_NAME_BACKGROUND_COLOR);
    const unsigned long rgb = text ? strtoul(text, NULL, 16) : 0xffffff;
    for (int c = 0; c < 3; c++) s->background[c] = (uint32_t)(rgb >> (16 - 8 * c)) & 0xff;
}

/* Blends OpenSlide's premultiplied 0xAARRGGBB over the background. */
static void flatten(const slide *s, uint32_t px, uint8_t rgb[3]) {
    const uint32_t a = px >> 24;
    for (int c = 0; c < 3; c++) {
        const uint32_t v = (px >> (16 - 8 * c) & 0xff) + ((255 - a) * s->background[c] + 127) / 255;
        rgb[c] = (uint8_t)(v < 255 ? v : 255);
    }
}

static hp_status decode_tile(hp_reader *r, const hp_crop *tile, const hp_crop *band, uint8_t *raster,
                             hp_error *err) {
    slide *s = r->self;
    const int32_t h = hp_crop_rows(tile), w = hp_crop_columns(tile);
    openslide_read_region(s->file, s->tile, llround(tile->x0 * s->shrink), llround(tile->y0 * s->shrink),
                          r->o.level, w, h);
    if (openslide_get_error(s->file)) return fail_decode(r, err);
    for (int32_t y = 0; y < h; y++) {
        uint8_t *to = raster + ((size_t)(tile->y0 - band->y0 + y) * (size_t)hp_crop_columns(band) +
                                (size_t)(tile->x0 - band->x0)) *
                                   (size_t)r->kept.c;
        for (int32_t x = 0; x < w; x++, to += r->kept.c) {
            uint8_t rgb[3];
            flatten(s, s->tile[(size_t)y * (size_t)w + (size_t)x], rgb);
            hp_reader_pick(r, rgb, 1, to);
        }
    }
    return HP_OK;
}

static hp_status decode_band(hp_reader *r, const hp_crop *band, uint8_t *raster, hp_error *err) {
    const slide *s = r->self;
    for (int32_t x = band->x0; x < band->x1; x += s->bands.columns) {
        const int32_t x1 = band->x1 - x < s->bands.columns ? band->x1 : x + s->bands.columns;
        const hp_crop tile = {band->y0, x, band->y1, x1};
        hp_pulse_beat(&r->o.pulse);
        HP_TRY(decode_tile(r, &tile, band, raster, err));
    }
    return HP_OK;
}

static hp_status open_level(hp_reader *r, hp_error *err) {
    slide *s = r->self;
    const int32_t level = r->o.level, levels = openslide_get_level_count(s->file);
    if (level < 0 || level >= levels)
        return hp_fail(err, HP_EDATA, "%s: level %d; it has levels 0 to %d", r->path, level, levels - 1);
    int64_t w = 0, h = 0;
    openslide_get_level_dimensions(s->file, level, &w, &h);
    const char *icc = openslide_get_property_value(s->file, "openslide.icc-size"); /* OpenSlide 4 only */
    HP_TRY(hp_reader_stores(
        r,
        &(hp_stored_image){
            .h = h, .w = w, .bands = 3, .colour = 3, .said = icc && atoll(icc) > 0 ? HP_SAID_PROFILE : 0},
        err));
    s->shrink = openslide_get_level_downsample(s->file, level);
    find_background(s);
    s->bands = (hp_bands){.rows = tile_side(s, level, "height"),
                          .columns = tile_side(s, level, "width"),
                          .decode = decode_band};
    s->tile = malloc((size_t)s->bands.rows * (size_t)s->bands.columns * sizeof *s->tile);
    HP_ASSERT(s->tile);
    return HP_OK;
}

static hp_status open_slide(hp_reader *r, hp_error *err) {
    slide *s = r->self = calloc(1, sizeof *s);
    HP_ASSERT(s);
    s->file = openslide_open(r->path);
    if (!s->file)
        return hp_fail(err, HP_EDATA,
                       "%s: no slide that OpenSlide %s knows; check the path, or convert it to a "
                       "tiled TIFF",
                       r->path, openslide_get_version());
    if (openslide_get_error(s->file)) return fail_decode(r, err);
    return open_level(r, err);
}

static int32_t level_for(const hp_reader *r, double shrink) {
    const slide *s = r->self;
    const int32_t level = openslide_get_best_level_for_downsample(s->file, shrink * s->shrink);
    return level > 0 ? level : 0;
}

static hp_status rows(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    return hp_bands_rows(&((slide *)r->self)->bands, r, part, px, err);
}

static void close_slide(hp_reader *r) {
    slide *s = r->self;
    if (!s) return;
    if (s->file) openslide_close(s->file);
    free(s->tile);
    hp_bands_free(&s->bands);
    free(s);
}

const hp_reader_kind hp_reader_slide = {
    .open = open_slide, .rows = rows, .level = level_for, .close = close_slide};
