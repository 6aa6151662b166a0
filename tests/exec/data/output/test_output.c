/* test_output.c - results in files: boxes in any order from any number of writers give the file that the
 * format's own readers expect, and no failure leaves a partial file under its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <tiffio.h>

#include "exec/data/output/output.h"
#include "base/rng.h"
#include "tests/support/plan/data_files.h"

enum { WRITERS = 3 };

static float value_of(int64_t i) {
    return (float)hp_rng_below(1, 2, (uint64_t)i, 100000) / 7.0f - 5000.0f;
}

static int64_t elems(const hp_output_spec *s) {
    return s->n * s->h * s->w * s->c;
}

/* The class that the file must have for pixel i. */
static int class_of(const hp_output_spec *s, int64_t i) {
    int best = 0;
    for (int c = 1; c < s->c; c++)
        if (value_of(i * s->c + c) > value_of(i * s->c + best)) best = c;
    return best;
}

static void put(hp_output *o, const hp_output_spec *s, const hp_box *b) {
    hp_error err = {0};
    float *data = malloc((size_t)hp_box_elems(b) * sizeof *data + 1), *at = data;
    for (int64_t n = b->lo[0]; n < b->hi[0]; n++)
        for (int64_t y = b->lo[1]; y < b->hi[1]; y++)
            for (int64_t x = b->lo[2]; x < b->hi[2]; x++)
                for (int64_t c = b->lo[3]; c < b->hi[3]; c++)
                    *at++ = value_of(((n * s->h + y) * s->w + x) * s->c + c);
    if (hp_output_write(o, b, data, &err) != HP_OK) fail_msg("%s", err.text);
    free(data);
}

/* Boxes that partition the output: halved at random until small, then shuffled. */
static int partition(const hp_output_spec *s, hp_box *box, uint64_t seed) {
    int n = 1;
    box[0] = (hp_box){{0}, {(int32_t)s->n, s->h, s->w, s->c}};
    for (uint64_t k = 0; k < 40; k++) {
        hp_box *b = &box[hp_rng_below(seed, 1, k, (uint64_t)n)];
        const int axis = (int)hp_rng_below(seed, 2, k, s->classes ? 3 : 4);
        if (hp_box_len(b, axis) < 2) continue;
        const int32_t cut =
            b->lo[axis] + 1 + (int32_t)hp_rng_below(seed, 3, k, (uint64_t)hp_box_len(b, axis) - 1);
        box[n] = *b;
        box[n++].lo[axis] = cut;
        b->hi[axis] = cut;
    }
    for (int i = n - 1; i > 0; i--) {
        const int other = (int)hp_rng_below(seed, 4, (uint64_t)i, (uint64_t)i + 1);
        const hp_box swap = box[i];
        box[i] = box[other], box[other] = swap;
    }
    return n;
}

static void write_output(const hp_output_spec *s, uint64_t seed) {
    hp_error err = {0};
    hp_output *o[WRITERS] = {NULL};
    hp_box box[64];
    if (hp_output_create(s, &o[0], &err) != HP_OK) fail_msg("%s", err.text);
    for (int i = 1; i < WRITERS; i++)
        if (hp_output_join(s, &o[i], &err) != HP_OK) fail_msg("%s", err.text);
    const int n = partition(s, box, seed);
    for (int i = 0; i < n; i++) put(o[i % WRITERS], s, &box[i]);
    assert_int_not_equal(access(s->path, F_OK), 0);
    for (int i = 0; i < WRITERS; i++) assert_int_equal(hp_output_close(o[i], NULL), HP_OK);
    if (hp_output_finish(s, &err) != HP_OK) fail_msg("%s", err.text);
}

/* The scratch folder contains nothing but the output. */
static void nothing_else_is_left(const char *path) {
    char other[SCRATCH_PATH + 8];
    snprintf(other, sizeof other, "%s.part", path);
    assert_int_not_equal(access(other, F_OK), 0);
    snprintf(other, sizeof other, "%s.tmp", path);
    assert_int_not_equal(access(other, F_OK), 0);
}

/* --- readers --- */

static void check_numbers(const hp_output_spec *s, const unsigned char *bytes, size_t n) {
    const int64_t pixels = s->n * s->h * s->w;
    if (s->classes) {
        assert_int_equal(n, pixels);
        for (int64_t i = 0; i < pixels; i++) assert_int_equal(bytes[i], class_of(s, i));
        return;
    }
    assert_int_equal(n, elems(s) * 4);
    for (int64_t i = 0; i < elems(s); i++) {
        float got;
        memcpy(&got, bytes + i * 4, 4);
        assert_true(got == value_of(i));
    }
}

static void check_bin(const hp_output_spec *s) {
    size_t n;
    unsigned char *bytes = scratch_read(s->path, &n);
    check_numbers(s, bytes, n);
    free(bytes);
}

/* Version 1.0: magic, two bytes of version, two for the header's length, a Python dictionary, the numbers
 * at a multiple of 64. */
static void check_npy(const hp_output_spec *s) {
    size_t n;
    unsigned char *bytes = scratch_read(s->path, &n);
    char want[160], shape[80] = "", *dict = (char *)bytes + 10;
    const size_t length = bytes[8] + 256u * bytes[9];
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
    assert_int_equal((10 + length) % 64, 0);
    assert_int_equal(dict[length - 1], '\n');
    if (s->h * s->w > 1)
        snprintf(shape, sizeof shape, "%d, %d, %d, ", (int)s->n, s->h, s->w);
    else
        snprintf(shape, sizeof shape, "%d, ", (int)s->n);
    if (!s->classes) snprintf(shape + strlen(shape), 20, "%d, ", s->c);
    snprintf(want, sizeof want, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
             s->classes ? "|u1" : "<f4", shape);
    assert_memory_equal(dict, want, strlen(want));
    for (size_t i = strlen(want); i < length - 1; i++) assert_int_equal(dict[i], ' ');
    check_numbers(s, bytes + 10 + length, n - 10 - length);
    free(bytes);
}

/* The numbers of a nested array, in order. */
static void flatten(const json_t *j, double *out, int64_t *n) {
    if (!json_is_array(j)) {
        out[(*n)++] = json_is_null(j) ? (double)NAN : json_number_value(j);
        return;
    }
    for (size_t i = 0; i < json_array_size(j); i++) flatten(json_array_get(j, i), out, n);
}

static void check_json(const hp_output_spec *s) {
    json_error_t e;
    json_t *root = json_load_file(s->path, 0, &e);
    if (!root) fail_msg("%s", e.text);
    double *got = malloc((size_t)elems(s) * sizeof *got);
    int64_t n = 0, dims = 0;
    double shape[4] = {0};
    assert_int_equal(json_integer_value(json_object_get(root, "schema")), 1);
    flatten(json_object_get(root, "shape"), shape, &dims);
    assert_int_equal(dims, (s->h * s->w > 1 ? 3 : 1) + !s->classes);
    assert_true(shape[0] == (double)s->n && (s->classes || shape[dims - 1] == s->c));
    const json_t *values = json_object_get(root, s->classes ? "classes" : "logits");
    assert_int_equal(json_array_size(values), s->n);
    flatten(values, got, &n);
    assert_int_equal(n, s->classes ? s->n * s->h * s->w : elems(s));
    for (int64_t i = 0; i < n; i++)
        assert_true(s->classes ? got[i] == class_of(s, i) : (float)got[i] == value_of(i));
    free(got);
    json_decref(root);
}

static void check_page(const hp_output_spec *s, TIFF *t, int64_t page) {
    uint32_t h = 0, w = 0, tile = 0;
    uint16_t c = 0;
    TIFFGetField(t, TIFFTAG_IMAGELENGTH, &h);
    TIFFGetField(t, TIFFTAG_IMAGEWIDTH, &w);
    TIFFGetField(t, TIFFTAG_TILELENGTH, &tile);
    TIFFGetFieldDefaulted(t, TIFFTAG_SAMPLESPERPIXEL, &c);
    assert_true((int)h == s->h && (int)w == s->w && tile == 256 && c == (s->classes ? 1 : s->c));
    unsigned char *buffer = malloc((size_t)TIFFTileSize(t));
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            if (x % 256 == 0) assert_true(TIFFReadTile(t, buffer, x, y, 0, 0) > 0);
            const int64_t px = (page * s->h + y) * s->w + x, at = y % 256 * 256 + x % 256;
            if (s->classes) assert_int_equal(buffer[at], class_of(s, px));
            for (int k = 0; k < s->c && !s->classes; k++)
                assert_true(((float *)(void *)buffer)[at * c + k] == value_of(px * s->c + k));
        }
    free(buffer);
}

static void check_tif(const hp_output_spec *s) {
    TIFF *t = TIFFOpen(s->path, "r");
    assert_non_null(t);
    for (int64_t page = 0; page < s->n; page++) {
        check_page(s, t, page);
        assert_int_equal(TIFFReadDirectory(t), page + 1 < s->n);
    }
    TIFFClose(t);
}

/* --- laws --- */

static const struct {
    const char *name;
    void (*check)(const hp_output_spec *s);
} kinds[] = {{"x.npy", check_npy}, {"x.bin", check_bin}, {"x.JSON", check_json}, {"x.tif", check_tif}};

static void boxes_in_any_order_give_the_file(void **state) {
    (void)state;
    static const int shapes[][4] = {
        {7, 1, 1, 10}, {1, 9, 14, 3}, {2, 270, 3, 2}, {3, 5, 290, 1}, {1, 1, 1, 1}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int classes = 0; classes < 2; classes++) {
                const int *d = shapes[i];
                const hp_output_spec s = {scratch_path(kinds[k].name), d[0], d[1], d[2], d[3], classes};
                if (kinds[k].check == check_tif && d[1] * d[2] == 1) continue;
                unlink(s.path);
                write_output(&s, i);
                kinds[k].check(&s);
                nothing_else_is_left(s.path);
            }
}

static void numbers_that_json_has_not_become_null(void **state) {
    (void)state;
    const hp_output_spec s = {scratch_path("x.json"), 1, 1, 1, 3, false};
    const hp_box all = {{0}, {1, 1, 1, 3}};
    const float odd[] = {INFINITY, 1.5f, NAN};
    hp_output *o;
    assert_int_equal(hp_output_create(&s, &o, NULL), HP_OK);
    assert_int_equal(hp_output_write(o, &all, odd, NULL), HP_OK);
    assert_int_equal(hp_output_close(o, NULL), HP_OK);
    assert_int_equal(hp_output_finish(&s, NULL), HP_OK);
    size_t n;
    unsigned char *text = scratch_read(s.path, &n);
    text[n] = '\0';
    assert_non_null(strstr((char *)text, "[[null,1.5,null]]"));
    free(text);
}

static void refused(const char *name, int h, int c, bool classes, hp_status code, const char *word) {
    hp_error err = {0};
    hp_output *o = NULL;
    const hp_output_spec s = {name, 1, h, h, c, classes};
    assert_int_equal(hp_output_create(&s, &o, &err), code);
    if (!strstr(err.text, word) || !strstr(err.text, name))
        fail_msg("'%s' or name not in: %s", word, err.text);
}

static void names_that_say_nothing_are_refused_with_the_fix(void **state) {
    (void)state;
    refused("out", 1, 10, false, HP_EUSAGE, ".npy, .json, .tif or .bin");
    refused("out.csv", 1, 10, false, HP_EUSAGE, ".npy, .json, .tif or .bin");
    refused("out.tif", 1, 10, false, HP_EUSAGE, "end the name in .npy or .json");
    refused("out.tiff", 9, 70000, false, HP_EUSAGE, "65535");
    refused("out.npy", 9, 256, true, HP_EUSAGE, "one byte");
    refused("/no/such/folder/out.npy", 9, 2, true, HP_ECREATE, "existing, writable folder");
    const hp_output_spec s = {scratch_path("x.npy"), 1, 1, 1, 1, false};
    hp_output *o;
    assert_int_equal(hp_output_join(&s, &o, NULL), HP_ECREATE); /* nobody created it */
    scratch_write("x.npy.part", "other", 5);
    assert_int_equal(hp_output_join(&s, &o, NULL), HP_ECREATE);
}

/* A file size limit simulates a full disk: first the numbers do not fit, then only the converted file does
 * not. The earlier file stays. */
static void a_full_disk_leaves_the_earlier_file(void **state) {
    (void)state;
    static const struct {
        const char *name;
        rlim_t limit;
        bool at_create;
    } cases[] = {{"x.npy", 1000, true},
                 {"x.json", 1000, true},
                 {"x.tif", 1000, true},
                 {"x.json", 1700, false},
                 {"x.tif", 1700, false}};
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hp_output_spec s = {scratch_write(cases[i].name, "earlier", 7), 1, 20, 20, 1, false};
        const hp_box all = {{0}, {1, 20, 20, 1}};
        struct rlimit old, small;
        hp_error err = {0};
        hp_output *o = NULL;
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        small = (struct rlimit){cases[i].limit, old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        hp_status status = hp_output_create(&s, &o, &err);
        if (!cases[i].at_create) {
            assert_int_equal(status, HP_OK);
            put(o, &s, &all);
            assert_int_equal(hp_output_close(o, NULL), HP_OK);
            status = hp_output_finish(&s, &err);
        }
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, HP_EIO);
        assert_non_null(strstr(err.text, "free some space"));
        size_t n;
        unsigned char *bytes = scratch_read(s.path, &n);
        assert_int_equal(n, 7);
        free(bytes);
        nothing_else_is_left(s.path);
    }
}

/* A link planted beside the output, here to /dev/full, is neither followed nor removed. */
static void a_planted_link_is_not_followed(void **state) {
    (void)state;
    const hp_output_spec s = {scratch_path("x.json"), 1, 20, 20, 1, false};
    const hp_box all = {{0}, {1, 20, 20, 1}};
    const char *link = scratch_path("x.json.tmp");
    hp_error err = {0};
    hp_output *o = NULL;
    struct stat st;
    assert_int_equal(hp_output_create(&s, &o, NULL), HP_OK);
    put(o, &s, &all);
    assert_int_equal(hp_output_close(o, NULL), HP_OK);
    assert_int_equal(symlink("/dev/full", link), 0);
    assert_int_equal(hp_output_finish(&s, &err), HP_OK);
    assert_int_equal(lstat(s.path, &st), 0);
    assert_true(S_ISREG(st.st_mode) && st.st_size > 400);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    unlink(link);
    nothing_else_is_left(s.path);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(boxes_in_any_order_give_the_file),
        IN_SCRATCH(numbers_that_json_has_not_become_null),
        IN_SCRATCH(names_that_say_nothing_are_refused_with_the_fix),
        IN_SCRATCH(a_full_disk_leaves_the_earlier_file),
        IN_SCRATCH(a_planted_link_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
