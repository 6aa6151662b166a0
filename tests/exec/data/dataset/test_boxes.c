/* test_boxes.c - a rank reads its part of a sample: the parts of any grid equal the whole exactly, for all
 * files, and no more of an image is held than the part needs. */
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

/* Size of the files' images: odd, and not a multiple of a strip or a tile. */
enum { H = 53, W = 37, CLASSES = 4 };

static void noise(uint8_t *px, int n, uint64_t seed) {
    for (int i = 0; i < n; i++) px[i] = (uint8_t)hp_rng_below(seed, 1, (uint64_t)i, 256);
}

/* Four images of different formats with masks; returns the folder. */
static const char *make_masked(void) {
    static const char *const names[] = {"a", "b", "c", "d"};
    static uint8_t px[H * W * 3], mask[H * W];
    for (int k = 0; k < 4; k++) {
        char name[64];
        noise(px, H * W * 3, (uint64_t)k);
        for (int i = 0; i < H * W; i++)
            mask[i] = (uint8_t)hp_rng_below((uint64_t)k, 2, (uint64_t)i, CLASSES + 1) % CLASSES;
        snprintf(name, sizeof name, "train/masks/%s.png", names[k]);
        make_png_as(scratch_path(name), H, W, PNG_COLOR_TYPE_GRAY, 8, k == 1, mask);
    }
    noise(px, H * W * 3, 1);
    make_png(scratch_path("train/images/a.png"), H, W, 3, px);
    make_jpeg(scratch_path("train/images/b.jpg"), H, W, 3, px, 80);
    make_tiff(scratch_path("train/images/c.tif"), H, W, 3, px, 8, 0);
    make_tiff_tiled(scratch_path("train/images/d.tif"), H, W, 3, px, 16);
    return scratch;
}

static hp_data_options options(const char *name, int h, int w) {
    hp_data_options o = hp_data_options_default();
    o.name = name;
    o.image_h = o.label_h = h;
    o.image_w = o.label_w = w;
    o.image_c = 3;
    o.classes = CLASSES;
    return o;
}

static hp_dataset *open_ok(const hp_data_options *o) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    if (hp_dataset_open(o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

static void same_pixels(hp_dataset *d, int64_t index, const hp_box *box, const float *whole) {
    hp_error err = {0};
    float *part = malloc((size_t)hp_box_elems(box) * sizeof *part + 1);
    if (hp_dataset_read(d, index, box, HP_F32, part, &err) != HP_OK) fail_msg("%s", err.text);
    const float *at = part;
    for (int y = box->lo[HP_AXIS_H]; y < box->hi[HP_AXIS_H]; y++)
        for (int x = box->lo[HP_AXIS_W]; x < box->hi[HP_AXIS_W]; x++)
            for (int c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++)
                assert_true(*at++ == whole[(y * d->o.image_w + x) * d->o.image_c + c]);
    free(part);
}

static void same_labels(hp_dataset *d, int64_t index, const hp_box *box, const int32_t *whole) {
    hp_error err = {0};
    int32_t *part = malloc((size_t)hp_box_elems(box) * sizeof *part + 1);
    if (hp_dataset_labels(d, index, box, part, &err) != HP_OK) fail_msg("%s", err.text);
    const int32_t *at = part;
    for (int y = box->lo[HP_AXIS_H]; y < box->hi[HP_AXIS_H]; y++)
        for (int x = box->lo[HP_AXIS_W]; x < box->hi[HP_AXIS_W]; x++)
            assert_int_equal(*at++, whole[y * d->o.label_w + x]);
    free(part);
}

static int32_t draw(uint64_t k, uint64_t what, int32_t n) {
    return (int32_t)hp_rng_below(3, k, what, (uint64_t)n);
}

/* Any box of at least one pixel, like those with halos. */
static hp_box any_box(uint64_t k, int h, int w, int c) {
    const int n[HP_AXES] = {1, h, w, c};
    hp_box b;
    for (int a = 0; a < HP_AXES; a++) {
        b.lo[a] = draw(k, (uint64_t)a, n[a]);
        b.hi[a] = b.lo[a] + 1 + draw(k, (uint64_t)a + 8, n[a] - b.lo[a]);
    }
    return b;
}

static void every_box_is_its_part_of(const hp_data_options *o, int64_t samples) {
    hp_dataset *d = open_ok(o);
    float *x = malloc((size_t)o->image_h * (size_t)o->image_w * 3 * sizeof *x);
    int32_t *labels = malloc((size_t)o->label_h * (size_t)o->label_w * sizeof *labels);
    for (int64_t i = 0; i < samples; i++) {
        hp_error err = {0};
        if (read_sample(d, i, x, labels, &err) != HP_OK) fail_msg("%s", err.text);
        for (uint64_t k = 0; k < 40; k++) {
            const hp_box pixels = any_box(k, o->image_h, o->image_w, 3),
                         map = any_box(k, o->label_h, o->label_w, 1);
            same_pixels(d, i, &pixels, x);
            same_labels(d, i, &map, labels);
        }
    }
    free(labels);
    free(x);
    hp_dataset_close(d);
}

/* Unscaled, shrunk, enlarged, cut out of the middle, and with a label map coarser than the image. */
static void any_box_of_a_sample_is_its_part_of_the_whole(void **state) {
    (void)state;
    static const int sizes[][3] = {{H, W, 0}, {31, 29, 0}, {80, 91, 0}, {20, 30, 40}, {33, 21, 0}};
    const char *folder = make_masked();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        hp_data_options o = options(folder, sizes[i][0], sizes[i][1]);
        o.resize = sizes[i][2];
        if (i == 4) o.label_h = 11, o.label_w = 7;
        every_box_is_its_part_of(&o, 4);
        o.name = "synthetic";
        every_box_is_its_part_of(&o, 2);
    }
}

/* --- through the loader: grids of parts, replicas, micro-batches, both dtypes --- */

static double value(const hp_program *p, const void *x, int64_t i) {
    return p->dtype == HP_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static hp_box layout_box(const hp_layout *l, int h, int w, int c, int64_t samples, int part) {
    hp_tensor tensor = {h, w, c, 0};
    hp_layer input = {.op = HP_INPUT};
    const hp_graph g = {.n_tensor = 1, .tensor = &tensor, .n_layer = 1, .layer = &input};
    return hp_layout_own(l, &g, 0, samples, part);
}

static int64_t at(const hp_box *b, int n, int y, int x, int c) {
    const int64_t row = hp_box_len(b, HP_AXIS_W), channels = hp_box_len(b, HP_AXIS_C);
    return (((int64_t)(n - b->lo[0]) * hp_box_len(b, HP_AXIS_H) + (y - b->lo[1])) * row + (x - b->lo[2])) *
               channels +
           (c - b->lo[3]);
}

/* Compares one part's buffers with those of a rank that has everything; counts[]: how often each element
 * occurred in a part. */
static void check_part(hp_loader *l, const hp_program *p, const hp_box *whole, const double *want,
                       const int32_t *want_label, const hp_layout *layout, int part, int *counts) {
    const hp_box box = layout_box(layout, whole->hi[1], whole->hi[2], whole->hi[3], p->micro_batch, part);
    hp_box map = layout_box(layout, whole->hi[1], whole->hi[2], 1, p->micro_batch, part);
    const size_t n = (size_t)hp_box_elems(&box);
    void *x = malloc(n * sizeof(double) + 1);
    int32_t *labels = malloc((size_t)hp_box_elems(&map) * sizeof *labels + 1);
    hp_error err = {0};
    if (hp_loader_read(l, 5, 1, x, (hp_dtype)p->dtype, &box, labels, &map, &err) != HP_OK)
        fail_msg("%s", err.text);
    for (int i = box.lo[0]; i < box.hi[0]; i++)
        for (int y = box.lo[1]; y < box.hi[1]; y++)
            for (int k = box.lo[2]; k < box.hi[2]; k++)
                for (int c = box.lo[3]; c < box.hi[3]; c++) {
                    assert_true(value(p, x, at(&box, i, y, k, c)) == want[at(whole, i, y, k, c)]);
                    counts[at(whole, i, y, k, c)]++;
                }
    if (hp_box_empty(&map)) map = (hp_box){{0}, {0}}; /* the channels are split: this part has no labels */
    for (int i = map.lo[0]; i < map.hi[0]; i++)
        for (int y = map.lo[1]; y < map.hi[1]; y++)
            for (int k = map.lo[2]; k < map.hi[2]; k++)
                assert_int_equal(labels[at(&map, i, y, k, 0)],
                                 want_label[((int64_t)i * whole->hi[1] + y) * whole->hi[2] + k]);
    free(labels);
    free(x);
}

static void check_grid(hp_dataset *d, hp_dtype dtype, const hp_layout *layout) {
    const hp_program narrow = {.dtype = HP_F32, .dp = 2, .micro = 2, .batch = 12, .micro_batch = 3};
    hp_program p = narrow;
    p.dtype = dtype;
    const hp_loader_options one = {d, &narrow, 1, true, false, 7}, many = {d, &p, 1, true, false, 7};
    hp_loader *a = NULL, *b = NULL;
    assert_int_equal(hp_loader_open(&one, &a, NULL), HP_OK);
    assert_int_equal(hp_loader_open(&many, &b, NULL), HP_OK);
    const hp_box whole = {{0}, {3, d->o.image_h, d->o.image_w, 3}},
                 map = {{0}, {3, d->o.label_h, d->o.label_w, 1}};
    const size_t n = (size_t)hp_box_elems(&whole);
    float *x = malloc(n * sizeof *x);
    double *want = malloc(n * sizeof *want);
    int32_t *labels = malloc((size_t)hp_box_elems(&map) * sizeof *labels);
    int *counts = calloc(n, sizeof *counts);
    assert_int_equal(hp_loader_read(a, 5, 1, x, HP_F32, &whole, labels, &map, NULL), HP_OK);
    for (size_t i = 0; i < n; i++) want[i] = (double)x[i];
    for (int part = 0; part < hp_layout_parts(layout); part++)
        check_part(b, &p, &whole, want, labels, layout, part, counts);
    for (size_t i = 0; i < n; i++) assert_int_equal(counts[i], 1);
    free(counts);
    free(labels);
    free(want);
    free(x);
    hp_loader_close(a);
    hp_loader_close(b);
}

/* Strips, columns, grids, more tiles than rows, slices of the batch, slices of the channels. */
static void parts_of_every_grid_are_the_batch(void **state) {
    (void)state;
    static const hp_layout grids[] = {
        {1, 1, 1, 1, 1, 1}, {2, 1, 1, 1, 1, 1}, {1, 3, 1, 1, 1, 1}, {2, 2, 1, 1, 1, 1},  {5, 1, 1, 1, 1, 1},
        {3, 2, 3, 1, 1, 1}, {1, 1, 2, 1, 1, 1}, {2, 1, 1, 3, 1, 1}, {29, 1, 1, 1, 1, 1}, {1, 1, 5, 1, 1, 1}};
    hp_data_options o = options("synthetic", 23, 19);
    hp_dataset *synthetic = open_ok(&o);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        for (int dtype = HP_F32; dtype <= HP_F64; dtype++) check_grid(synthetic, (hp_dtype)dtype, &grids[i]);
    hp_dataset_close(synthetic);
}

/* --- windows of files --- */

static void windows_of(const char *path, int c) {
    hp_image whole = {0}, part = {0};
    hp_error err = {0};
    if (read_window(path, NULL, &whole, &err) != HP_OK) fail_msg("%s", err.text);
    assert_int_equal(read_head(path, &part, NULL), HP_OK);
    assert_true(part.h == H && part.w == W && part.c == c && part.capacity == 0);
    for (uint64_t k = 0; k < 60; k++) {
        const hp_box b = any_box(k, H, W, 1);
        const hp_crop w = {b.lo[1], b.lo[2], b.hi[1], b.hi[2]};
        const size_t pixel = hp_pixel_bytes(c, whole.type), row = (size_t)hp_crop_columns(&w) * pixel;
        if (read_window(path, &w, &part, &err) != HP_OK) fail_msg("%s", err.text);
        for (int y = w.y0; y < w.y1; y++)
            assert_memory_equal(part.px + (size_t)(y - w.y0) * row, whole.px + (size_t)(y * W + w.x0) * pixel,
                                row);
        hp_image_free(&part);
    }
    hp_image_free(&whole);
}

static void any_window_of_a_file_is_its_part_of_the_whole(void **state) {
    (void)state;
    uint8_t px[H * W * 3];
    noise(px, H * W * 3, 9);
    for (int c = 1; c <= 3; c += 2) {
        make_png(scratch_path("x.png"), H, W, c, px);
        make_png_as(scratch_path("i.png"), H, W, c == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8, true,
                    px);
        make_jpeg(scratch_path("x.jpg"), H, W, c, px, 75);
        make_tiff(scratch_path("x.tif"), H, W, c, px, 8, 0);
        make_tiff(scratch_path("y.tif"), H, W, c, px, 16, 0);
        make_tiff_tiled(scratch_path("z.tif"), H, W, c, px, 16);
        static const char *const names[] = {"x.png", "i.png", "x.jpg", "x.tif", "y.tif", "z.tif"};
        for (int i = 0; i < 6; i++) windows_of(scratch_path(names[i]), c);
    }
}

/* Stored from the bottom up: turned before it is cut. */
static void a_tiff_stored_upside_down_is_turned_round(void **state) {
    (void)state;
    uint8_t px[H * W * 3];
    noise(px, H * W * 3, 11);
    make_tiff(scratch_path("x.tif"), H, W, 3, px, 8, 0);
    TIFF *t = TIFFOpen(scratch_path("x.tif"), "r+");
    TIFFSetField(t, TIFFTAG_ORIENTATION, ORIENTATION_BOTLEFT);
    assert_int_equal(TIFFRewriteDirectory(t), 1);
    TIFFClose(t);
    windows_of(scratch_path("x.tif"), 3);
    hp_image image = {0};
    assert_int_equal(read_window(scratch_path("x.tif"), NULL, &image, NULL), HP_OK);
    for (int y = 0; y < H; y++) assert_memory_equal(image.px + y * W * 3, px + (H - 1 - y) * W * 3, W * 3);
    hp_image_free(&image);
}

/* 400 million pixels are refused as a whole; a tile of them costs no more than the tile. */
static void a_tile_of_an_image_too_large_to_hold_is_read(void **state) {
    (void)state;
    enum { SIDE = 20000, ROWS = 16 };
    const char *path = scratch_path("large.png");
    make_png_blank(path, SIDE, SIDE);
    hp_error err = {0};
    hp_reader *r;
    hp_pixels view;
    const hp_crop tile = {SIDE - ROWS, 1000, SIDE, 1100};
    assert_int_equal(hp_reader_open(path, NULL, &r, NULL), HP_OK);
    assert_int_equal(hp_reader_window(r, NULL, &view, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "take more tiles"));
    if (hp_reader_window(r, &tile, &view, &err) != HP_OK) fail_msg("%s", err.text);
    assert_int_equal(hp_reader_bytes(r), ROWS * 100);
    for (int i = 0; i < ROWS * 100; i++) assert_int_equal(view.px[i], 0);
    hp_reader_close(r);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(any_box_of_a_sample_is_its_part_of_the_whole),
        cmocka_unit_test(parts_of_every_grid_are_the_batch),
        IN_SCRATCH(any_window_of_a_file_is_its_part_of_the_whole),
        IN_SCRATCH(a_tiff_stored_upside_down_is_turned_round),
        IN_SCRATCH(a_tile_of_an_image_too_large_to_hold_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
