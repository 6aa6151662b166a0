/* test_slides.c - slides through OpenSlide: a pyramidal TIFF made by libvips. Skipped without
 * vips or OpenSlide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "exec/data/image/reader.h"
#include "base/rng.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/exec/read_sample.h"

enum { H = 411, W = 357 };

static uint8_t px[H * W * 3];

/* A lossless pyramid of smooth colours with some noise; false: it cannot be made or read here. */
static bool make_slide(const char *path) {
    char command[3 * SCRATCH_PATH];
    const char *source = scratch_path("source.png");
    for (int i = 0; i < H * W * 3; i++)
        px[i] =
            (uint8_t)(i / 3 / W / 4 + i / 3 % W / 5 + i % 3 * 20 + (int)hp_rng_below(1, 1, (uint64_t)i, 8));
    make_png(source, H, W, 3, px);
    snprintf(command, sizeof command,
             "vips tiffsave %s %s --tile --pyramid --compression deflate --tile-width 64 --tile-height 64 "
             ">/dev/null 2>&1",
             source, path);
    if (system(command) != 0) {
        print_message("skipped: the package libvips-tools is not installed\n");
        return false;
    }
    const hp_reader_options o = {.slide = true};
    hp_reader *r = NULL;
    const hp_status s = hp_reader_open(path, &o, &r, NULL);
    if (s == HP_OK) hp_reader_close(r);
    if (s == HP_EUNAVAIL) print_message("skipped: built without OpenSlide\n");
    return s != HP_EUNAVAIL;
}

static hp_reader *open_level(const char *path, int32_t level) {
    hp_error err = {0};
    hp_reader *r = NULL;
    const hp_reader_options o = {.slide = true, .level = level};
    if (hp_reader_open(path, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static void same(const hp_pixels *view, const hp_crop *w, const uint8_t *whole) {
    const size_t n = (size_t)hp_crop_columns(w) * 3;
    for (int32_t y = w->y0; y < w->y1; y++)
        assert_memory_equal(hp_pixels_row(view, y) + (size_t)(w->x0 - view->window.x0) * 3,
                            whole + ((size_t)y * (size_t)view->w + (size_t)w->x0) * 3, n);
}

static void windows_of(hp_reader *r, const uint8_t *whole) {
    const hp_pixels size = hp_reader_size(r);
    for (uint64_t k = 0; k < 60; k++) {
        hp_crop w = {(int32_t)hp_rng_below(2, 1, k, (uint64_t)size.h),
                     (int32_t)hp_rng_below(2, 2, k, (uint64_t)size.w), 0, 0};
        w.y1 = w.y0 + 1 + (int32_t)hp_rng_below(2, 3, k, (uint64_t)(size.h - w.y0));
        w.x1 = w.x0 + 1 + (int32_t)hp_rng_below(2, 4, k, (uint64_t)(size.w - w.x0));
        hp_pixels view;
        assert_int_equal(hp_reader_window(r, &w, &view, NULL), HP_OK);
        same(&view, &w, whole);
    }
}

static void level_0_is_the_image(void **state) {
    (void)state;
    if (!make_slide(scratch_path("x.svs"))) skip();
    hp_reader *by_name = NULL, *by_option = open_level(scratch_path("x.svs"), 0);
    assert_int_equal(hp_reader_open(scratch_path("x.svs"), NULL, &by_name, NULL), HP_OK);
    const hp_pixels size = hp_reader_size(by_name);
    assert_true(size.h == H && size.w == W && size.c == 3);
    assert_int_equal(hp_reader_level(by_name, 1.9), 0);
    assert_int_equal(hp_reader_level(by_name, 2.1), 1);
    windows_of(by_name, px);
    windows_of(by_option, px);
    hp_reader_close(by_name);
    hp_reader_close(by_option);
}

/* libvips halves by averaging 2 x 2 pixels, so the level must match that up to rounding. */
static void level_1_is_half_as_large_whatever_the_window(void **state) {
    (void)state;
    if (!make_slide(scratch_path("x.tif"))) skip();
    hp_reader *r = open_level(scratch_path("x.tif"), 1);
    hp_pixels view;
    assert_int_equal(hp_reader_window(r, NULL, &view, NULL), HP_OK);
    assert_true(view.h == H / 2 && view.w == W / 2);
    assert_int_equal(hp_reader_level(r, 1.0), 1);
    uint8_t *whole = malloc((size_t)view.h * (size_t)view.w * 3);
    memcpy(whole, view.px, (size_t)view.h * (size_t)view.w * 3);
    double off = 0;
    for (int y = 0; y < view.h; y++)
        for (int x = 0; x < view.w * 3; x++) {
            const uint8_t *p = px + (2 * y * W + x / 3 * 2) * 3 + x % 3;
            off += fabs(whole[y * view.w * 3 + x] - (p[0] + p[3] + p[3 * W] + p[3 * W + 3]) / 4.0);
        }
    assert_true(off / (view.h * view.w * 3) < 1.0);
    hp_reader_close(r);
    r = open_level(scratch_path("x.tif"), 1);
    windows_of(r, whole);
    hp_reader_close(r);
    free(whole);
}

static void a_slide_is_data_by_its_name_or_with_a_level(void **state) {
    (void)state;
    if (!make_slide(scratch_path("x.tif"))) skip();
    char name[SCRATCH_PATH + 32];
    snprintf(name, sizeof name, "slide:%s,level=1", scratch_path("x.tif"));
    hp_data_options o = hp_data_options_default();
    o.name = name;
    o.split = HP_SPLIT_TEST;
    o.image_h = H / 2, o.image_w = W / 2, o.image_c = 3;
    o.classes = 1;
    hp_error err = {0};
    hp_dataset *d = NULL;
    if (hp_dataset_open(&o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    hp_reader *r = open_level(scratch_path("x.tif"), 1);
    const hp_crop w = {3, 5, 100, 120};
    const hp_box box = {{0, 3, 5, 0}, {1, 100, 120, 3}};
    static uint8_t got[97 * 115 * 3];
    hp_pixels view;
    assert_int_equal(hp_dataset_read(d, 0, &box, HP_U8, got, NULL), HP_OK);
    assert_int_equal(hp_reader_window(r, &w, &view, NULL), HP_OK);
    assert_memory_equal(got, view.px, sizeof got);
    hp_reader_close(r);
    hp_dataset_close(d);
}

static void refused(const char *path, int32_t level, const char *word) {
    hp_error err = {0};
    hp_reader *r = NULL;
    const hp_reader_options o = {.slide = true, .level = level};
    assert_int_equal(hp_reader_open(path, &o, &r, &err), HP_EDATA);
    if (!strstr(err.text, word) || !strstr(err.text, path)) fail_msg("'%s' not in: %s", word, err.text);
}

static void what_is_no_slide_is_refused(void **state) {
    (void)state;
    if (!make_slide(scratch_path("x.tif"))) skip();
    refused(scratch_path("x.tif"), 31, "it has levels 0 to");
    refused(scratch_path("none.svs"), 0, "check the path");
    refused(scratch_write("text.svs", "hello, world", 12), 0, "no slide");
    size_t n;
    unsigned char *bytes = scratch_read(scratch_path("x.tif"), &n);
    refused(scratch_write("cut.svs", bytes, n / 2), 0, "");
    free(bytes);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(level_0_is_the_image),
        IN_SCRATCH(level_1_is_half_as_large_whatever_the_window),
        IN_SCRATCH(a_slide_is_data_by_its_name_or_with_a_level),
        IN_SCRATCH(what_is_no_slide_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
