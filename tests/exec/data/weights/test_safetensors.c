/* test_safetensors.c - what is written is read back; hostile files are refused. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sys/resource.h>
#include <signal.h>

#include "exec/data/weights/safetensors.h"
#include "tests/support/plan/data_files.h"

static void assert_no_temporary(void) {
    glob_t found;
    assert_int_equal(glob(scratch_path("sample.safetensors.tmp*"), 0, NULL, &found), GLOB_NOMATCH);
}

/* Three tensors: f32 (2, 3), a scalar i64, an empty one. */
static const float reals[6] = {1.0f, -2.5f, 0.0f, 1e-40f, 3.4e38f, -0.0f};
static const int64_t counter = 42;

static const void *sample_data(void *self, int i, hp_error *err) {
    (void)self;
    (void)err;
    return i == 0 ? (const void *)&counter : reals;
}

static const hp_st_tensor sample[] = {
    {.name = "bn.num_batches_tracked", .dtype = HP_ST_I64},
    {.name = "conv.weight", .dtype = HP_ST_F32, .n_dim = 2, .dim = {2, 3}},
    {.name = "none", .dtype = HP_ST_F32, .n_dim = 1, .dim = {0}},
};

static const char *write_sample(void) {
    const hp_st_source source = {sample_data, NULL};
    hp_error err = {0};
    const char *path = scratch_path("sample.safetensors");
    if (hp_safetensors_write(path, sample, 3, &source, &err) != HP_OK) fail_msg("%s", err.text);
    return path;
}

static void what_is_written_is_read_back(void **state) {
    (void)state;
    hp_safetensors *st;
    assert_int_equal(hp_safetensors_open(write_sample(), &st, NULL), HP_OK);
    assert_int_equal(hp_safetensors_count(st), 3);
    const hp_st_tensor *w = hp_safetensors_find(st, "conv.weight"), *n = hp_safetensors_find(st, "none"),
                       *c = hp_safetensors_find(st, "bn.num_batches_tracked");
    assert_null(hp_safetensors_find(st, "conv"));
    float f[6];
    double d[6];
    hp_st_to_f32(w, f);
    hp_st_to_f64(w, d);
    assert_memory_equal(f, reals, sizeof f);
    for (int i = 0; i < 6; i++) assert_true(d[i] == (double)reals[i]);
    assert_int_equal(w->n_dim, 2);
    assert_int_equal(w->dim[0], 2);
    assert_int_equal(w->dim[1], 3);
    assert_int_equal(n->count, 0);
    assert_int_equal(c->n_dim, 0);
    assert_int_equal(c->count, 1);
    assert_memory_equal(c->data, &counter, sizeof counter);
    assert_false(hp_st_is_real(c));
    hp_safetensors_close(st);
    assert_no_temporary();
}

/* --- hostile files --- */

static const char *write_raw(const char *header, size_t data_bytes) {
    unsigned char bytes[4096] = {0};
    const size_t n = strlen(header);
    bytes[0] = (unsigned char)n;
    bytes[1] = (unsigned char)(n >> 8);
    memcpy(bytes + 8, header, n);
    return scratch_write("raw.safetensors", bytes, 8 + n + data_bytes);
}

static void refused(const char *path, const char *why) {
    hp_error err = {0};
    hp_safetensors *st = NULL;
    assert_int_equal(hp_safetensors_open(path, &st, &err), HP_EDATA);
    if (!strstr(err.text, why) || !strstr(err.text, path))
        fail_msg("'%s' or its name not in: %s", why, err.text);
    for (const char *c = err.text; *c; c++) assert_in_range(*c, ' ', '~');
}

static void hostile_headers_are_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *why;
    } files[] = {
        {"[]", 8, "not a JSON object"},
        {"{", 8, "not a JSON object"},
        {"{\"a\":1}", 8, "not an object"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
         8, "duplicate"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "no shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "no data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "not a size"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, "not a size"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
         "8 dimensions"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,2],\"data_offsets\":[0,8]}}", 8, "2^63"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387906],\"data_offsets\":[0,8]}}", 8,
         "not as long"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "not as long"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 8, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "hole"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, "of no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         12, "overlap"},
        {"{\"\\u001b[31m\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 8, "?[31m"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        refused(write_raw(files[i].header, files[i].data), files[i].why);
    refused(scratch_write("zeros", "\0\0\0\0\0\0\0\0\0\0", 10), "not a JSON object");
    refused(scratch_write("long", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10), "header of");
    refused(scratch_write("short", "12345678", 8), "not a file of more than 8 bytes");
    refused(scratch_path("missing"), "check the path");
    refused(scratch, "not a file");
}

/* Magic numbers from the formats' own documents. */
static void other_kinds_of_files_are_called_what_they_are(void **state) {
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } files[] = {
        {"SQLite format 3\0\20\0\1\1", 20, "an SQLite database"},
        {"PK\3\4\24\0\0\0\0\0", 10, "a zip archive, as PyTorch's .pt and .pth"},
        {"PK\3\4\24\0\0\0\0\0", 10, "safetensors.torch.save_file"},
        {"\x80\2}q\0X\7\0\0\0", 10, "a pickle"},
        {"\x89HDF\r\n\x1a\n\0\0", 10, "an HDF5 file"},
        {"\x1f\x8b\x8\0\0\0\0\0\0\3", 10, "compressed with gzip"},
        {"\x8\x8\x12\7pytorch:", 12, "an ONNX model, whose name should end in .onnx"},
        {"epoch loss\n1 2.5\n", 17, "a text"},
        {"\377\1\0\0\0\0\0\0{\"a\"", 12, "cut off"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        refused(scratch_write("kind", files[i].bytes, files[i].n), files[i].says);
}

static void more_tensors_than_the_limit_are_refused(void **state) {
    (void)state;
    enum { N = HP_ST_MAX_TENSORS + 2 };
    char *file = malloc(N * 80 + 16), *at = file + 8;
    at += sprintf(at, "{");
    for (int i = 0; i < N; i++)
        at +=
            sprintf(at, "%s\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "", i);
    at += sprintf(at, "}");
    const uint64_t length = (uint64_t)(at - file - 8);
    memcpy(file, &length, 8);
    refused(scratch_write("many", file, (size_t)(at - file)), "tensors; hplan reads up to 65536");
    free(file);
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    size_t n;
    unsigned char *bytes = scratch_read(write_sample(), &n);
    for (size_t k = 0; k < n; k++) refused(scratch_write("cut", bytes, k), "");
    free(bytes);
}

/* Reads everything that a file offers. */
static void read_all(const hp_safetensors *st) {
    for (int i = 0; i < hp_safetensors_count(st); i++) {
        const hp_st_tensor *t = hp_safetensors_tensor(st, i);
        double out[64];
        assert_in_range(t->count, 0, 64);
        assert_ptr_equal(hp_safetensors_find(st, t->name), t);
        if (hp_st_is_real(t)) hp_st_to_f64(t, out);
    }
}

/* A flipped header byte gives a refusal or other well-formed tensors, for example another name; a flipped
 * data byte changes that number. */
static void every_flipped_byte_is_refused_or_well_formed(void **state) {
    (void)state;
    size_t n;
    unsigned char *bytes = scratch_read(write_sample(), &n);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        hp_safetensors *st = NULL;
        hp_error err = {0};
        const hp_status s = hp_safetensors_open(scratch_write("flip", bytes, n), &st, &err);
        assert_true(s == HP_OK || (s == HP_EDATA && err.text[0]));
        if (s == HP_OK) read_all(st);
        hp_safetensors_close(st);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(bytes);
}

/* --- number formats --- */

/* Every finite and infinite half-precision value, against the definition of binary16 and of bfloat16 (the
 * upper half of a float). */
static void sixteen_bit_formats_follow_their_definition(void **state) {
    (void)state;
    for (uint32_t b = 0; b < 65536; b++) {
        const uint16_t bits = (uint16_t)b;
        hp_st_tensor t = {.dtype = HP_ST_F16, .count = 1, .data = (const unsigned char *)&bits};
        double got;
        float narrow, bf;
        hp_st_to_f64(&t, &got);
        hp_st_to_f32(&t, &narrow);
        const int e = (int)(b >> 10 & 31), f = (int)(b & 1023);
        const double size = e == 31 ? (f ? (double)NAN : (double)INFINITY)
                            : e     ? (1.0 + f / 1024.0) * pow(2.0, e - 15)
                                    : f / 1024.0 * pow(2.0, -14);
        const double want = b >> 15 ? -size : size;
        assert_true(isnan(want) ? isnan(got) && isnan(narrow) : got == want && (double)narrow == want);
        t.dtype = HP_ST_BF16;
        hp_st_to_f32(&t, &bf);
        uint32_t wide;
        memcpy(&wide, &bf, sizeof wide);
        if (!isnan(bf)) assert_int_equal(wide, b << 16);
    }
}

/* --- writing --- */

static const void *failing_data(void *self, int i, hp_error *err) {
    if (i == 0) return &counter;
    hp_fail(err, HP_EDEAD, "rank %d is gone", *(int *)self);
    return NULL;
}

static void a_failed_write_leaves_the_earlier_file(void **state) {
    (void)state;
    int rank = 3;
    const hp_st_source source = {failing_data, &rank};
    hp_error err = {0};
    size_t n, m;
    unsigned char *before = scratch_read(write_sample(), &n);
    assert_int_equal(hp_safetensors_write(scratch_path("sample.safetensors"), sample, 3, &source, &err),
                     HP_EDEAD);
    assert_string_equal(err.text, "rank 3 is gone");
    unsigned char *after = scratch_read(scratch_path("sample.safetensors"), &m);
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n);
    assert_no_temporary();
    free(before);
    free(after);
}

/* A file size limit simulates a full disk. */
static void a_full_disk_is_an_input_output_error(void **state) {
    (void)state;
    const hp_st_source source = {sample_data, NULL};
    struct rlimit old, small;
    hp_error err = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){100, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    const char *path = scratch_path("full.safetensors");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const hp_status s = hp_safetensors_write(path, sample, 3, &source, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(s, HP_EIO);
    assert_non_null(strstr(err.text, "free some space"));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(hp_safetensors_write("/dev/null/x", sample, 3, &source, &err), HP_ECREATE);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(what_is_written_is_read_back),
        IN_SCRATCH(hostile_headers_are_refused_with_the_reason),
        IN_SCRATCH(other_kinds_of_files_are_called_what_they_are),
        IN_SCRATCH(more_tensors_than_the_limit_are_refused),
        IN_SCRATCH(every_truncation_is_refused),
        IN_SCRATCH(every_flipped_byte_is_refused_or_well_formed),
        cmocka_unit_test(sixteen_bit_formats_follow_their_definition),
        IN_SCRATCH(a_failed_write_leaves_the_earlier_file),
        IN_SCRATCH(a_full_disk_is_an_input_output_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
