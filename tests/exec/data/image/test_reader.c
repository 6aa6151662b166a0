/* test_reader.c - files read window by window. Any walk of windows gives the whole's pixels. A pass from top
 * to bottom reads no part of the file twice. No more is held than was asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/data/image/reader.h"
#include "base/rng.h"
#include "tests/support/exec/read_image.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/make_images.h"

/* Odd, and not a multiple of a strip or a tile. */
enum { H = 211, W = 157 };

static uint8_t px[H * W * 3];

static void noise(uint64_t seed) {
    for (int i = 0; i < H * W * 3; i++) px[i] = (uint8_t)hp_rng_below(seed, 1, (uint64_t)i, 256);
}

static hp_reader *open_ok(const char *path) {
    hp_error err = {0};
    hp_reader *r = NULL;
    if (hp_reader_open(path, NULL, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static int32_t draw(uint64_t k, uint64_t what, int32_t n) {
    return (int32_t)hp_rng_below(5, k, what, (uint64_t)n);
}

/* Compares window `w` of an open reader with the whole image, (h, w, c). */
static void holds(hp_reader *r, const hp_crop *w, const uint8_t *whole) {
    hp_error err = {0};
    hp_pixels view;
    if (hp_reader_window(r, w, &view, &err) != HP_OK) fail_msg("%s", err.text);
    assert_true(hp_crop_within(w, &view.window));
    const size_t c = hp_pixel_bytes(view.c, view.type), n = (size_t)hp_crop_columns(w) * c;
    for (int32_t y = w->y0; y < w->y1; y++)
        assert_memory_equal(hp_pixels_row(&view, y) + (size_t)(w->x0 - view.window.x0) * c,
                            whole + ((size_t)y * (size_t)view.w + (size_t)w->x0) * c, n);
}

/* A walk: mostly down with some overlap, sometimes other columns or back to anywhere. */
static void walk(const char *path, int c) {
    hp_image whole = {0};
    hp_error err = {0};
    if (read_window(path, NULL, &whole, &err) != HP_OK) fail_msg("%s", err.text);
    assert_true(whole.h == H && whole.w == W && whole.c == c);
    hp_reader *r = open_ok(path);
    hp_crop w = {0, 0, 30, W};
    for (uint64_t k = 0; k < 150; k++) {
        const int32_t rows = 1 + draw(k, 1, 40), what = draw(k, 2, 10);
        w.y0 = what == 0 ? draw(k, 3, H) : w.y1 - (w.y1 > 9 ? draw(k, 4, 10) : 0);
        if (w.y0 >= H) w.y0 = 0;
        w.y1 = w.y0 + rows < H ? w.y0 + rows : H;
        if (what == 1 || what == 2) w.x0 = draw(k, 5, W), w.x1 = w.x0 + 1 + draw(k, 6, W - w.x0);
        holds(r, &w, whole.px);
    }
    hp_reader_close(r);
    hp_image_free(&whole);
}

static void turn_round(const char *path) {
    TIFF *t = TIFFOpen(path, "r+");
    TIFFSetField(t, TIFFTAG_ORIENTATION, ORIENTATION_BOTLEFT);
    assert_int_equal(TIFFRewriteDirectory(t), 1);
    TIFFClose(t);
}

static void any_walk_of_windows_holds_the_wholes_pixels(void **state) {
    (void)state;
    noise(9);
    for (int c = 1; c <= 3; c += 2) {
        make_png(scratch_path("x.png"), H, W, c, px);
        make_png_as(scratch_path("i.png"), H, W, c == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8, true,
                    px);
        make_jpeg(scratch_path("x.jpg"), H, W, c, px, 75);
        make_jpeg_as(scratch_path("p.jpg"), H, W, c, px, 75, true);
        make_tiff(scratch_path("x.tif"), H, W, c, px, 8, 0);
        make_tiff(scratch_path("y.tif"), H, W, c, px, 16, 0);
        make_tiff_tiled(scratch_path("z.tif"), H, W, c, px, 16);
        make_tiff_tiled_as(scratch_path("big.tif"), "w8", H, W, c, px, 32);
        make_tiff(scratch_path("m.tif"), H, W, c, px, 8, 0);
        turn_round(scratch_path("m.tif"));
        static const char *const names[] = {"x.png", "i.png", "x.jpg",   "p.jpg", "x.tif",
                                            "y.tif", "z.tif", "big.tif", "m.tif"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) walk(scratch_path(names[i]), c);
    }
}

/* --- once --- */

/* The strip [y, y + 30) of full width. */
static hp_crop strip(int32_t y) {
    return (hp_crop){y, 0, y + 30 < H ? y + 30 : H, W};
}

/* Destroys the file's head after the first strip: a continuing pass does not notice; going back fails. */
static void reads_on_without_its_head(const char *path) {
    static const uint8_t zeros[100];
    hp_image whole = {0};
    hp_error err = {0};
    hp_pixels view;
    assert_int_equal(read_window(path, NULL, &whole, NULL), HP_OK);
    hp_reader *r = open_ok(path);
    const hp_crop first = strip(0);
    holds(r, &first, whole.px);
    scratch_put(path, 0, zeros, sizeof zeros);
    for (int32_t y = 20; y + 10 < H; y += 20) {
        const hp_crop w = strip(y);
        holds(r, &w, whole.px);
        assert_true(hp_reader_bytes(r) <= (size_t)30 * W * 3);
    }
    assert_int_equal(hp_reader_window(r, &first, &view, &err), HP_EDATA);
    assert_non_null(strstr(err.text, path));
    hp_reader_close(r);
    hp_image_free(&whole);
}

static void a_pass_of_strips_decodes_every_row_once(void **state) {
    (void)state;
    noise(3);
    make_png(scratch_path("x.png"), H, W, 3, px);
    make_jpeg(scratch_path("x.jpg"), H, W, 3, px, 75);
    reads_on_without_its_head(scratch_path("x.png"));
    reads_on_without_its_head(scratch_path("x.jpg"));
}

/* Destroys the tiles that lie entirely above row y. */
static void destroy_tiles_above(const char *path, int32_t y, int tile) {
    static const uint8_t zeros[64];
    TIFF *t = TIFFOpen(path, "r");
    uint64_t at[1024];
    const uint32_t per_row = (W + (uint32_t)tile - 1) / (uint32_t)tile,
                   n = (uint32_t)y / (uint32_t)tile * per_row;
    for (uint32_t i = 0; i < n; i++) at[i] = TIFFGetStrileOffset(t, i);
    TIFFClose(t);
    for (uint32_t i = 0; i < n; i++) scratch_put(path, (long)at[i], zeros, sizeof zeros);
}

/* Every tile is destroyed as soon as a window has passed it. */
static void a_pass_of_strips_decodes_every_tile_once(void **state) {
    (void)state;
    const char *path = scratch_path("x.tif");
    noise(4);
    make_tiff_tiled(path, H, W, 3, px, 16);
    hp_reader *r = open_ok(path);
    for (int32_t y = 0; y + 10 < H; y += 20) {
        const hp_crop w = strip(y);
        holds(r, &w, px);
        destroy_tiles_above(path, w.y1 + 15, 16);
        assert_true(hp_reader_bytes(r) <= (size_t)30 * W * 3 + (size_t)16 * W * 4);
    }
    const hp_crop first = strip(0);
    hp_pixels view;
    assert_int_equal(hp_reader_window(r, &first, &view, NULL), HP_EDATA);
    hp_reader_close(r);
}

/* --- large --- */

/* 4.9e9 pixels, of which the file has one tile: the others are never requested. */
static void only_the_tiles_that_a_window_touches_are_read(void **state) {
    (void)state;
    enum { SIDE = 70000, TILE = 256, LAST = SIDE / TILE * TILE };
    static uint8_t tile[TILE * TILE];
    for (int i = 0; i < TILE * TILE; i++) tile[i] = (uint8_t)(i % 251);
    TIFF *t = TIFFOpen(scratch_path("huge.tif"), "w8");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, SIDE);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, SIDE);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(t, TIFFTAG_TILEWIDTH, TILE);
    TIFFSetField(t, TIFFTAG_TILELENGTH, TILE);
    assert_true(TIFFWriteTile(t, tile, LAST, LAST, 0, 0) > 0);
    TIFFClose(t);
    hp_reader *r = open_ok(scratch_path("huge.tif"));
    hp_error err = {0};
    hp_pixels view;
    const hp_crop w = {LAST + 3, LAST + 5, SIDE, SIDE}, none = {0, 0, 10, 10};
    assert_int_equal(hp_reader_window(r, NULL, &view, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "take more tiles"));
    assert_int_equal(hp_reader_window(r, &none, &view, &err), HP_EDATA);
    if (hp_reader_window(r, &w, &view, &err) != HP_OK) fail_msg("%s", err.text);
    for (int32_t y = w.y0; y < w.y1; y++)
        assert_memory_equal(hp_pixels_row(&view, y), tile + (y - LAST) * TILE + 5, SIDE - LAST - 5);
    hp_reader_close(r);
}

/* One strip of 25 million pixels, more than may be cached: any part of it is decoded by itself. */
static void a_window_within_one_large_strip_is_read(void **state) {
    (void)state;
    enum { SIDE = 5000 };
    uint8_t row[SIDE];
    TIFF *t = TIFFOpen(scratch_path("strip.tif"), "w");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, SIDE);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, SIDE);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(t, TIFFTAG_COMPRESSION, COMPRESSION_PACKBITS);
    TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, SIDE);
    for (int y = 0; y < SIDE; y++) {
        memset(row, y % 253, sizeof row);
        row[77] = 254;
        assert_int_equal(TIFFWriteScanline(t, row, (uint32_t)y, 0), 1);
    }
    TIFFClose(t);
    hp_reader *r = open_ok(scratch_path("strip.tif"));
    static const int32_t at[][2] = {{0, 9}, {5, 700}, {690, 1400}, {4990, 5000}, {17, 18}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        const hp_crop w = {at[i][0], 70, at[i][1], 80};
        hp_pixels view;
        assert_int_equal(hp_reader_window(r, &w, &view, NULL), HP_OK);
        assert_true(hp_reader_bytes(r) <= (size_t)710 * SIDE * 5);
        for (int32_t y = w.y0; y < w.y1; y++)
            for (int x = 70; x < 80; x++)
                assert_int_equal(hp_pixels_row(&view, y)[x - view.window.x0], x == 77 ? 254 : y % 253);
    }
    hp_reader_close(r);
}

/* --- damage --- */

enum { SMALL_H = 13, SMALL_W = 17 };

/* Every error has a message, and whatever opens has a permitted size; sanitizers check the rest. */
static void read_damaged(const char *path) {
    hp_error err = {0};
    hp_reader *r = NULL;
    hp_pixels view;
    hp_status s = hp_reader_open(path, NULL, &r, &err);
    for (int32_t y = 0; s == HP_OK && y < hp_reader_size(r).h; y += 5) {
        const hp_pixels size = hp_reader_size(r);
        if ((int64_t)size.h * size.w > 1 << 20) break;
        const hp_crop w = {y ? y - 1 : 0, 0, y + 5 < size.h ? y + 5 : size.h, size.w};
        s = hp_reader_window(r, &w, &view, &err);
    }
    assert_true(s == HP_OK || (s == HP_EDATA && err.text[0]));
    hp_reader_close(r);
}

static const char *make_small(int kind) {
    static const char *const names[] = {"s.png", "i.png", "s.jpg", "p.jpg", "s.tif", "t.tif", "b.tif"};
    const char *path = scratch_path(names[kind]);
    for (int i = 0; i < SMALL_H * SMALL_W * 3; i++) px[i] = (uint8_t)(40 + i % 100 + i / 60);
    if (kind == 0) make_png(path, SMALL_H, SMALL_W, 3, px);
    if (kind == 1) make_png_as(path, SMALL_H, SMALL_W, PNG_COLOR_TYPE_RGB, 8, true, px);
    if (kind == 2) make_jpeg(path, SMALL_H, SMALL_W, 3, px, 90);
    if (kind == 3) make_jpeg_as(path, SMALL_H, SMALL_W, 3, px, 90, true);
    if (kind == 4) make_tiff(path, SMALL_H, SMALL_W, 3, px, 8, 0);
    if (kind == 5) make_tiff_tiled(path, SMALL_H, SMALL_W, 3, px, 16);
    if (kind == 6) make_tiff_tiled_as(path, "w8", SMALL_H, SMALL_W, 1, px, 16);
    return path;
}

/* In place, because rewriting a file thousands of times would wait for the disk. */
static void every_flipped_byte_and_every_truncation_is_survived(void **state) {
    (void)state;
    static const uint8_t flips[] = {1, 128, 255};
    for (int kind = 0; kind < 7; kind++) {
        size_t n;
        const char *path = make_small(kind);
        unsigned char *bytes = scratch_read(path, &n);
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < sizeof flips; i++) {
                const uint8_t wrong = bytes[k] ^ flips[i];
                scratch_put(path, (long)k, &wrong, 1);
                read_damaged(path);
                scratch_put(path, (long)k, &bytes[k], 1);
            }
        while (n--) {
            assert_int_equal(truncate(path, (off_t)n), 0);
            read_damaged(path);
        }
        free(bytes);
    }
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(any_walk_of_windows_holds_the_wholes_pixels),
        IN_SCRATCH(a_pass_of_strips_decodes_every_row_once),
        IN_SCRATCH(a_pass_of_strips_decodes_every_tile_once),
        IN_SCRATCH(only_the_tiles_that_a_window_touches_are_read),
        IN_SCRATCH(a_window_within_one_large_strip_is_read),
        IN_SCRATCH(every_flipped_byte_and_every_truncation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
