/* test_formats.c - the same picture in every form that TIFF, PNG and JPEG have for it: bits, sign, bands,
 * alpha, orientation, planes, strips, tiles, byte orders, compressions. The formats' own libraries write
 * numbers, with which the results are compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include "exec/base/half.h"
#include "exec/data/image/reader.h"
#include "base/rng.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/plan/data_files.h"

enum { H = 37, W = 29, TILE = 16, MOST = 200 };

typedef struct form {
    const char *mode; /* mode of TIFFOpen: byte order, BigTIFF */
    int bits, format, bands, photometric, planes, tile, compression, predictor;
    int extra; /* type of each band besides colour; -1: the tag is left out */
} form;

/* A number that uses all bits of a sample, drawn by its position. */
static uint64_t drawn(int y, int x, int band) {
    return hp_rng_below(11, (uint64_t)band, (uint64_t)(y * W + x), UINT64_MAX) | 1;
}

/* --- writing --- */

static double float_of(uint64_t v) {
    return (double)(int64_t)(v % 2000003) / 1009.0 - 700;
}

static void put_bits(uint8_t *row, size_t i, int bits, uint64_t v) {
    for (int b = 0; b < bits; b++) {
        const size_t at = i * (size_t)bits + (size_t)b;
        if (v >> (bits - 1 - b) & 1) row[at / 8] = (uint8_t)(row[at / 8] | 0x80u >> at % 8);
    }
}

static void put_sample(const form *f, uint8_t *row, size_t i, uint64_t v) {
    const float f32 = (float)float_of(v);
    const double f64 = float_of(v);
    const uint16_t half = to_f16(f32), u16 = (uint16_t)v;
    const uint32_t u32 = (uint32_t)v;
    const size_t at = i * (size_t)f->bits / 8;
    if (f->format == 3)
        memcpy(row + at,
               f->bits == 16   ? (const void *)&half
               : f->bits == 32 ? (const void *)&f32
                               : &f64,
               (size_t)f->bits / 8);
    else if (f->bits == 16)
        memcpy(row + at, &u16, 2);
    else if (f->bits == 32)
        memcpy(row + at, &u32, 4);
    else
        put_bits(row, i, f->bits, v);
}

/* The sample's value by TIFF 6.0; integers relative to their type's largest value. */
static double expected(const form *f, uint64_t v) {
    const uint64_t most = f->bits < 64 ? (UINT64_C(1) << f->bits) - 1 : UINT64_MAX, bits = v & most;
    if (f->format == 3)
        return f->bits == 16 ? (double)from_f16(to_f16((float)float_of(v))) : (double)(float)float_of(v);
    if (f->format == 2) {
        const int64_t sign = INT64_C(1) << (f->bits - 1),
                      n = (int64_t)bits >= sign ? (int64_t)bits - 2 * sign : (int64_t)bits;
        return (double)n / (double)(sign - 1);
    }
    const double share = (double)bits / (double)most;
    return f->photometric == PHOTOMETRIC_MINISWHITE ? 1 - share : share;
}

static void fill(const form *f, uint8_t *to, size_t row_bytes, int y0, int x0, int rows, int columns,
                 int plane) {
    const int bands = f->planes ? 1 : f->bands;
    for (int y = y0; y < y0 + rows; y++)
        for (int x = x0; x < x0 + columns; x++)
            for (int b = 0; b < bands; b++)
                put_sample(f, to + (size_t)(y - y0) * row_bytes, (size_t)((x - x0) * bands + b),
                           drawn(y, x, f->planes ? plane : b));
}

static void set_tags(const form *f, TIFF *t) {
    uint16_t extra[MOST];
    const int colour = f->photometric == PHOTOMETRIC_RGB ? 3 : 1;
    for (int i = 0; i < MOST; i++) extra[i] = (uint16_t)f->extra;
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, W);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, H);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, f->bands);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, f->bits);
    TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, f->format);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, f->photometric);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, f->planes ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
    TIFFSetField(t, TIFFTAG_COMPRESSION, f->compression);
    if (f->predictor) TIFFSetField(t, TIFFTAG_PREDICTOR, f->predictor);
    if (f->extra >= 0 && f->bands > colour) TIFFSetField(t, TIFFTAG_EXTRASAMPLES, f->bands - colour, extra);
}

static void write_tiff(const form *f, const char *path, int orientation) {
    TIFF *t = TIFFOpen(path, f->mode);
    assert_non_null(t);
    set_tags(f, t);
    TIFFSetField(t, TIFFTAG_ORIENTATION, orientation);
    if (f->tile)
        TIFFSetField(t, TIFFTAG_TILEWIDTH, TILE), TIFFSetField(t, TIFFTAG_TILELENGTH, TILE);
    else
        TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, 5);
    const size_t bytes = (size_t)(f->tile ? TIFFTileSize(t) : TIFFScanlineSize(t));
    uint8_t *room = malloc(bytes);
    assert_non_null(room);
    for (int plane = 0; plane < (f->planes ? f->bands : 1); plane++)
        for (int y = 0; y < H; y += f->tile ? TILE : 1)
            for (int x = 0; x < (f->tile ? W : 1); x += TILE) {
                memset(room, 0, bytes);
                if (f->tile) {
                    fill(f, room, (size_t)TIFFTileRowSize(t), y, x, H - y < TILE ? H - y : TILE,
                         W - x < TILE ? W - x : TILE, plane);
                    assert_true(TIFFWriteTile(t, room, (uint32_t)x, (uint32_t)y, 0, (uint16_t)plane) > 0);
                } else {
                    fill(f, room, 0, y, 0, 1, W, plane);
                    assert_int_equal(TIFFWriteScanline(t, room, (uint32_t)y, (uint16_t)plane), 1);
                }
            }
    free(room);
    TIFFClose(t);
}

/* --- reading --- */

static hp_reader *open_as(const char *path, const hp_reader_options *o) {
    hp_error err = {0};
    hp_reader *r = NULL;
    if (hp_reader_open(path, o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static double real_at(const hp_pixels *view, int y, int x, int c) {
    const size_t at = ((size_t)y * (size_t)view->w + (size_t)x) * (size_t)view->c + (size_t)c;
    return hp_sample_held(view->type, view->px, at) / hp_sample_full(view->type);
}

/* Equal up to a rounding of the type that holds it. */
static bool close_to(double got, double want) {
    const double scale = want < -1 || want > 1 ? (want < 0 ? -want : want) : 1, apart = got - want;
    return (apart < 0 ? -apart : apart) <= 1.3e-7 * scale;
}

static void holds_all(const form *f, const char *path, const char *what) {
    hp_reader *r = open_as(path, NULL);
    hp_error err = {0};
    hp_pixels view;
    if (hp_reader_window(r, NULL, &view, &err) != HP_OK) fail_msg("%s: %s", what, err.text);
    assert_int_equal(hp_reader_bands(r), f->bands);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < view.c; c++)
                if (!close_to(real_at(&view, y, x, c), expected(f, drawn(y, x, c))))
                    fail_msg("%s: row %d, column %d, band %d: %.9g, not %.9g", what, y, x, c,
                             real_at(&view, y, x, c), expected(f, drawn(y, x, c)));
    hp_reader_close(r);
}

static const char *name_of(const form *f) {
    static char text[160];
    snprintf(text, sizeof text,
             "TIFF %s: %d bits, format %d, %d bands, photometric %d, planes %d, tiles %d, compression %d, "
             "predictor %d",
             f->mode, f->bits, f->format, f->bands, f->photometric, f->planes, f->tile, f->compression,
             f->predictor);
    return text;
}

static void holds_form(const form *f) {
    const char *path = scratch_path("x.tif");
    write_tiff(f, path, ORIENTATION_TOPLEFT);
    holds_all(f, path, name_of(f));
}

/* Every kind of sample in grey, in many bands and by planes, in strips and tiles, of both byte
 * orders and BigTIFF. */
static void samples_of_every_kind_are_those_that_were_written(void **state) {
    (void)state;
    static const int kinds[][2] = {{1, 1},  {2, 1},  {4, 1},  {8, 1},  {16, 1}, {32, 1}, {8, 2},
                                   {16, 2}, {32, 2}, {16, 3}, {32, 3}, {64, 3}, {12, 1}, {10, 1}};
    static const char *const modes[] = {"wl", "wb", "wl8", "wb8"};
    static const int bands[] = {1, 5, MOST};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int n = 0; n < 3; n++)
            for (int how = 0; how < 4; how++) {
                const form f = {modes[(k + (size_t)how) % 4],
                                kinds[k][0],
                                kinds[k][1],
                                bands[n],
                                PHOTOMETRIC_MINISBLACK,
                                how / 2,
                                how % 2,
                                COMPRESSION_NONE,
                                0,
                                n ? 0 : -1};
                holds_form(&f);
            }
}

static void every_compression_and_predictor_keeps_the_samples(void **state) {
    (void)state;
    static const int how[][2] = {{COMPRESSION_LZW, 1},           {COMPRESSION_LZW, 2},
                                 {COMPRESSION_ADOBE_DEFLATE, 1}, {COMPRESSION_ADOBE_DEFLATE, 2},
                                 {COMPRESSION_ADOBE_DEFLATE, 3}, {COMPRESSION_PACKBITS, 0},
                                 {COMPRESSION_ZSTD, 2},          {COMPRESSION_LZMA, 1}};
    static const int kinds[][2] = {{8, 1}, {16, 1}, {16, 2}, {32, 1}, {32, 3}};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (int tile = 0; tile < 2; tile++) {
                const form f = {tile ? "wb" : "wl", kinds[k][0], kinds[k][1], 3, PHOTOMETRIC_RGB, tile, tile,
                                how[i][0],          how[i][1],   -1};
                if ((f.predictor == 3) != (f.format == 3) && f.predictor > 1)
                    continue; /* made for the other kind */
                if (f.predictor == 3 && tile)
                    continue; /* libtiff 4.5 byte-swaps it wrongly in big-endian files */
                if (!TIFFIsCODECConfigured((uint16_t)f.compression)) continue;
                holds_form(&f);
            }
}

static void min_is_white_is_turned_round(void **state) {
    (void)state;
    static const int bits[] = {1, 4, 8, 16};
    for (size_t i = 0; i < 4; i++)
        holds_form(&(form){"w", bits[i], 1, 1, PHOTOMETRIC_MINISWHITE, 0, 0, COMPRESSION_NONE, 0, -1});
}

/* --- which bands --- */

typedef struct choice {
    int bands, photometric, extra, channels; /* the file's; channels: the network's, 0: unknown */
    const char *named;                       /* --bands as digits */
    const char *read;                        /* bands as digits, or a word of the error */
    uint32_t said;
} choice;

static void bands_are_chosen_by_name_or_by_the_networks_channels(void **state) {
    (void)state;
    static const choice table[] = {
        {1, PHOTOMETRIC_MINISBLACK, -1, 3, "", "1"},
        {3, PHOTOMETRIC_RGB, -1, 3, "", "123"},
        {3, PHOTOMETRIC_RGB, -1, 1, "", "123"},
        {4, PHOTOMETRIC_RGB, 2, 3, "", "123", HP_SAID_ALPHA},
        {4, PHOTOMETRIC_RGB, 1, 3, "", "123", HP_SAID_ALPHA | HP_SAID_MULTIPLIED},
        {4, PHOTOMETRIC_RGB, 0, 3, "", "123", HP_SAID_BAND},
        {4, PHOTOMETRIC_RGB, 2, 4, "", "1234"},
        {4, PHOTOMETRIC_RGB, 0, 4, "", "1234"},
        {2, PHOTOMETRIC_MINISBLACK, 2, 3, "", "1", HP_SAID_ALPHA},
        {2, PHOTOMETRIC_MINISBLACK, 2, 2, "", "12"},
        {5, PHOTOMETRIC_MINISBLACK, 0, 5, "", "12345"},
        {5, PHOTOMETRIC_MINISBLACK, 0, 3, "", "has 5 bands"},
        {5, PHOTOMETRIC_RGB, 0, 3, "", "has 5 bands"},
        {5, PHOTOMETRIC_MINISBLACK, 0, 1, "", "has 5 bands"},
        {5, PHOTOMETRIC_MINISBLACK, 0, 3, "531", "531"},
        {5, PHOTOMETRIC_MINISBLACK, 0, 2, "44", "44"},
        {5, PHOTOMETRIC_RGB, 0, 3, "126", "has 5 bands"},
        {5, PHOTOMETRIC_RGB, 0, 3, "12", "has 5 bands"},
        {4, PHOTOMETRIC_RGB, 2, 1, "4", "4"},
        {5, PHOTOMETRIC_RGB, 0, 0, "", "12345"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const choice *c = &table[i];
        for (int planes = 0; planes < 2; planes++) {
            const form f = {"w", 16,      1, c->bands, c->photometric, planes, planes, COMPRESSION_NONE,
                            0,   c->extra};
            hp_reader_options o = {.channels = c->channels, .n_band = (int32_t)strlen(c->named)};
            for (int k = 0; k < o.n_band; k++) o.band[k] = c->named[k] - '0';
            write_tiff(&f, scratch_path("x.tif"), ORIENTATION_TOPLEFT);
            hp_error err = {0};
            hp_reader *r = NULL;
            hp_pixels view;
            const hp_status s = hp_reader_open(scratch_path("x.tif"), &o, &r, &err);
            if (c->read[0] == 'h') {
                assert_int_equal(s, HP_EDATA);
                if (!strstr(err.text, c->read)) fail_msg("row %zu: no '%s' in: %s", i, c->read, err.text);
                continue;
            }
            if (s != HP_OK) fail_msg("row %zu: %s", i, err.text);
            assert_int_equal(hp_reader_window(r, NULL, &view, &err), HP_OK);
            assert_int_equal(view.c, (int)strlen(c->read));
            assert_int_equal(hp_reader_said(r), c->said);
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++)
                    for (int k = 0; k < view.c; k++)
                        assert_true(
                            close_to(real_at(&view, y, x, k), expected(&f, drawn(y, x, c->read[k] - '1'))));
            hp_reader_close(r);
        }
    }
}

/* --- turned --- */

/* TIFF 6.0, Orientation: the side of the visual image at row 0 and column 0. */
static const char SIDES[9][2] = {{0},        {'T', 'L'}, {'T', 'R'}, {'B', 'R'}, {'B', 'L'},
                                 {'L', 'T'}, {'R', 'T'}, {'R', 'B'}, {'L', 'B'}};

/* Where stored row y and column x, counted from their sides, appear. */
static void seen_at(int orientation, int y, int x, int *row, int *column) {
    const int h = orientation > 4 ? W : H, w = orientation > 4 ? H : W, at[2] = {y, x};
    for (int k = 0; k < 2; k++) {
        const char side = SIDES[orientation][k];
        if (side == 'T') *row = at[k];
        if (side == 'B') *row = h - 1 - at[k];
        if (side == 'L') *column = at[k];
        if (side == 'R') *column = w - 1 - at[k];
    }
}

static void is_turned(const char *path, const char *stored, int orientation) {
    hp_error err = {0};
    hp_pixels from, view;
    hp_reader *r = open_as(path, NULL), *flat = open_as(stored, NULL);
    assert_int_equal(hp_reader_window(flat, NULL, &from, &err), HP_OK);
    const hp_pixels size = hp_reader_size(r);
    assert_true(size.h == (orientation > 4 ? W : H) && size.w == (orientation > 4 ? H : W));
    assert_int_equal(hp_reader_window(r, &(hp_crop){3, 2, size.h, size.w - 1}, &view, &err),
                     HP_OK); /* a part first */
    assert_int_equal(hp_reader_window(r, NULL, &view, &err), HP_OK);
    assert_int_equal(hp_reader_said(r) & HP_SAID_TURNED, orientation > 1 ? HP_SAID_TURNED : 0);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < from.c; c++) {
                int row = -1, column = -1;
                seen_at(orientation, y, x, &row, &column);
                if (real_at(&view, row, column, c) != real_at(&from, y, x, c))
                    fail_msg("%s, orientation %d: stored row %d, column %d", path, orientation, y, x);
            }
    hp_reader_close(r);
    hp_reader_close(flat);
}

/* Adds Exif data with only this number to a PNG or JPEG. */
static void with_exif(const char *from, const char *to, bool png, bool little, int orientation) {
    size_t n;
    unsigned char *bytes = scratch_read(from, &n);
    const uint8_t o = (uint8_t)orientation;
    const uint8_t ii[] = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3,
                          0,   1,   0,  0, 0, o, 0, 0, 0, 0, 0,    0, 0},
                  mm[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0,
                          3,   0,   0, 0,  1, 0, o, 0, 0, 0, 0, 0,    0};
    const uint8_t *exif = little ? ii : mm;
    uint8_t head[12 + sizeof ii + 4] = {0xff, 0xe1, 0, 2 + 6 + sizeof ii, 'E', 'x', 'i', 'f', 0, 0};
    const size_t at = png ? 33 : 2; /* after IHDR; after SOI */
    size_t size = 10 + sizeof ii;
    memcpy(head + 10, exif, sizeof ii);
    if (png) {
        memcpy(head,
               "\0\0\0\x1a"
               "eXIf",
               8);
        memcpy(head + 8, exif, sizeof ii);
        const uint32_t crc = (uint32_t)crc32(0, head + 4, 4 + sizeof ii);
        for (int i = 0; i < 4; i++) head[8 + sizeof ii + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        size = 12 + sizeof ii;
    }
    unsigned char *all = malloc(n + size);
    assert_non_null(all);
    memcpy(all, bytes, at);
    memcpy(all + at, head, size);
    memcpy(all + at + size, bytes + at, n - at);
    FILE *f = fopen(to, "wb");
    assert_true(f && fwrite(all, 1, n + size, f) == n + size);
    fclose(f);
    free(all);
    free(bytes);
}

static void images_are_turned_as_their_orientation_says(void **state) {
    (void)state;
    static uint8_t px[H * W * 3];
    char from[SCRATCH_PATH], to[SCRATCH_PATH];
    for (int i = 0; i < H * W * 3; i++) px[i] = (uint8_t)drawn(0, i, 0);
    for (int orientation = 1; orientation <= 8; orientation++) {
        for (int bits = 8; bits <= 16; bits += 8) {
            const form f = {"w", bits, 1, 3, PHOTOMETRIC_RGB, 0, bits == 16, COMPRESSION_LZW, 0, -1};
            snprintf(from, sizeof from, "%s", scratch_path("flat.tif"));
            snprintf(to, sizeof to, "%s", scratch_path("turned.tif"));
            write_tiff(&f, from, ORIENTATION_TOPLEFT);
            write_tiff(&f, to, orientation);
            is_turned(to, from, orientation);
        }
        for (int png = 0; png < 2; png++) {
            snprintf(from, sizeof from, "%s", scratch_path(png ? "flat.png" : "flat.jpg"));
            snprintf(to, sizeof to, "%s", scratch_path(png ? "turned.png" : "turned.jpg"));
            png ? make_png(from, H, W, 3, px) : make_jpeg(from, H, W, 3, px, 90);
            with_exif(from, to, png, orientation % 2, orientation);
            is_turned(to, from, orientation);
        }
    }
}

/* --- the same picture in each format --- */

/* PNG of every type and depth against the numbers written: packed by make_png_as, 16 bits big-endian. */
static void png_of_every_depth_holds_what_was_written(void **state) {
    (void)state;
    static const int types[][3] = {{PNG_COLOR_TYPE_GRAY, 1, 1},        {PNG_COLOR_TYPE_GRAY, 2, 1},
                                   {PNG_COLOR_TYPE_GRAY, 4, 1},        {PNG_COLOR_TYPE_GRAY, 8, 1},
                                   {PNG_COLOR_TYPE_GRAY, 16, 1},       {PNG_COLOR_TYPE_RGB, 8, 3},
                                   {PNG_COLOR_TYPE_RGB, 16, 3},        {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 2},
                                   {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 2}, {PNG_COLOR_TYPE_RGB_ALPHA, 8, 4},
                                   {PNG_COLOR_TYPE_RGB_ALPHA, 16, 4}};
    static uint8_t px[H * W * 4 * 2];
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (int interlaced = 0; interlaced < 2; interlaced++)
            for (int all = 0; all < 2; all++) {
                const int bits = types[k][1], bands = types[k][2], n = H * W * bands, most = (1 << bits) - 1;
                const int colour = bands > 2 ? 3 : 1;
                for (int i = 0; i < n; i++) {
                    const int v = (int)(drawn(1, i, 3) & (uint64_t)most);
                    if (bits == 16)
                        px[2 * i] = (uint8_t)(v >> 8), px[2 * i + 1] = (uint8_t)v;
                    else
                        px[i] = (uint8_t)v;
                }
                make_png_as(scratch_path("x.png"), H, W, types[k][0], bits, interlaced, px);
                const hp_reader_options o = {.channels = all ? bands : colour};
                hp_reader *r = open_as(scratch_path("x.png"), &o);
                hp_pixels view;
                assert_int_equal(hp_reader_window(r, NULL, &view, NULL), HP_OK);
                assert_int_equal(view.c, all ? bands : colour);
                assert_int_equal(view.type, bits == 16 ? HP_SAMPLE_U16 : HP_SAMPLE_U8);
                for (int i = 0; i < H * W; i++)
                    for (int c = 0; c < view.c; c++) {
                        const int at = i * bands + c,
                                  v = bits == 16 ? px[2 * at] << 8 | px[2 * at + 1] : px[at];
                        assert_true(close_to(real_at(&view, i / W, i % W, c), (double)v / most));
                    }
                hp_reader_close(r);
            }
}

typedef struct refusal {
    form f;
    const char *word;
} refusal;

/* Unsupported files are refused by name. */
static void what_cannot_be_read_is_refused_by_name(void **state) {
    (void)state;
    static const refusal table[] = {
        {{"w", 64, 1, 1, PHOTOMETRIC_MINISBLACK, 0, 0, COMPRESSION_NONE, 0, -1}, "64-bit unsigned"},
        {{"w", 32, 3, 1, PHOTOMETRIC_MINISWHITE, 0, 0, COMPRESSION_NONE, 0, -1}, "least is white"},
        {{"w", 8, 1, 2, PHOTOMETRIC_RGB, 0, 0, COMPRESSION_NONE, 0, -1}, "fewer than three"},
        {{"w", 8, 1, 1, PHOTOMETRIC_MASK, 0, 0, COMPRESSION_NONE, 0, -1}, "PhotometricInterpretation 4"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        hp_error err = {0};
        hp_reader *r = NULL;
        write_tiff(&table[i].f, scratch_path("x.tif"), ORIENTATION_TOPLEFT);
        assert_int_equal(hp_reader_open(scratch_path("x.tif"), NULL, &r, &err), HP_EDATA);
        if (!strstr(err.text, table[i].word)) fail_msg("no '%s' in: %s", table[i].word, err.text);
    }
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(samples_of_every_kind_are_those_that_were_written),
        IN_SCRATCH(every_compression_and_predictor_keeps_the_samples),
        IN_SCRATCH(min_is_white_is_turned_round),
        IN_SCRATCH(bands_are_chosen_by_name_or_by_the_networks_channels),
        IN_SCRATCH(images_are_turned_as_their_orientation_says),
        IN_SCRATCH(png_of_every_depth_holds_what_was_written),
        IN_SCRATCH(what_cannot_be_read_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
