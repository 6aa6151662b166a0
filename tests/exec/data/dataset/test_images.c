/* test_images.c - decoding, resizing and image folders. Oracles: the formats' own libraries write what is
 * read back, and closed forms of resampling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <zlib.h>

#include "tests/support/exec/read_image.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/exec/read_sample.h"

enum { H = 13, W = 17 };

/* (H, W, c): smooth, so that JPEG's loss is small; different in every channel. */
static void fill(uint8_t *px, int c) {
    for (int i = 0; i < H * W * c; i++) {
        const int y = i / c / W, x = i / c % W, j = i % c;
        px[i] = (uint8_t)(40 + 9 * y + 3 * x + 20 * j);
    }
}

static hp_image read_ok(const char *path) {
    hp_error err = {0};
    hp_image image = {0};
    if (read_window(path, NULL, &image, &err) != HP_OK) fail_msg("%s", err.text);
    assert_int_equal(image.h, H);
    assert_int_equal(image.w, W);
    return image;
}

/* The decoded pixels equal `px` (H, W, c) within `tolerance`. */
static void reads_back(const char *path, const uint8_t *px, int c, int tolerance) {
    hp_image image = read_ok(path);
    assert_int_equal(image.c, c);
    for (int i = 0; i < H * W * c; i++) {
        const double level =
            255 / hp_sample_full(image.type) * hp_sample_held(image.type, image.px, (size_t)i);
        assert_true(abs((int)(level + 0.5) - px[i]) <= tolerance);
    }
    hp_image_free(&image);
}

static void lossless_formats_read_back_exactly(void **state) {
    (void)state;
    uint8_t grey[H * W], rgb[H * W * 3], inverse[H * W];
    fill(grey, 1);
    fill(rgb, 3);
    for (int i = 0; i < H * W; i++) inverse[i] = (uint8_t)(255 - grey[i]);
    make_png(scratch_path("g.png"), H, W, 1, grey);
    make_png(scratch_path("c.png"), H, W, 3, rgb);
    make_tiff(scratch_path("g8.tif"), H, W, 1, grey, 8, 0);
    make_tiff(scratch_path("g16.tif"), H, W, 1, grey, 16, 0);
    make_tiff(scratch_path("white.tif"), H, W, 1, inverse, 8, 1);
    make_tiff(scratch_path("c8.tif"), H, W, 3, rgb, 8, 0);
    make_tiff(scratch_path("c16.tif"), H, W, 3, rgb, 16, 0);
    reads_back(scratch_path("g.png"), grey, 1, 0);
    reads_back(scratch_path("c.png"), rgb, 3, 0);
    reads_back(scratch_path("g8.tif"), grey, 1, 0);
    reads_back(scratch_path("g16.tif"), grey, 1, 0);
    reads_back(scratch_path("white.tif"), grey, 1, 0);
    reads_back(scratch_path("c8.tif"), rgb, 3, 0);
    reads_back(scratch_path("c16.tif"), rgb, 3, 0);
}

/* At quality 100 every quantiser step is 1: errors stay within a few units of rounding and chroma
 * subsampling. */
static void jpeg_reads_back_closely(void **state) {
    (void)state;
    uint8_t grey[H * W], rgb[H * W * 3];
    fill(grey, 1);
    fill(rgb, 3);
    make_jpeg(scratch_path("g.jpg"), H, W, 1, grey, 100);
    make_jpeg(scratch_path("c.jpeg"), H, W, 3, rgb, 100);
    reads_back(scratch_path("g.jpg"), grey, 1, 2);
    reads_back(scratch_path("c.jpeg"), rgb, 3, 4);
}

static void refused(const char *path, const char *word) {
    hp_error err = {0};
    hp_image image = {0};
    assert_int_equal(read_window(path, NULL, &image, &err), HP_EDATA);
    if (!strstr(err.text, path) || !strstr(err.text, word))
        fail_msg("'%s' or its name not in: %s", word, err.text);
    hp_image_free(&image);
}

static const char *make_one(int kind) {
    static uint8_t px[H * W * 3];
    fill(px, 3);
    const char *path = scratch_path(kind == 0 ? "x.png" : kind == 1 ? "x.jpg" : "x.tif");
    if (kind == 0) make_png(path, H, W, 3, px);
    if (kind == 1) make_jpeg(path, H, W, 3, px, 90);
    if (kind == 2) make_tiff(path, H, W, 3, px, 8, 0);
    return path;
}

/* A file shortened by any amount is an error, never grey pixels. Slack: bytes at the end without pixels (PNG:
 * IEND and two checksums; JPEG: end marker and padding; TIFF: the directory is at the end, 0). */
static void every_truncation_is_refused(void **state) {
    (void)state;
    static const size_t slack[] = {20, 3, 0};
    for (int kind = 0; kind < 3; kind++) {
        size_t n;
        unsigned char *bytes = scratch_read(make_one(kind), &n);
        for (size_t k = 0; k + slack[kind] < n; k++) refused(scratch_write("cut", bytes, k), "");
        free(bytes);
    }
}

/* Any single byte changed gives an error or some image of a permitted size; sanitizers check the rest. */
static void every_flipped_byte_is_survived(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        size_t n;
        unsigned char *bytes = scratch_read(make_one(kind), &n);
        for (size_t k = 0; k < n; k++) {
            bytes[k] ^= 0xff;
            hp_error err = {0};
            hp_image image = {0};
            const hp_status s = read_window(scratch_write("flip", bytes, n), NULL, &image, &err);
            assert_true(s == HP_OK || (s == HP_EDATA && err.text[0]));
            hp_image_free(&image);
            bytes[k] ^= 0xff;
        }
        free(bytes);
    }
}

static void refusals_name_file_reason_and_fix(void **state) {
    (void)state;
    refused(scratch_path("none.png"), "check the path");
    refused(scratch_write("empty.png", "", 0), "no bytes");
    refused(scratch_write("text.png", "hello, world", 12), "neither PNG, JPEG nor TIFF");
    /* A PNG header of 40000 x 40000 pixels: more than the cap, refused before any memory is taken. */
    static const unsigned char head[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x9c\x40\0\0\x9c\x40\x08\x02\0\0\0";
    unsigned char png[sizeof head - 1 + 4 + 12] = {0};
    memcpy(png, head, sizeof head - 1);
    const uint32_t crc = (uint32_t)crc32(0, png + 12, 17);
    for (int i = 0; i < 4; i++) png[29 + i] = (unsigned char)(crc >> (24 - 8 * i));
    memcpy(png + 33, "\0\0\0\0IDAT\x35\xaf\x06\x1e", 12);
    refused(scratch_write("huge.png", png, sizeof png), "more than");
    uint8_t cmyk[H * W * 4];
    fill(cmyk, 4);
    make_jpeg(scratch_path("cmyk.jpg"), H, W, 4, cmyk, 90);
    refused(scratch_path("cmyk.jpg"), "convert it to RGB");
}

/* --- resizing --- */

static void resized(const uint8_t *px, int h, int w, int c, int full_h, int full_w, int to_h, int to_w,
                    hp_image *out) {
    const hp_pixels source = {h, w, c, {0, 0, h, w}, px};
    const hp_resize fit = {h, w, full_h, full_w, to_h, to_w};
    const hp_crop all = {0, 0, to_h, to_w};
    assert_int_equal(resize_pixels(&fit, &source, &all, out, NULL), HP_OK);
}

/* Weights sum to one, so constants stay. At equal size all weights but one are zero, so everything stays. */
static void resizing_keeps_constants_and_equal_sizes(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {5, 40}, {13, 17}, {29, 3}};
    uint8_t px[H * W * 3], flat[H * W * 3];
    hp_image out = {0};
    fill(px, 3);
    memset(flat, 201, sizeof flat);
    resized(px, H, W, 3, H, W, H, W, &out);
    assert_memory_equal(out.px, px, sizeof px);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        resized(flat, H, W, 3, sizes[i][0], sizes[i][1], sizes[i][0], sizes[i][1], &out);
        for (int k = 0; k < out.h * out.w * 3; k++) assert_int_equal(out.px[k], 201);
    }
    hp_image_free(&out);
}

/* Triangle of width 2 on half-pixel centres. Halving: weights 1 3 3 1 of 8. Doubling: 1/4 and 3/4.
 * Borders renormalise. */
static void resizing_weights_are_the_triangles(void **state) {
    (void)state;
    const uint8_t px[] = {0, 80, 160, 8, 240, 40, 88, 200};
    hp_image out = {0};
    resized(px, 1, 8, 1, 1, 4, 1, 4, &out);
    assert_int_equal(out.px[1], (80 + 3 * 160 + 3 * 8 + 240 + 4) / 8);
    assert_int_equal(out.px[2], (8 + 3 * 240 + 3 * 40 + 88 + 4) / 8);
    assert_int_equal(out.px[0], (3 * 0 + 3 * 80 + 160 + 3) / 7);
    resized(px, 8, 1, 1, 16, 1, 16, 1, &out);
    assert_int_equal(out.px[0], 0);
    assert_int_equal(out.px[1], (3 * 0 + 80 + 2) / 4);
    assert_int_equal(out.px[2], (0 + 3 * 80 + 2) / 4);
    assert_int_equal(out.px[15], 200);
    hp_image_free(&out);
}

/* Scaling, then cutting out the centre, equals the centre of the scaled image. */
static void the_centre_crop_is_the_centre(void **state) {
    (void)state;
    uint8_t px[H * W * 3];
    hp_image whole = {0}, centre = {0};
    fill(px, 3);
    resized(px, H, W, 3, 20, 31, 20, 31, &whole);
    resized(px, H, W, 3, 20, 31, 8, 9, &centre);
    for (int y = 0; y < 8; y++)
        assert_memory_equal(centre.px + y * 9 * 3, whole.px + ((y + 6) * 31 + 11) * 3, 9 * 3);
    hp_image_free(&whole);
    hp_image_free(&centre);
}

/* --- folders --- */

static hp_data_options options(int h, int w, int c) {
    hp_data_options o = hp_data_options_default();
    o.name = scratch;
    o.image_h = h;
    o.image_w = w;
    o.image_c = c;
    o.classes = 3;
    for (int k = 0; k < HP_DATA_CHANNELS; k++)
        o.mean[k] = 0.0, o.std[k] = 1.0 / 255.0; /* x is the pixel itself */
    return o;
}

/* train: B holds one grey PNG, a.b a TIFF and a JPEG, c an RGB PNG; bytewise B < a.b < c. test: only c. */
static void make_folder(void) {
    uint8_t grey[H * W], rgb[H * W * 3];
    fill(grey, 1);
    fill(rgb, 3);
    make_png(scratch_path("train/B/one.png"), H, W, 1, grey);
    make_tiff(scratch_path("train/a.b/2.TIFF"), H, W, 3, rgb, 8, 0);
    make_jpeg(scratch_path("train/a.b/10.JPG"), H, W, 3, rgb, 100);
    make_png(scratch_path("train/c/x.png"), H, W, 3, rgb);
    scratch_write("train/c/notes.txt", "not an image", 12);
    make_png(scratch_path("test/c/y.png"), H, W, 3, rgb);
}

static void sample(hp_dataset *d, int64_t i, float *x, int32_t *label) {
    hp_error err = {0};
    if (read_sample(d, i, x, label, &err) != HP_OK) fail_msg("%s", err.text);
}

static void folders_are_sorted_bytewise_and_classes_are_those_of_train(void **state) {
    (void)state;
    static const int labels[] = {0, 1, 1, 2}, tolerance[] = {0, 4, 0, 0};
    make_folder();
    uint8_t grey[H * W], rgb[H * W * 3];
    fill(grey, 1);
    fill(rgb, 3);
    hp_data_options o = options(H, W, 3);
    hp_dataset *d;
    float x[H * W * 3];
    int32_t label;
    assert_int_equal(hp_dataset_open(&o, &d, NULL), HP_OK);
    assert_int_equal(hp_dataset_count(d), 4);
    for (int s = 0; s < 4; s++) {
        sample(d, s, x, &label);
        assert_int_equal(label, labels[s]);
        for (int i = 0; i < H * W * 3; i++)
            assert_true(abs((int)(x[i] + 0.5f) - (s == 0 ? grey[i / 3] : rgb[i])) <= tolerance[s]);
    }
    hp_dataset_close(d);
    o.split = HP_SPLIT_TEST;
    assert_int_equal(hp_dataset_open(&o, &d, NULL), HP_OK);
    assert_int_equal(hp_dataset_count(d), 1);
    sample(d, 0, NULL, &label);
    assert_int_equal(label, 2);
    hp_dataset_close(d);
}

/* ITU-R 601: 0.299 R + 0.587 G + 0.114 B, to the nearest. */
static void colour_becomes_luma_for_one_channel(void **state) {
    (void)state;
    make_folder();
    uint8_t rgb[H * W * 3];
    fill(rgb, 3);
    const hp_data_options o = options(H, W, 1);
    hp_dataset *d;
    float x[H * W];
    assert_int_equal(hp_dataset_open(&o, &d, NULL), HP_OK);
    sample(d, 3, x, NULL);
    for (int i = 0; i < H * W; i++) {
        const double luma = 0.299 * rgb[3 * i] + 0.587 * rgb[3 * i + 1] + 0.114 * rgb[3 * i + 2];
        assert_true((double)x[i] >= luma - 0.51 && (double)x[i] <= luma + 0.51);
    }
    hp_dataset_close(d);
}

/* 13 x 17 with --resize 26 becomes 26 x 34, of which a 10 x 20 network sees the centre. */
static void resize_scales_the_shorter_side_and_takes_the_centre(void **state) {
    (void)state;
    make_folder();
    uint8_t rgb[H * W * 3];
    fill(rgb, 3);
    hp_data_options o = options(10, 20, 3);
    o.resize = 26;
    hp_dataset *d;
    float x[10 * 20 * 3];
    hp_image want = {0};
    assert_int_equal(hp_dataset_open(&o, &d, NULL), HP_OK);
    sample(d, 3, x, NULL);
    resized(rgb, H, W, 3, 26, 34, 10, 20, &want);
    for (int i = 0; i < 10 * 20 * 3; i++) assert_int_equal((int)(x[i] + 0.5f), want.px[i]);
    hp_image_free(&want);
    hp_dataset_close(d);
}

static void open_fails(const hp_data_options *o, hp_status code, const char *word, const char *fix) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    assert_int_equal(hp_dataset_open(o, &d, &err), code);
    if (!strstr(err.text, word) || !strstr(err.text, fix))
        fail_msg("'%s' and '%s' not in: %s", word, fix, err.text);
}

static void folder_refusals_name_the_fix(void **state) {
    (void)state;
    hp_data_options o = options(H, W, 3);
    open_fails(&o, HP_EDATA, "train/CLASS", "class folders");
    make_folder();
    o.classes = 2;
    open_fails(&o, HP_EDATA, "has 3 classes, the plan 2", "--classes 3");
    o.classes = 3;
    o.resize = 12;
    open_fails(&o, HP_EUSAGE, "smaller than the plan's image", "--resize 17");
    o.resize = 0;
    scratch_write("test/unknown/z.png", "", 0);
    o.split = HP_SPLIT_TEST;
    open_fails(&o, HP_EDATA, "unknown", "rename or remove");
    scratch_write("train/d/readme", "", 0);
    o.split = HP_SPLIT_TRAIN;
    o.classes = 4;
    open_fails(&o, HP_EDATA, "train/d", "add images");
    scratch_write("train/d/bad.png", "broken", 6);
    hp_dataset *d;
    hp_error err = {0};
    float x[H * W * 3];
    int32_t label;
    assert_int_equal(hp_dataset_open(&o, &d, &err), HP_OK);
    assert_int_equal(read_sample(d, 4, NULL, &label, &err), HP_OK); /* labels need no decoding */
    assert_int_equal(read_sample(d, 4, x, &label, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "train/d/bad.png"));
    hp_dataset_close(d);
}

static void one_image_is_a_test_set_without_a_label(void **state) {
    (void)state;
    make_folder();
    hp_data_options o = options(H, W, 3);
    char path[SCRATCH_PATH];
    snprintf(path, sizeof path, "%s", scratch_path("train/c/x.png"));
    o.name = path;
    open_fails(&o, HP_EDATA, "without labels", "DIR/train/CLASS");
    o.split = HP_SPLIT_TEST;
    hp_dataset *d;
    float x[H * W * 3];
    int32_t label;
    assert_int_equal(hp_dataset_open(&o, &d, NULL), HP_OK);
    assert_int_equal(hp_dataset_count(d), 1);
    sample(d, 0, x, &label);
    assert_int_equal(label, -1);
    hp_dataset_close(d);
}

/* --- more than 8 bits --- */

static void make_grey(const char *path, int bits, int format, const void *px) {
    TIFF *t = TIFFOpen(path, "w");
    assert_non_null(t);
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, W);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, H);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, format);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, H);
    assert_true(TIFFWriteEncodedStrip(t, 0, (void *)(uintptr_t)px, H * W * bits / 8) > 0);
    TIFFClose(t);
}

static hp_dataset *open_one(const char *path, int h, int w, int c) {
    static char name[SCRATCH_PATH];
    hp_data_options o = options(h, w, c);
    hp_error err = {0};
    hp_dataset *d = NULL;
    snprintf(name, sizeof name, "%s", path);
    o.name = name;
    o.split = HP_SPLIT_TEST;
    for (int k = 0; k < HP_DATA_CHANNELS; k++) o.mean[k] = 0.25, o.std[k] = 0.5 + k;
    if (hp_dataset_open(&o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

/* Adjacent samples that differ in the last bit differ in the network, which gets (x / 65535 - mean) / std per
 * channel. As bytes they become the nearest level; floats stay as they are and are never bytes. */
static void wide_samples_reach_the_network_in_full(void **state) {
    (void)state;
    static uint16_t wide[H * W];
    static float real[H * W], x[H * W * 3];
    static double twice[H * W * 3];
    static uint8_t bytes[H * W * 3];
    const hp_box all = {{0, 0, 0, 0}, {1, H, W, 3}};
    hp_error err = {0};
    for (int i = 0; i < H * W; i++)
        wide[i] = (uint16_t)(511 + 293 * i), real[i] = (float)(i * i) * 0.37f - 900;
    make_grey(scratch_path("wide.tif"), 16, SAMPLEFORMAT_UINT, wide);
    make_grey(scratch_path("real.tif"), 32, SAMPLEFORMAT_IEEEFP, real);
    hp_dataset *d = open_one(scratch_path("wide.tif"), H, W, 3),
               *f = open_one(scratch_path("real.tif"), H, W, 3);
    assert_int_equal(hp_dataset_read(d, 0, &all, HP_F32, x, &err), HP_OK);
    assert_int_equal(hp_dataset_read(d, 0, &all, HP_F64, twice, &err), HP_OK);
    assert_int_equal(hp_dataset_read(d, 0, &all, HP_U8, bytes, &err), HP_OK);
    for (int i = 0; i < H * W * 3; i++) {
        const double std = 0.5 + (double)(i % 3);
        const double stored = wide[i / 3];
        assert_true(x[i] == (float)((stored / 65535.0 - 0.25) / std) && twice[i] == (double)x[i]);
        assert_int_equal(bytes[i], (wide[i / 3] * 255 + 32767) / 65535);
    }
    assert_int_equal(hp_dataset_read(f, 0, &all, HP_F32, x, &err), HP_OK);
    for (int i = 0; i < H * W * 3; i++)
        assert_true(x[i] == (float)(((double)real[i / 3] - 0.25) / (0.5 + (double)(i % 3))));
    assert_int_equal(hp_dataset_read(f, 0, &all, HP_U8, bytes, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "8 bits"));
    hp_dataset_close(d);
    hp_dataset_close(f);
}

/* Doubled rows are three quarters of their source and one quarter of the next row: linear in
 * samples of any type. */
static void resizing_keeps_the_samples_type(void **state) {
    (void)state;
    const uint16_t wide[] = {1000, 65535};
    const float real[] = {-1e6f, 3};
    hp_image out = {0};
    const hp_resize fit = {2, 1, 4, 1, 4, 1};
    const hp_crop all = {0, 0, 4, 1};
    hp_pixels p = {2, 1, 1, {0, 0, 2, 1}, (const uint8_t *)wide, HP_SAMPLE_U16};
    assert_int_equal(resize_pixels(&fit, &p, &all, &out, NULL), HP_OK);
    const uint16_t *w = (const uint16_t *)(const void *)out.px;
    assert_true(w[0] == 1000 && w[1] == (3 * 1000 + 65535 + 2) / 4 && w[2] == (1000 + 3 * 65535 + 2) / 4 &&
                w[3] == 65535);
    p.px = (const uint8_t *)real, p.type = HP_SAMPLE_F32;
    assert_int_equal(resize_pixels(&fit, &p, &all, &out, NULL), HP_OK);
    const float *r = (const float *)(const void *)out.px;
    assert_true(r[0] == -1e6f && r[1] == 0.75f * -1e6f + 0.25f * 3 && r[3] == 3);
    hp_image_free(&out);
}

/* Losses, scaling and stretching are reported; otherwise there is no report. */
static void what_becomes_of_an_image_is_said(void **state) {
    (void)state;
    static const uint16_t wide[H * W];
    static uint8_t rgba[H * W * 4];
    char text[512];
    make_grey(scratch_path("wide.tif"), 16, SAMPLEFORMAT_UINT, wide);
    make_png(scratch_path("a.png"), H, W, 4, rgba);
    make_png(scratch_path("c.png"), H, W, 3, rgba);
    static const struct {
        const char *file;
        int h, w;
        const char *says; /* NULL: nothing */
        hp_dtype dtype;
    } table[] = {{"wide.tif", H, W, "x / 65535", HP_F32},
                 {"wide.tif", H, W, "rounded to 8 bits", HP_U8},
                 {"a.png", H, W, "alpha is left out", HP_F32},
                 {"c.png", H, W, NULL, HP_F32},
                 {"c.png", 2 * H, 2 * W, "scaled from 17x13 to the plan's 34x26", HP_F32},
                 {"c.png", H, 3 * W, "stretched from 17x13 to 51x13", HP_F32}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        hp_dataset *d = open_one(scratch_path(table[i].file), table[i].h, table[i].w, 3);
        float x[3];
        assert_null(hp_dataset_describe(d, text, sizeof text)); /* nothing was read */
        assert_int_equal(hp_dataset_read(d, 0, &(hp_box){{0}, {1, 1, 1, 3}}, table[i].dtype, x, NULL), HP_OK);
        const char *said = hp_dataset_describe(d, text, sizeof text);
        if (!said != !table[i].says || (said && !strstr(said, table[i].says)))
            fail_msg("row %zu: %s", i, said ? said : "nothing");
        hp_dataset_close(d);
    }
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(lossless_formats_read_back_exactly),
        IN_SCRATCH(jpeg_reads_back_closely),
        IN_SCRATCH(every_truncation_is_refused),
        IN_SCRATCH(every_flipped_byte_is_survived),
        IN_SCRATCH(refusals_name_file_reason_and_fix),
        cmocka_unit_test(resizing_keeps_constants_and_equal_sizes),
        cmocka_unit_test(resizing_weights_are_the_triangles),
        cmocka_unit_test(the_centre_crop_is_the_centre),
        IN_SCRATCH(folders_are_sorted_bytewise_and_classes_are_those_of_train),
        IN_SCRATCH(colour_becomes_luma_for_one_channel),
        IN_SCRATCH(resize_scales_the_shorter_side_and_takes_the_centre),
        IN_SCRATCH(folder_refusals_name_the_fix),
        IN_SCRATCH(one_image_is_a_test_set_without_a_label),
        IN_SCRATCH(wide_samples_reach_the_network_in_full),
        cmocka_unit_test(resizing_keeps_the_samples_type),
        IN_SCRATCH(what_becomes_of_an_image_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
