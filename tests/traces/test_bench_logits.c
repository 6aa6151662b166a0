/* test_bench_logits.c - arrays of logits: .npy files byte by byte as NEP 1 defines them, hostile files, and
 * the figures that compare two networks. */
#include "tests/support/traces/trace_fixture.h"
#include "traces/logits.h"
#include "traces/npy.h"

static char path[200];

typedef struct file {
    unsigned char byte[4096];
    size_t n;
} file;

/* Magic, version, length, the dictionary padded with blanks to a multiple of 64 and ended
 * by a newline, data. */
static file make_file(int version, const char *dictionary, const void *data, size_t size) {
    file f = {.n = 8};
    const size_t wide = version == 1 ? 2 : 4, start = 8 + wide, text = strlen(dictionary);
    const size_t length = (start + text + 1 + 63) / 64 * 64 - start;
    memcpy(f.byte, "\x93NUMPY", 6);
    f.byte[6] = (unsigned char)version;
    for (size_t i = 0; i < wide; i++) f.byte[f.n++] = (unsigned char)(length >> 8 * i);
    memset(f.byte + start, ' ', length);
    memcpy(f.byte + start, dictionary, text);
    f.byte[start + length - 1] = '\n';
    memcpy(f.byte + start + length, data, size);
    f.n = start + length + size;
    return f;
}

static void write_bytes(const unsigned char *byte, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(byte, 1, n, f), n);
    fclose(f);
}

static hp_status read_file(hp_arena *arena, const file *f, hp_npy *a) {
    hp_error err = {0};
    write_bytes(f->byte, f->n);
    const hp_status s = hp_npy_read(arena, path, a, &err);
    if (s != HP_OK) {
        assert_int_equal(s, HP_EDATA);
        assert_non_null(strstr(err.text, path));
    }
    return s;
}

static hp_status read_text(const char *dictionary, const void *data, size_t size) {
    hp_arena *arena = hp_arena_new();
    hp_npy a;
    const file f = make_file(1, dictionary, data, size);
    const hp_status s = read_file(arena, &f, &a);
    hp_arena_free(arena);
    return s;
}

static void every_version_and_type_reads(void **state) {
    (void)state;
    static const float f4[] = {1, -2, 3, 0.5f, 5, 6};
    static const double f8[] = {1, -2, 3, 0.5, 5, 6};
    static const int32_t i4[] = {1, -2, 3, 0, 5, 6};
    static const int64_t i8[] = {1, -2, 3, 0, 5, 6};
    static const uint8_t u1[] = {1, 254, 3, 0, 5, 6};
    static const struct {
        const char *descr;
        const void *data;
        size_t size;
        float second, fourth;
    } rows[] = {{"<f4", f4, sizeof f4, -2, 0.5f},
                {"<f8", f8, sizeof f8, -2, 0.5f},
                {"<i4", i4, sizeof i4, -2, 0},
                {"<i8", i8, sizeof i8, -2, 0},
                {"|u1", u1, sizeof u1, 254, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int version = 1; version <= 3; version++) {
            char text[100];
            hp_npy a;
            hp_arena *arena = hp_arena_new();
            snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }",
                     rows[i].descr);
            const file f = make_file(version, text, rows[i].data, rows[i].size);
            assert_int_equal(read_file(arena, &f, &a), HP_OK);
            assert_int_equal(a.n_dim, 2);
            assert_int_equal(a.dim[0], 2);
            assert_int_equal(a.dim[1], 3);
            assert_int_equal(a.count, 6);
            assert_true(a.data[0] == 1 && a.data[1] == rows[i].second && a.data[3] == rows[i].fourth &&
                        a.data[5] == 6);
            hp_arena_free(arena);
        }
}

static void headers_may_vary_as_python_allows(void **state) {
    (void)state;
    const float x[3] = {1, 2, 3};
    static const char *const fine[] = {"{'shape': (3,), 'fortran_order': False, 'descr': '<f4'}",
                                       "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(3,1,)}",
                                       "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 1), }"};
    for (size_t i = 0; i < 3; i++) assert_int_equal(read_text(fine[i], x, sizeof x), HP_OK);
    assert_int_equal(read_text("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", x, 4), HP_OK);
    assert_int_equal(read_text("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", x, 0), HP_OK);
}

static void other_arrays_are_rejected(void **state) {
    (void)state;
    const float x[3] = {1, 2, 3};
    static const char *const bad[] = {
        "{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': False, 'extra': 1, 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': False, }",
        "{'descr': '<f4', 'shape': (3,), }",
        "{'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (3,), }",
        "{",
        ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (read_text(bad[i], x, sizeof x) != HP_EDATA) fail_msg("accepted: %s", bad[i]);
}

/* Every bit of every byte, and every length: the result is the array with its shape, perhaps with other
 * values, or an error. */
static void damaged_files_are_rejected_or_keep_their_shape(void **state) {
    (void)state;
    const float x[] = {1, 2, 3, 4, 5, 6};
    const file good =
        make_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", x, sizeof x);
    for (size_t at = 0; at < good.n; at++)
        for (int bit = 0; bit < 8; bit++) {
            hp_arena *arena = hp_arena_new();
            hp_npy a;
            file f = good;
            f.byte[at] ^= (unsigned char)(1 << bit);
            if (read_file(arena, &f, &a) == HP_OK) assert_int_equal(a.count * 4 % 24, 0);
            hp_arena_free(arena);
        }
    for (size_t n = 0; n < good.n; n++) {
        hp_npy a;
        hp_arena *arena = hp_arena_new();
        file f = good;
        f.n = n;
        assert_int_equal(read_file(arena, &f, &a), HP_EDATA);
        hp_arena_free(arena);
    }
}

static void what_is_no_file_is_rejected(void **state) {
    (void)state;
    hp_error err = {0};
    hp_npy a;
    hp_arena *arena = hp_arena_new();
    assert_int_equal(hp_npy_read(arena, "/tmp", &a, &err), HP_EDATA);
    assert_int_equal(hp_npy_read(arena, "/nonexistent/x.npy", &a, &err), HP_EDATA);
    hp_arena_free(arena);
}

/* --- figures --- */

static void argmax_is_the_first_of_the_largest(void **state) {
    (void)state;
    assert_int_equal(hp_logits_argmax((const float[]){1, 3, 3, 2}, 4), 1);
    assert_int_equal(hp_logits_argmax((const float[]){-INFINITY, -INFINITY}, 2), 0);
    assert_int_equal(hp_logits_argmax((const float[]){-5}, 1), 0);
    assert_int_equal(hp_logits_argmax((const float[]){1, NAN, 3}, 3), -1);
}

static void top1_counts_rows_with_labels(void **state) {
    (void)state;
    const float x[] = {0, 1, 1, 0, 5, 4, NAN, 1}, label[] = {1, 1, -1, 1};
    assert_true(hp_logits_top1(x, label, 4, 2) == 1.0 / 3);
    assert_true(isnan(hp_logits_top1(x, (const float[]){-1, -1, -1, NAN}, 4, 2)));
}

static void agreement_is_the_share_of_equal_answers(void **state) {
    (void)state;
    const float x[] = {0, 1, 1, 0, 5, 4, NAN, 1}, y[] = {7, 8, 3, 9, 1, 0, NAN, 1};
    assert_true(hp_logits_agreement(x, y, 4, 2) == 0.5); /* two NaN rows have no class to agree on */
    assert_true(hp_logits_agreement(x, x, 3, 2) == 1);
}

/* Noise of a tenth of every value is 20 dB, of a half 6.02 dB; scaling both changes nothing. */
static void sqnr_has_its_closed_form(void **state) {
    (void)state;
    float x[64], tenth[64], half[64], large[64], larger[64];
    for (int i = 0; i < 64; i++) {
        x[i] = (float)((i % 2 ? -1 : 1) * (1 << i % 8));
        tenth[i] = x[i] + x[i] / 10;
        half[i] = x[i] / 2;
        large[i] = 1024 * x[i];
        larger[i] = 1024 * half[i];
    }
    assert_true(fabs(hp_logits_sqnr_db(x, tenth, 64) - 20) < 1e-4);
    assert_true(fabs(hp_logits_sqnr_db(x, half, 64) - 20 * log10(2)) < 1e-9);
    assert_true(hp_logits_sqnr_db(large, larger, 64) == hp_logits_sqnr_db(x, half, 64));
    assert_true(isinf(hp_logits_sqnr_db(x, x, 64)));
    assert_true(isnan(hp_logits_sqnr_db(x, (const float[]){NAN}, 1)));
}

/* Rounding to steps of s leaves noise of s^2 / 12 (Bennett 1948): 6.02 dB per bit. */
static void a_bit_is_worth_six_decibels(void **state) {
    (void)state;
    enum { N = 1 << 16 };
    static float x[N], y[N];
    double before = 0;
    for (int bits = 6; bits <= 10; bits++) {
        for (int i = 0; i < N; i++) {
            x[i] = 2 * ((float)i + 0.5f) / N - 1; /* uniform in -1 .. 1 */
            const float steps = ldexpf(1, bits - 1);
            y[i] = (floorf(x[i] * steps) + 0.5f) / steps;
        }
        const double db = hp_logits_sqnr_db(x, y, N);
        assert_true(fabs(db - 20 * log10(2) * bits) < 0.01);
        assert_true(db > before);
        before = db;
    }
}

static int tidy(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    fixture_path(path, sizeof path, "logits.npy");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_and_type_reads),
        cmocka_unit_test(headers_may_vary_as_python_allows),
        cmocka_unit_test(other_arrays_are_rejected),
        cmocka_unit_test(damaged_files_are_rejected_or_keep_their_shape),
        cmocka_unit_test(what_is_no_file_is_rejected),
        cmocka_unit_test(argmax_is_the_first_of_the_largest),
        cmocka_unit_test(top1_counts_rows_with_labels),
        cmocka_unit_test(agreement_is_the_share_of_equal_answers),
        cmocka_unit_test(sqnr_has_its_closed_form),
        cmocka_unit_test(a_bit_is_worth_six_decibels),
    };
    return cmocka_run_group_tests(tests, NULL, tidy);
}
