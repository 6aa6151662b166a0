/* test_patches.c - patch-based classification: where tissue is, which patches are taken, their pixels, and
 * their combined classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "exec/data/slide/patches.h"
#include "exec/data/slide/votes.h"
#include "base/rng.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/exec/read_sample.h"

/* A slide: white glass with a disc of tissue. */
enum { H = 700, W = 900, CY = 330, CX = 520, RADIUS = 240 };

static uint8_t px[H * W * 3];

static bool in_disc(int y, int x) {
    return (y - CY) * (y - CY) + (x - CX) * (x - CX) < RADIUS * RADIUS;
}

static void draw_slide(int c) {
    static const uint8_t glass[] = {244, 243, 245}, tissue[] = {190, 110, 170};
    for (int i = 0; i < H * W * c; i++) {
        const bool on = in_disc(i / c / W, i / c % W);
        px[i] = (uint8_t)((on ? tissue : glass)[c == 1 ? 1 : i % c] +
                          (int)hp_rng_below(4, 1, (uint64_t)i, 9) - 4);
    }
}

/* Share of the window that the disc covers, counted pixel by pixel. */
static double disc_share(const hp_crop *w) {
    int on = 0;
    for (int y = w->y0; y < w->y1; y++)
        for (int x = w->x0; x < w->x1; x++) on += in_disc(y, x);
    return (double)on / ((double)hp_crop_rows(w) * hp_crop_columns(w));
}

/* --- threshold --- */

/* Between-class variance by its definition. */
static double variance(const int64_t count[256], int t) {
    double n[2] = {0}, sum[2] = {0};
    for (int v = 0; v < 256; v++) n[v > t] += (double)count[v], sum[v > t] += (double)count[v] * v;
    if (n[0] == 0 || n[1] == 0) return 0;
    const double apart = sum[0] / n[0] - sum[1] / n[1], all = n[0] + n[1];
    return n[0] / all * n[1] / all * apart * apart;
}

static void otsu_separates_best(void **state) {
    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        int64_t count[256] = {0};
        for (uint64_t i = 0; i < 60; i++)
            count[hp_rng_below(k, 1, i, 256)] += (int64_t)hp_rng_below(k, 2, i, 1 << 20);
        const int32_t t = hp_otsu(count);
        double best = 0;
        for (int v = 0; v < 256; v++) best = fmax(best, variance(count, v));
        assert_true(variance(count, t) >= best * (1 - 1e-9));
    }
    int64_t two[256] = {[40] = 5, [200] = 7}, one[256] = {[40] = 5}, none[256] = {0};
    assert_int_equal(hp_otsu(two), 40);
    assert_int_equal(hp_otsu(one), 255);
    assert_int_equal(hp_otsu(none), 255);
}

static void saturation_is_that_of_hsv(void **state) {
    (void)state;
    assert_int_equal(hp_saturation(0, 0, 0), 0);
    assert_int_equal(hp_saturation(77, 77, 77), 0);
    assert_int_equal(hp_saturation(255, 0, 0), 255);
    assert_int_equal(hp_saturation(9, 200, 100), (255 * 191 + 100) / 200);
    assert_int_equal(hp_saturation(100, 50, 75), 128);
}

/* --- grid --- */

static hp_patches choose(hp_arena *a, int size, int stride, double tissue, int h, int w, const hp_tissue *t) {
    const hp_patches_options o = {size, stride, tissue};
    hp_patches p;
    hp_error err = {0};
    if (hp_patches_choose(a, &o, h, w, t, &p, &err) != HP_OK) fail_msg("%s", err.text);
    return p;
}

/* Any image, patch and stride up to the patch's size: every pixel lies in a patch, every
 * patch in the image. */
static void the_grid_covers_the_image(void **state) {
    (void)state;
    for (uint64_t k = 0; k < 100; k++) {
        hp_arena *a = hp_arena_new();
        const int size = 1 + (int)hp_rng_below(6, 1, k, 20),
                  stride = 1 + (int)hp_rng_below(6, 2, k, (uint64_t)size),
                  h = size + (int)hp_rng_below(6, 3, k, 60), w = size + (int)hp_rng_below(6, 4, k, 60);
        const hp_patches p = choose(a, size, stride, 0, h, w, NULL);
        uint8_t *seen = calloc((size_t)h * (size_t)w, 1);
        assert_int_equal(p.n, p.rows * p.cols);
        for (int32_t i = 0; i < p.n; i++) {
            const hp_crop at = hp_patches_window(&p, i), whole = {0, 0, h, w};
            assert_true(hp_crop_rows(&at) == size && hp_crop_columns(&at) == size);
            assert_true(hp_crop_within(&at, &whole));
            assert_int_equal(p.cell[i], i);
            for (int y = at.y0; y < at.y1; y++) memset(seen + y * w + at.x0, 1, (size_t)size);
        }
        for (int i = 0; i < h * w; i++) assert_int_equal(seen[i], 1);
        free(seen);
        hp_arena_free(a);
    }
}

static hp_tissue tissue_of(hp_arena *a, const char *path, int side) {
    hp_error err = {0};
    hp_reader *r = NULL;
    hp_tissue t;
    assert_int_equal(hp_reader_open(path, NULL, &r, NULL), HP_OK);
    if (hp_tissue_find(a, r, H, W, side, &t, &err) != HP_OK) fail_msg("%s", err.text);
    hp_reader_close(r);
    return t;
}

/* Cells of 4 pixels measure the disc up to a few cells along its border. */
static void tissue_is_the_disc(void **state) {
    (void)state;
    for (int c = 1; c <= 3; c += 2) {
        hp_arena *a = hp_arena_new();
        draw_slide(c);
        make_png(scratch_path("x.png"), H, W, c, px);
        make_tiff_tiled(scratch_path("x.tif"), H, W, c, px, 64);
        const hp_tissue t = tissue_of(a, scratch_path("x.png"), 4),
                        u = tissue_of(a, scratch_path("x.tif"), 4);
        assert_true(t.h == (H + 3) / 4 && t.w == (W + 3) / 4 && t.threshold == u.threshold);
        assert_memory_equal(t.level, u.level, (size_t)t.h * (size_t)t.w);
        for (uint64_t k = 0; k < 200; k++) {
            hp_crop w = {(int32_t)hp_rng_below(8, 1, k, H - 64), (int32_t)hp_rng_below(8, 2, k, W - 64), 0,
                         0};
            w.y1 = w.y0 + 64, w.x1 = w.x0 + 64;
            assert_true(fabs(hp_tissue_share(&t, &w) - disc_share(&w)) < 0.08);
        }
        const hp_patches p = choose(a, 64, 40, 0.5, H, W, &t);
        int chosen = 0, next = 0;
        const hp_patches all = choose(a, 64, 40, 0, H, W, NULL);
        for (int32_t i = 0; i < all.n; i++) {
            const hp_crop w = hp_patches_window(&all, i);
            const bool taken = next < p.n && p.cell[next] == all.cell[i];
            if (fabs(disc_share(&w) - 0.5) > 0.08) assert_int_equal(taken, disc_share(&w) > 0.5);
            chosen += taken, next += taken;
        }
        assert_int_equal(chosen, p.n);
        hp_arena_free(a);
    }
}

/* --- the data set --- */

static hp_data_options options(const char *name, int size, int c) {
    hp_data_options o = hp_data_options_default();
    o.name = name;
    o.split = HP_SPLIT_TEST;
    o.image_h = o.image_w = size;
    o.image_c = c;
    o.classes = 2;
    return o;
}

static const char *named(const char *file, const char *more) {
    static char name[SCRATCH_PATH + 64];
    snprintf(name, sizeof name, "patches:%s%s", scratch_path(file), more);
    return name;
}

static hp_dataset *open_ok(const hp_data_options *o) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    if (hp_dataset_open(o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

static void sample_is_its_window(hp_dataset *d, int32_t k) {
    static uint8_t got[64 * 64 * 3];
    const hp_box box = {{0}, {1, 64, 64, 3}};
    hp_error err = {0};
    const hp_crop w = hp_patches_window(hp_dataset_patches(d), k);
    int32_t label = 0;
    if (hp_dataset_read(d, k, &box, HP_U8, got, &err) != HP_OK) fail_msg("%s", err.text);
    for (int y = 0; y < 64; y++)
        assert_memory_equal(got + y * 64 * 3, px + ((w.y0 + y) * W + w.x0) * 3, 64 * 3);
    assert_int_equal(hp_dataset_labels(d, k, &box, &label, NULL), HP_OK);
    assert_int_equal(label, HP_LABEL_IGNORED);
}

static void samples_are_the_windows_of_the_image(void **state) {
    (void)state;
    draw_slide(3);
    make_png(scratch_path("a,b=1.png"), H, W, 3, px);
    make_tiff_tiled(scratch_path("x.tif"), H, W, 3, px, 64);
    static const char *const files[] = {"a,b=1.png", "x.tif"};
    for (int i = 0; i < 2; i++) {
        const hp_data_options o = options(named(files[i], ",size=64,stride=50,tissue=0.25"), 64, 3);
        hp_dataset *d = open_ok(&o);
        assert_int_equal(hp_dataset_count(d), hp_dataset_patches(d)->n);
        assert_true(hp_dataset_count(d) > 40);
        for (int32_t k = 0; k < hp_dataset_count(d); k++) sample_is_its_window(d, k);
        for (int32_t k = (int32_t)hp_dataset_count(d) - 1; k >= 0; k -= 7) sample_is_its_window(d, k);
        hp_dataset_close(d);
    }
}

/* The head is destroyed after the first patch was read. */
static void patches_in_order_are_one_pass_through_the_file(void **state) {
    (void)state;
    const char *path = scratch_path("x.png");
    draw_slide(3);
    make_png(path, H, W, 3, px);
    const hp_data_options o = options(named("x.png", ",size=64,stride=32,tissue=0.3"), 64, 3);
    hp_dataset *d = open_ok(&o);
    sample_is_its_window(d, 0);
    FILE *f = fopen(path, "rb+");
    for (int i = 0; i < 100; i++) fputc(0, f);
    fclose(f);
    for (int32_t k = 1; k < hp_dataset_count(d); k++) sample_is_its_window(d, k);
    hp_dataset_close(d);
}

static void refused(const char *name, int split, hp_status code, const char *word) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    hp_data_options o = options(name, 64, 3);
    o.split = split;
    assert_int_equal(hp_dataset_open(&o, &d, &err), code);
    if (!strstr(err.text, word)) fail_msg("'%s' not in: %s", word, err.text);
}

static void refusals_name_the_fix(void **state) {
    (void)state;
    draw_slide(3);
    make_png(scratch_path("x.png"), H, W, 3, px);
    memset(px, 240, sizeof px);
    make_png(scratch_path("white.png"), H, W, 3, px);
    refused(named("x.png", ",size=701"), HP_SPLIT_TEST, HP_EDATA, "give size=700");
    refused(named("x.png", ",size=2.5"), HP_SPLIT_TEST, HP_EUSAGE, "size in --data");
    refused(named("x.png", ",tissue=2"), HP_SPLIT_TEST, HP_EUSAGE, "tissue in --data");
    refused(named("x.png", ",sise=2"), HP_SPLIT_TEST, HP_EDATA, "check the path");
    refused(named("none.png", ""), HP_SPLIT_TEST, HP_EDATA, "check the path");
    refused(named("white.png", ""), HP_SPLIT_TEST, HP_EDATA, "give a smaller tissue=");
    refused(named("x.png", ""), HP_SPLIT_TRAIN, HP_EDATA, "has no labels");
    const hp_patches_options o = {1, 1, 0};
    hp_arena *a = hp_arena_new();
    hp_patches p;
    hp_error err = {0};
    assert_int_equal(hp_patches_choose(a, &o, HP_MAX_SIDE, HP_MAX_SIDE, NULL, &p, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "larger stride"));
    hp_arena_free(a);
}

/* A coarser level of the slide finds the same patches, except for those at the threshold. */
static void a_slides_coarse_level_finds_the_same_tissue(void **state) {
    (void)state;
    char command[3 * SCRATCH_PATH];
    draw_slide(3);
    make_png(scratch_path("x.png"), H, W, 3, px);
    snprintf(command, sizeof command,
             "vips tiffsave %s %s --tile --pyramid --compression deflate --tile-width 64 --tile-height 64 "
             ">/dev/null 2>&1",
             scratch_path("x.png"), scratch_path("x.tif"));
    if (system(command) != 0) {
        print_message("skipped: the package libvips-tools is not installed\n");
        skip();
    }
    const hp_data_options o = options(named("x.tif", ",size=64,level=0"), 64, 3);
    hp_error err = {0};
    hp_dataset *d = NULL;
    const hp_status s = hp_dataset_open(&o, &d, &err);
    if (s == HP_EUNAVAIL) skip();
    if (s != HP_OK) fail_msg("%s", err.text);
    const hp_patches *p = hp_dataset_patches(d);
    hp_arena *a = hp_arena_new();
    const hp_patches all = choose(a, 64, 64, 0, H, W, NULL);
    for (int32_t i = 0, next = 0; i < all.n; i++) {
        const hp_crop w = hp_patches_window(&all, i);
        const bool taken = next < p->n && p->cell[next] == i;
        if (fabs(disc_share(&w) - 0.5) > 0.1) assert_int_equal(taken, disc_share(&w) > 0.5);
        next += taken;
    }
    for (int32_t k = 0; k < p->n; k++) sample_is_its_window(d, k);
    hp_arena_free(a);
    hp_dataset_close(d);
}

/* --- votes and heat --- */

static void probabilities_are_those_of_the_softmax(void **state) {
    (void)state;
    for (uint64_t k = 0; k < 50; k++) {
        float logits[7], shifted[7], share[7], other[7];
        double sum = 0;
        for (uint64_t c = 0; c < 7; c++) logits[c] = (float)hp_rng_below(2, k, c, 64) - 30.0f;
        for (int c = 0; c < 7; c++) shifted[c] = logits[c] + 64.0f;
        const int32_t at = hp_softmax(logits, 7, share);
        assert_int_equal(hp_softmax(shifted, 7, other), at);
        for (int c = 0; c < 7; c++) {
            assert_true(share[c] <= share[at] && share[c] == other[c]);
            assert_true(fabs(log(share[c] / (double)share[at]) - (double)(logits[c] - logits[at])) < 1e-5);
            sum += (double)share[c];
        }
        assert_true(fabs(sum - 1) < 1e-6);
    }
}

/* Three patches are almost sure of class 0, four lean to class 1: the majority and the mean disagree. */
static void mean_and_majority_are_what_they_say(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_votes v = hp_votes_new(a, 2), none = hp_votes_new(a, 2),
             half[2] = {hp_votes_new(a, 2), hp_votes_new(a, 2)};
    static const float sure[] = {20, 0}, leaning[] = {0, 0.4f};
    for (int i = 0; i < 7; i++) {
        hp_votes_add(&v, i < 3 ? sure : leaning);
        hp_votes_add(&half[i % 2], i < 3 ? sure : leaning);
    }
    const hp_vote r = hp_votes_verdict(&v);
    const double p0 = 1 / (1 + exp(0.4f));
    assert_int_equal(r.patches, 7);
    assert_int_equal(r.mean_class, 0);
    assert_int_equal(r.majority_class, 1);
    assert_true(fabs(r.mean_share - (3 + 4 * p0) / 7) < 1e-6);
    assert_true(fabs(r.majority_share - 4.0 / 7) < 1e-15);
    assert_true(fabs(hp_votes_mean(&v, 0) + hp_votes_mean(&v, 1) - 1) < 1e-12);
    for (int i = 0; i < v.n_sum; i++) assert_true(fabs(half[0].sum[i] + half[1].sum[i] - v.sum[i]) < 1e-12);
    assert_int_equal(hp_votes_verdict(&none).mean_class, -1);
    hp_arena_free(a);
}

static void the_heat_map_holds_the_probabilities(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_patches p = choose(a, 10, 10, 0, 40, 70, NULL);
    for (int i = 0; i < 5; i++) p.cell[i] = 4 * i + 1; /* cells in a grid of 4 x 7 */
    p.n = 5;
    float logits[5 * 3];
    for (int i = 0; i < 15; i++) logits[i] = (float)(i * i % 7);
    for (int as_classes = 0; as_classes < 2; as_classes++) {
        const hp_output_spec s = hp_patches_heat_spec(&p, scratch_path("heat.bin"), 3, as_classes);
        hp_output *o;
        assert_int_equal(hp_patches_heat_create(&p, &s, &o, NULL), HP_OK);
        assert_int_equal(hp_patches_heat_write(&p, o, 3, 2, 3, logits + 9, NULL), HP_OK);
        assert_int_equal(hp_patches_heat_write(&p, o, 0, 3, 3, logits, NULL), HP_OK);
        assert_int_equal(hp_output_close(o, NULL), HP_OK);
        assert_int_equal(hp_output_finish(&s, NULL), HP_OK);
        size_t n;
        unsigned char *bytes = scratch_read(s.path, &n);
        assert_int_equal(n, as_classes ? 28 : 28 * 3 * 4);
        for (int cell = 0; cell < 28; cell++) {
            float share[3], got[3];
            const bool on = cell % 4 == 1 && cell < 20;
            const int32_t at = on ? hp_softmax(logits + cell / 4 * 3, 3, share) : 255;
            if (as_classes) {
                assert_int_equal(bytes[cell], at);
                continue;
            }
            memcpy(got, bytes + cell * 12, 12);
            for (int c = 0; c < 3; c++) assert_true(on ? got[c] == share[c] : isnan(got[c]));
        }
        free(bytes);
    }
    hp_arena_free(a);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(otsu_separates_best),
        cmocka_unit_test(saturation_is_that_of_hsv),
        cmocka_unit_test(the_grid_covers_the_image),
        IN_SCRATCH(tissue_is_the_disc),
        IN_SCRATCH(samples_are_the_windows_of_the_image),
        IN_SCRATCH(patches_in_order_are_one_pass_through_the_file),
        IN_SCRATCH(refusals_name_the_fix),
        IN_SCRATCH(a_slides_coarse_level_finds_the_same_tissue),
        cmocka_unit_test(probabilities_are_those_of_the_softmax),
        cmocka_unit_test(mean_and_majority_are_what_they_say),
        IN_SCRATCH(the_heat_map_holds_the_probabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
