/* test_masks.c - images with a class per pixel: the meaning of a mask's numbers, scaling of masks, and the
 * errors for unfit data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "exec/data/dataset/loader.h"
#include "base/rng.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/exec/read_sample.h"

enum { H = 12, W = 18 };

static hp_data_options options(int h, int w, int classes) {
    hp_data_options o = hp_data_options_default();
    o.name = scratch;
    o.image_h = o.label_h = h;
    o.image_w = o.label_w = w;
    o.image_c = 3;
    o.classes = classes;
    return o;
}

static void make_image(const char *name, int h, int w) {
    static uint8_t px[64 * 64 * 3];
    make_png(scratch_path(name), h, w, 3, px);
}

static void make_mask(const char *name, int h, int w, const uint8_t *px) {
    make_png_as(scratch_path(name), h, w, PNG_COLOR_TYPE_GRAY, 8, false, px);
}

static hp_dataset *open_ok(const hp_data_options *o) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    if (hp_dataset_open(o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

static void labels_of(const hp_data_options *o, int32_t *labels) {
    hp_error err = {0};
    hp_dataset *d = open_ok(o);
    if (read_sample(d, 0, NULL, labels, &err) != HP_OK) fail_msg("%s", err.text);
    hp_dataset_close(d);
}

/* --- numbers --- */

static void a_masks_numbers_are_the_classes_and_255_is_ignored(void **state) {
    (void)state;
    uint8_t px[H * W];
    int32_t labels[H * W];
    for (int i = 0; i < H * W; i++) px[i] = (uint8_t)(i % 4 == 3 ? 255 : i % 4);
    make_image("train/images/a.png", H, W);
    make_mask("train/masks/a.png", H, W, px);
    const hp_data_options o = options(H, W, 3);
    labels_of(&o, labels);
    for (int i = 0; i < H * W; i++) assert_int_equal(labels[i], i % 4 == 3 ? -1 : i % 4);
}

/* Palettes (PASCAL VOC) and few bits: the stored number counts, not the colour or grey
 * level it stands for. */
static void palettes_and_few_bits_store_classes_too(void **state) {
    (void)state;
    static const struct {
        int type, bits;
    } kinds[] = {{PNG_COLOR_TYPE_PALETTE, 8}, {PNG_COLOR_TYPE_PALETTE, 4}, {PNG_COLOR_TYPE_PALETTE, 1},
                 {PNG_COLOR_TYPE_GRAY, 4},    {PNG_COLOR_TYPE_GRAY, 2},    {PNG_COLOR_TYPE_GRAY, 1}};
    make_image("train/images/a.png", H, W);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            const int classes = 1 << (kinds[k].bits < 4 ? kinds[k].bits : 4);
            uint8_t px[H * W];
            int32_t labels[H * W];
            for (int i = 0; i < H * W; i++) px[i] = (uint8_t)(i * 7 % classes);
            make_png_as(scratch_path("train/masks/a.png"), H, W, kinds[k].type, kinds[k].bits, interlaced,
                        px);
            const hp_data_options o = options(H, W, classes);
            labels_of(&o, labels);
            for (int i = 0; i < H * W; i++) assert_int_equal(labels[i], i * 7 % classes);
        }
}

/* images/NAME.jpg belongs to masks/NAME.png; the images' names define the order. */
static void images_of_any_format_find_their_masks(void **state) {
    (void)state;
    uint8_t px[H * W * 3] = {0};
    make_jpeg(scratch_path("train/images/b.one.jpg"), H, W, 3, px, 90);
    make_tiff(scratch_path("train/images/a.tif"), H, W, 3, px, 8, 0);
    for (int k = 0; k < 2; k++) {
        memset(px, k, H * W);
        make_mask(k ? "train/masks/b.one.png" : "train/masks/a.png", H, W, px);
    }
    const hp_data_options o = options(H, W, 2);
    hp_dataset *d = open_ok(&o);
    assert_int_equal(hp_dataset_count(d), 2);
    for (int k = 0; k < 2; k++) {
        int32_t labels[H * W];
        assert_int_equal(read_sample(d, k, NULL, labels, NULL), HP_OK);
        for (int i = 0; i < H * W; i++) assert_int_equal(labels[i], k);
    }
    hp_dataset_close(d);
}

/* --- scaling --- */

/* Pillow's NEAREST: position o of n_out is source floor((o + 1/2) * n / n_out); with --resize, of
 * the middle of `full`. */
static int nearest(int o, int n_out, int full, int n) {
    const int margin = (full - n_out) / 2;
    return (int)floor((o + margin + 0.5) * n / full);
}

static void masks_are_scaled_to_the_nearest_pixel(void **state) {
    (void)state;
    static const int cases[][5] = {/* output h, w, --resize, full h, w */
                                   {H, W, 0, H, W},   {24, 36, 0, 24, 36},  {4, 6, 0, 4, 6},
                                   {7, 31, 0, 7, 31}, {16, 10, 16, 16, 24}, {10, 20, 30, 30, 45}};
    uint8_t px[H * W];
    for (int i = 0; i < H * W; i++) px[i] = (uint8_t)(i % 251);
    make_image("train/images/a.png", H, W);
    make_mask("train/masks/a.png", H, W, px);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int *c = cases[k];
        int32_t labels[36 * 36];
        hp_data_options o = options(c[0], c[1], 251);
        o.resize = c[2];
        labels_of(&o, labels);
        for (int y = 0; y < c[0]; y++)
            for (int x = 0; x < c[1]; x++)
                assert_int_equal(labels[y * c[1] + x],
                                 px[nearest(y, c[0], c[3], H) * W + nearest(x, c[1], c[4], W)]);
    }
}

/* If a network's map is coarser than its image, a label is the pixel under the centre of its cell. */
static void a_coarser_map_takes_the_middle_of_its_cells(void **state) {
    (void)state;
    uint8_t px[H * W];
    int32_t labels[4 * 6];
    for (int i = 0; i < H * W; i++) px[i] = (uint8_t)(i % 251);
    make_image("train/images/a.png", H, W);
    make_mask("train/masks/a.png", H, W, px);
    hp_data_options o = options(H, W, 251);
    o.label_h = 4, o.label_w = 6; /* cells of 3 x 3 */
    labels_of(&o, labels);
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 6; x++) assert_int_equal(labels[y * 6 + x], px[(3 * y + 1) * W + 3 * x + 1]);
}

/* --- evaluation and synthetic maps --- */

static void evaluation_ignores_what_is_no_sample(void **state) {
    (void)state;
    uint8_t px[H * W] = {0};
    make_image("test/images/a.png", H, W);
    make_mask("test/masks/a.png", H, W, px);
    hp_data_options o = options(H, W, 2);
    o.split = HP_SPLIT_TEST;
    hp_dataset *d = open_ok(&o);
    const hp_program p = {.dtype = HP_F32, .dp = 1, .micro = 1, .batch = 2, .micro_batch = 2};
    const hp_loader_options lo = {d, &p, 0, false, true, 1};
    hp_loader *l = NULL;
    int32_t labels[2 * 5 * W];
    float x[2 * 5 * W * 3];
    const hp_box box = {{0, 3, 0, 0}, {2, 8, W, 3}}, map = {{0, 3, 0, 0}, {2, 8, W, 1}};
    assert_int_equal(hp_loader_open(&lo, &l, NULL), HP_OK);
    assert_int_equal(hp_loader_read(l, 0, 0, x, HP_F32, &box, labels, &map, NULL), HP_OK);
    for (int i = 0; i < 2 * 5 * W; i++) assert_int_equal(labels[i], i < 5 * W ? 0 : -1);
    for (int i = 5 * W * 3; i < 2 * 5 * W * 3; i++) assert_true(x[i] == 0.0f);
    hp_loader_close(l);
    hp_dataset_close(d);
}

/* Uniform over the classes, pixel by pixel: chi-square with 9 degrees of freedom at 99.9
 * %; samples differ. */
static void synthetic_maps_are_uniform(void **state) {
    (void)state;
    enum { SIDE = 200 };
    static int32_t labels[2][SIDE * SIDE];
    hp_data_options o = options(SIDE, SIDE, 10);
    o.name = "synthetic";
    hp_dataset *d = open_ok(&o);
    double count[10] = {0}, chi2 = 0;
    for (int k = 0; k < 2; k++) assert_int_equal(read_sample(d, k, NULL, labels[k], NULL), HP_OK);
    for (int i = 0; i < SIDE * SIDE; i++) count[labels[0][i]]++;
    for (int k = 0; k < 10; k++) chi2 += pow(count[k] - SIDE * SIDE / 10.0, 2) / (SIDE * SIDE / 10.0);
    assert_true(chi2 < 27.88);
    assert_memory_not_equal(labels[0], labels[1], sizeof labels[0]);
    hp_dataset_close(d);
}

/* --- refusals --- */

static void refused(hp_status got, const hp_error *err, const char *word, const char *fix) {
    assert_int_equal(got, HP_EDATA);
    if (!strstr(err->text, word) || !strstr(err->text, fix))
        fail_msg("'%s' and '%s' not in: %s", word, fix, err->text);
}

static void open_fails(const hp_data_options *o, const char *word, const char *fix) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    refused(hp_dataset_open(o, &d, &err), &err, word, fix);
}

static void labels_fail(const hp_data_options *o, const char *word, const char *fix) {
    hp_error err = {0};
    int32_t labels[H * W];
    hp_dataset *d = open_ok(o);
    refused(read_sample(d, 0, NULL, labels, &err), &err, word, fix);
    hp_dataset_close(d);
}

static void unfit_masks_are_refused_by_name(void **state) {
    (void)state;
    uint8_t px[H * W * 4] = {0};
    const hp_data_options o = options(H, W, 3);
    px[2 * W + 5] = 7;
    make_image("train/images/a.png", H, W);
    open_fails(&o, scratch, "{images,masks}"); /* a folder with only images looks like one of classes */
    make_mask("train/masks/b.png", H, W, px);
    open_fails(&o, "masks/a.png is missing", "add it");
    make_mask("train/masks/a.png", H, W, px);
    labels_fail(&o, "masks/a.png: value 7 at row 2, column 5", "--classes 8");
    make_mask("train/masks/a.png", W, H, px);
    labels_fail(&o, "masks/a.png is 18 x 12, its image", "make them equal");
    make_png(scratch_path("train/masks/a.png"), H, W, 3, px);
    labels_fail(&o, "8-bit colour", "8-bit grey");
    make_png(scratch_path("train/masks/a.png"), H, W, 2, px);
    labels_fail(&o, "with alpha", "8-bit grey");
    scratch_write("train/masks/a.png", "no image", 8);
    labels_fail(&o, "masks/a.png", "replace the file");
}

static void a_class_per_image_and_one_per_pixel_are_not_confused(void **state) {
    (void)state;
    uint8_t px[H * W] = {0};
    hp_data_options o = options(H, W, 3);
    o.label_h = o.label_w = 1;
    make_image("m/train/images/a.png", H, W);
    make_mask("m/train/masks/a.png", H, W, px);
    make_image("c/train/cat/a.png", H, W);
    char masks[SCRATCH_PATH], classes[SCRATCH_PATH];
    snprintf(masks, sizeof masks, "%s/m", scratch);
    snprintf(classes, sizeof classes, "%s/c", scratch);
    o.name = masks;
    open_fails(&o, "one class per image", "--net unet");
    o.label_h = H, o.label_w = W;
    o.name = classes;
    open_fails(&o, "map of 12 x 18", "{train,test}/{images,masks}");
    o.name = masks;
    o.split = HP_SPLIT_TEST;
    open_fails(&o, "m/test", "add both");
    o.split = HP_SPLIT_TRAIN;
    assert_int_equal(remove(scratch_path("m/train/images/a.png")), 0);
    open_fails(&o, "m/train/images", "add images");
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_masks_numbers_are_the_classes_and_255_is_ignored),
        IN_SCRATCH(palettes_and_few_bits_store_classes_too),
        IN_SCRATCH(images_of_any_format_find_their_masks),
        IN_SCRATCH(masks_are_scaled_to_the_nearest_pixel),
        IN_SCRATCH(a_coarser_map_takes_the_middle_of_its_cells),
        IN_SCRATCH(evaluation_ignores_what_is_no_sample),
        cmocka_unit_test(synthetic_maps_are_uniform),
        IN_SCRATCH(unfit_masks_are_refused_by_name),
        IN_SCRATCH(a_class_per_image_and_one_per_pixel_are_not_confused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
