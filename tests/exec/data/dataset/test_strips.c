/* test_strips.c - a data set read box by box: each file of a batch is read once although they take turns,
 * bytes are the pixels before normalisation, and large images are shrunk in bands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/data/dataset/loader.h"
#include "base/rng.h"
#include "tests/support/exec/read_image.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/exec/read_sample.h"

enum { H = 211, W = 157 };

static uint8_t px[H * W * 3];

static void noise(uint64_t seed) {
    for (int i = 0; i < H * W * 3; i++) px[i] = (uint8_t)hp_rng_below(seed, 1, (uint64_t)i, 256);
}

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

/* A batch of two files, strip by strip: each is read once although they take turns. */
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
        assert_int_equal(hp_dataset_read(before, i, &box, HP_U8, whole[i], NULL), HP_OK);
    }
    for (int32_t y = 0; y + 10 < H; y += 20) {
        const hp_box box = {{0, y, 0, 0}, {2, y + 30 < H ? y + 30 : H, W, 3}};
        const size_t n = (size_t)hp_box_len(&box, HP_AXIS_H) * W * 3;
        hp_error err = {0};
        if (hp_loader_read(l, 0, 0, got, HP_U8, &box, NULL, NULL, &err) != HP_OK) fail_msg("%s", err.text);
        for (int i = 0; i < 2; i++) {
            assert_memory_equal(got + (size_t)i * n, whole[i] + (size_t)y * W * 3, n);
            if (y == 0) scratch_put(scratch_path(names[i]), 0, whole[0], 64);
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

/* Shrunk from more pixels than a band of the source may have: the strips of the result equal the whole's. */
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
    for (int32_t y = 0; y < TO; y++) { /* row by row: no row needs more than a band */
        const hp_crop row = {y, 0, y + 1, TO};
        assert_int_equal(resize_pixels(&fit, &source, &row, &want, NULL), HP_OK);
        memcpy(whole + (size_t)y * TO * 3, want.px, TO * 3);
    }
    const hp_crop all = {0, 0, TO, TO};
    assert_int_equal(resize_pixels(&fit, &source, &all, &want, NULL), HP_OK);
    assert_memory_equal(want.px, whole, TO * TO * 3);
    for (int32_t y = 0; y < TO; y += 33) {
        const hp_box box = {{0, y, 0, 0}, {1, y + 40 < TO ? y + 40 : TO, TO, 3}};
        assert_int_equal(hp_dataset_read(d, 0, &box, HP_U8, part, NULL), HP_OK);
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
        IN_SCRATCH(the_files_of_a_batch_are_each_read_once),
        IN_SCRATCH(bytes_are_the_pixels_before_normalisation),
        IN_SCRATCH(a_large_image_is_shrunk_strip_by_strip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
