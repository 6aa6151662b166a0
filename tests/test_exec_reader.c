/* test_exec_reader.c - files read window by window: any walk of windows holds the whole's pixels, a pass from
 * top to bottom reads no part of the file twice, and what is held is what was asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/data/loader.h"
#include "exec/data/reader.h"
#include "plan/base/rng.h"
#include "data_files.h"
#include "make_images.h"
#include "read_sample.h"

/* Odd, and no multiple of a strip or a tile. */
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

/* Window `w` of an open reader against the whole image, (h, w, c). */
static void holds(hp_reader *r, const hp_crop *w, const uint8_t *whole) {
    hp_error err = {0};
    hp_pixels view;
    if (hp_reader_window(r, w, &view, &err) != HP_OK) fail_msg("%s", err.text);
    assert_true(hp_crop_within(w, &view.window));
    const size_t c = (size_t)view.c, n = (size_t)hp_crop_columns(w) * c;
    for (int32_t y = w->y0; y < w->y1; y++)
        assert_memory_equal(hp_pixels_row(&view, y) + (size_t)(w->x0 - view.window.x0) * c,
                            whole + ((size_t)y * (size_t)view.w + (size_t)w->x0) * c, n);
}

/* A walk: mostly down with some overlap, now and then other columns or back to anywhere. */
static void walk(const char *path, int c) {
    hp_image whole = {0};
    hp_error err = {0};
    if (hp_image_read(path, NULL, &whole, &err) != HP_OK) fail_msg("%s", err.text);
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

static void put_bytes(const char *path, long at, const void *bytes, size_t n) {
    FILE *f = fopen(path, "rb+");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The strip [y, y + 30) of full width. */
static hp_crop strip(int32_t y) {
    return (hp_crop){y, 0, y + 30 < H ? y + 30 : H, W};
}

/* Once the first strip is read, the file's head is destroyed: a pass that goes on does not notice, going back
 * fails. */
static void reads_on_without_its_head(const char *path) {
    static const uint8_t zeros[100];
    hp_image whole = {0};
    hp_error err = {0};
    hp_pixels view;
    assert_int_equal(hp_image_read(path, NULL, &whole, NULL), HP_OK);
    hp_reader *r = open_ok(path);
    const hp_crop first = strip(0);
    holds(r, &first, whole.px);
    put_bytes(path, 0, zeros, sizeof zeros);
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

/* The tiles of all rows above y that lie wholly above it. */
static void destroy_tiles_above(const char *path, int32_t y, int tile) {
    static const uint8_t zeros[64];
    TIFF *t = TIFFOpen(path, "r");
    uint64_t at[1024];
    const uint32_t per_row = (W + (uint32_t)tile - 1) / (uint32_t)tile,
                   n = (uint32_t)y / (uint32_t)tile * per_row;
    for (uint32_t i = 0; i < n; i++) at[i] = TIFFGetStrileOffset(t, i);
    TIFFClose(t);
    for (uint32_t i = 0; i < n; i++) put_bytes(path, (long)at[i], zeros, sizeof zeros);
}

/* Every tile is destroyed as soon as a window has touched it. */
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

/* 4.9e9 pixels, of which the file has one tile: the others are not asked for. */
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

/* One strip of 25 million pixels, more than is kept of one: any part of it is decoded by itself. */
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

/* --- data sets --- */

static hp_data_options options(const char *name, int h, int w) {
    hp_data_options o = hp_data_options_default();
    o.name = name;
    o.split = HP_SPLIT_TEST;
    o.image_h = h;
    o.image_w = w;
    o.image_c = 3;
    o.classes = 2;
    return o;
}

static hp_dataset *dataset(const hp_data_options *o) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    if (hp_dataset_open(o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

/* A batch of two files, strip by strip: each is read once, although they take turns. */
static void the_files_of_a_batch_are_each_read_once(void **state) {
    (void)state;
    static const char *const names[] = {"test/a/0.png", "test/a/1.jpg"};
    static uint8_t whole[2][H * W * 3];
    static uint8_t got[2 * 30 * W * 3];
    noise(6);
    make_png(scratch_path(names[0]), H, W, 3, px);
    make_jpeg(scratch_path(names[1]), H, W, 3, px, 90);
    const hp_data_options o = options(scratch, H, W);
    const hp_program p = {.dtype = HP_F32, .dp = 1, .micro = 1, .batch = 2, .micro_batch = 2};
    hp_dataset *d = dataset(&o), *before = dataset(&o);
    hp_loader *l = NULL;
    assert_int_equal(hp_loader_open(&(hp_loader_options){d, &p, 0, false, true, 0}, &l, NULL), HP_OK);
    for (int i = 0; i < 2; i++) {
        const hp_box box = whole_image(before);
        assert_int_equal(hp_dataset_bytes(before, i, &box, whole[i], NULL), HP_OK);
    }
    for (int32_t y = 0; y + 10 < H; y += 20) {
        const hp_crop w = strip(y);
        const hp_box box = {{0, w.y0, 0, 0}, {2, w.y1, W, 3}};
        const size_t n = (size_t)hp_crop_rows(&w) * W * 3;
        hp_error err = {0};
        if (hp_loader_fill_typed(l, 0, 0, got, HP_U8, &box, NULL, NULL, &err) != HP_OK)
            fail_msg("%s", err.text);
        for (int i = 0; i < 2; i++) {
            assert_memory_equal(got + (size_t)i * n, whole[i] + (size_t)y * W * 3, n);
            if (y == 0) put_bytes(scratch_path(names[i]), 0, whole[0], 64);
        }
    }
    hp_loader_close(l);
    hp_dataset_close(d);
    hp_dataset_close(before);
}

/* What the network sees is a function of the byte and its channel: (v / 255 - mean) / std. */
static void bytes_are_the_pixels_before_normalisation(void **state) {
    (void)state;
    noise(7);
    make_png(scratch_path("x.png"), H, W, 3, px);
    static const int sizes[][3] = {{H, W, 3}, {50, 40, 3}, {H, W, 1}, {300, 200, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        hp_data_options o = options(scratch_path("x.png"), sizes[i][0], sizes[i][1]);
        o.image_c = sizes[i][2];
        for (int c = 0; c < 3; c++) o.mean[c] = 0.1 * (c + 1), o.std[c] = 0.3 + c;
        hp_dataset *d = dataset(&o);
        const hp_box box = {{0, 7, 3, 0}, {1, 45, 39, o.image_c}};
        const size_t n = (size_t)hp_box_elems(&box);
        uint8_t *bytes = malloc(n);
        float *x = malloc(n * sizeof *x);
        double *wide = malloc(n * sizeof *wide);
        assert_int_equal(hp_dataset_read(d, 0, &box, HP_U8, bytes, NULL), HP_OK);
        assert_int_equal(hp_dataset_read(d, 0, &box, HP_F32, x, NULL), HP_OK);
        assert_int_equal(hp_dataset_read(d, 0, &box, HP_F64, wide, NULL), HP_OK);
        for (size_t k = 0; k < n; k++) {
            const size_t c = k % (size_t)o.image_c;
            assert_true(x[k] == (float)((bytes[k] / 255.0 - o.mean[c]) / o.std[c]));
            assert_true(wide[k] == (double)x[k]);
        }
        if (i == 0) assert_memory_equal(bytes, px + (7 * W + 3) * 3, 36 * 3);
        free(wide);
        free(x);
        free(bytes);
        hp_dataset_close(d);
    }
}

/* Shrunk from more pixels than one band of the source has: the strips of the result are the whole's. */
static void a_large_image_is_shrunk_strip_by_strip(void **state) {
    (void)state;
    enum { SIDE = 2300, TO = 190 };
    uint8_t *large = malloc((size_t)SIDE * SIDE * 3), *whole = malloc((size_t)TO * TO * 3), part[40 * TO * 3];
    for (int i = 0; i < SIDE * SIDE * 3; i++) large[i] = (uint8_t)(i * 7 + i / 5000 + i % 11 * 20);
    make_tiff_tiled(scratch_path("x.tif"), SIDE, SIDE, 3, large, 256);
    const hp_data_options o = options(scratch_path("x.tif"), TO, TO);
    hp_dataset *d = dataset(&o);
    hp_image want = {0};
    const hp_pixels source = {SIDE, SIDE, 3, {0, 0, SIDE, SIDE}, large};
    const hp_resize fit = {SIDE, SIDE, TO, TO, TO, TO};
    for (int32_t y = 0; y < TO; y++) { /* row by row: no row takes more than a band */
        const hp_crop row = {y, 0, y + 1, TO};
        assert_int_equal(hp_image_resize(&fit, &source, &row, &want, NULL), HP_OK);
        memcpy(whole + (size_t)y * TO * 3, want.px, TO * 3);
    }
    const hp_crop all = {0, 0, TO, TO};
    assert_int_equal(hp_image_resize(&fit, &source, &all, &want, NULL), HP_OK);
    assert_memory_equal(want.px, whole, TO * TO * 3);
    for (int32_t y = 0; y < TO; y += 33) {
        const hp_box box = {{0, y, 0, 0}, {1, y + 40 < TO ? y + 40 : TO, TO, 3}};
        assert_int_equal(hp_dataset_bytes(d, 0, &box, part, NULL), HP_OK);
        assert_memory_equal(part, whole + (size_t)y * TO * 3, (size_t)hp_box_elems(&box));
    }
    hp_dataset_close(d);
    hp_image_free(&want);
    free(whole);
    free(large);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(any_walk_of_windows_holds_the_wholes_pixels),
        IN_SCRATCH(a_pass_of_strips_decodes_every_row_once),
        IN_SCRATCH(a_pass_of_strips_decodes_every_tile_once),
        IN_SCRATCH(only_the_tiles_that_a_window_touches_are_read),
        IN_SCRATCH(a_window_within_one_large_strip_is_read),
        IN_SCRATCH(the_files_of_a_batch_are_each_read_once),
        IN_SCRATCH(bytes_are_the_pixels_before_normalisation),
        IN_SCRATCH(a_large_image_is_shrunk_strip_by_strip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
