/* test_codes.c - codecs against their closed forms: maximum errors, exact values, non-finite values, and the
 * size that plans assume for codes. */
#include "exec/device/codec/code.h"
#include "base/rng.h"
#include "plan/codec/codecs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <zfp.h>

enum { MOST = 1500, MARK = 0x5a };

/* Values of all magnitudes of float32, or of a few octaves. */
static void draw(uint64_t seed, int n, int octaves, float *x) {
    for (int i = 0; i < n; i++) {
        const int e = (int)hp_rng_below(seed, 1, (uint64_t)i, (uint64_t)octaves) - octaves / 2;
        x[i] = (float)ldexp(2 * hp_rng_uniform(seed, 2, (uint64_t)i) - 1, e);
    }
}

/* Encodes and decodes values of `dtype`; nothing is written beyond the code's bytes. */
static void round_trip(hp_codec codec, hp_dtype dtype, const float *x, int n, float *y) {
    const int64_t bytes = hp_codec_bytes(codec, n, 1);
    unsigned char *code = malloc((size_t)bytes + 1);
    double in[MOST], out[MOST];
    assert_non_null(code);
    code[bytes] = MARK;
    for (int i = 0; i < n; i++) in[i] = (double)x[i];
    const bool f32 = dtype == HP_F32;
    hp_bound b = {.code.codec = codec, .dtype = dtype, .count = n, .code.cols = 1, .code.n = 1, .y = code};
    b.x[0] = f32 ? (void *)(uintptr_t)x : in;
    hp_code_encode(&b);
    assert_int_equal(code[bytes], MARK);
    b.x[0] = code;
    b.y = f32 ? (void *)y : out;
    hp_code_decode(&b);
    for (int i = 0; i < n && !f32; i++) y[i] = (float)out[i];
    free(code);
}

/* A float with `mantissa` fraction bits is off by at most half of the last one; least: its
 * smallest normal number. */
static double half_ulp(double v, int mantissa, double least) {
    int e;
    frexp(fmax(fabs(v), least), &e);
    return ldexp(0.5, e - 1 - mantissa);
}

static void casts_are_off_by_half_an_ulp(void **state) {
    (void)state;
    static const struct {
        hp_codec codec;
        int mantissa, octaves;
        double least;
    } row[] = {{HP_CODEC_BF16, 7, 200, 0x1p-126}, {HP_CODEC_FP16, 10, 30, 0x1p-14}};
    float x[MOST], y[MOST];
    for (int k = 0; k < 4; k++) {
        const hp_dtype dtype = k / 2 ? HP_F64 : HP_F32;
        draw((uint64_t)k, MOST, row[k % 2].octaves, x);
        round_trip(row[k % 2].codec, dtype, x, MOST, y);
        for (int i = 0; i < MOST; i++)
            assert_true(fabs((double)y[i] - (double)x[i]) <=
                        half_ulp((double)x[i], row[k % 2].mantissa, row[k % 2].least));
        float again[MOST]; /* encoding decoded values is exact */
        round_trip(row[k % 2].codec, dtype, y, MOST, again);
        assert_memory_equal(again, y, sizeof y);
    }
}

static void int8_is_off_by_half_a_scale(void **state) {
    (void)state;
    float x[MOST], y[MOST];
    for (uint64_t seed = 1; seed <= 50; seed++) {
        const int n = 1 + (int)hp_rng_below(seed, 9, 0, MOST);
        draw(seed, n, 1 + (int)seed % 40, x);
        round_trip(HP_CODEC_INT8, seed % 2 ? HP_F32 : HP_F64, x, n, y);
        for (int first = 0; first < n; first += HP_CODEC_BLOCK) {
            double most = 0;
            for (int i = first; i < n && i < first + HP_CODEC_BLOCK; i++)
                most = fmax(most, fabs((double)x[i]));
            for (int i = first; i < n && i < first + HP_CODEC_BLOCK; i++)
                assert_true(fabs((double)y[i] - (double)x[i]) <= most / 127 / 2 * (1 + 0x1p-20));
        }
    }
}

/* Multiples of a power of two, up to 127 times it, are exact. */
static void int8_has_its_multiples(void **state) {
    (void)state;
    float x[MOST], y[MOST];
    for (int i = 0; i < MOST; i++) x[i] = ldexpf((float)(i % 255 - 127), i / HP_CODEC_BLOCK);
    for (int i = 0; i < MOST; i += HP_CODEC_BLOCK) x[i] = ldexpf(127, i / HP_CODEC_BLOCK);
    round_trip(HP_CODEC_INT8, HP_F32, x, MOST, y);
    assert_memory_equal(x, y, sizeof x);
}

static void sums_are_those_of_what_was_encoded(void **state) {
    (void)state;
    enum { CODES = 3, N = 700 };
    const int64_t bytes = hp_codec_bytes(HP_CODEC_INT8, N, 1);
    unsigned char *code = malloc((size_t)bytes * CODES);
    float x[N], y[N], sum[N];
    double want[N] = {0};
    assert_non_null(code);
    hp_bound b = {.code.codec = HP_CODEC_INT8, .dtype = HP_F32, .count = N, .code.cols = 1, .code.n = CODES};
    for (int k = 0; k < CODES; k++) {
        draw((uint64_t)k, N, 20, x);
        b.x[0] = x;
        b.y = code + k * bytes;
        hp_code_encode(&b);
        round_trip(HP_CODEC_INT8, HP_F32, x, N, y);
        for (int i = 0; i < N; i++) want[i] += (double)y[i];
    }
    b.x[0] = code;
    b.y = sum;
    hp_code_decode(&b);
    for (int i = 0; i < N; i++) assert_true(sum[i] == (float)want[i]);
    free(code);
}

/* The applied and the kept part add up to the input. */
static void feedback_loses_nothing(void **state) {
    (void)state;
    enum { N = 600, STEPS = 50 };
    for (int k = 0; k < 2; k++) {
        double exact[N] = {0}, applied[N] = {0}, residual[N] = {0}, in[N], out[N], most = 0;
        float in_f[N], out_f[N], residual_f[N] = {0};
        unsigned char *code = malloc((size_t)hp_codec_bytes(HP_CODEC_INT8, N, 1));
        assert_non_null(code);
        hp_bound b = {.code.codec = HP_CODEC_INT8,
                      .dtype = k ? HP_F64 : HP_F32,
                      .count = N,
                      .code.cols = 1,
                      .code.n = 1};
        for (int step = 0; step < STEPS; step++) {
            draw((uint64_t)step, N, 20, in_f);
            for (int i = 0; i < N; i++) exact[i] += in[i] = (double)in_f[i];
            b.x[0] = k ? (void *)in : in_f;
            b.y = code;
            b.code.residual = k ? (void *)residual : residual_f;
            hp_code_encode(&b);
            b.x[0] = code;
            b.y = k ? (void *)out : out_f;
            hp_code_decode(&b);
            for (int i = 0; i < N; i++) applied[i] += k ? out[i] : (double)out_f[i];
            for (int i = 0; i < N; i++) most = fmax(most, fabs(in[i]));
        }
        for (int i = 0; i < N; i++) {
            const double kept = k ? residual[i] : (double)residual_f[i];
            assert_true(fabs(applied[i] + kept - exact[i]) <= STEPS * most * (k ? 0x1p-50 : 0x1p-23));
            assert_true(fabs(kept) <=
                        most / 127); /* half a scale of values that already contain half a scale */
        }
        free(code);
    }
}

static void what_is_not_finite_stays_so(void **state) {
    (void)state;
    const float x[4] = {1, INFINITY, NAN, -1e30f};
    float y[4];
    round_trip(HP_CODEC_BF16, HP_F32, x, 4, y);
    assert_true(y[0] == 1 && isinf(y[1]) && isnan(y[2]) && isfinite(y[3]));
    round_trip(HP_CODEC_FP16, HP_F32, x, 4, y);
    assert_true(y[0] == 1 && isinf(y[1]) && isnan(y[2]) && y[3] == -65504);
    round_trip(HP_CODEC_INT8, HP_F32, x, 2, y);
    assert_true(isnan(y[0]) && isnan(y[1]));
    const float none[2] = {0, 0};
    round_trip(HP_CODEC_INT8, HP_F32, none, 2, y);
    assert_true(y[0] == 0 && y[1] == 0);
}

/* libzfp's own routines read and write the same stream. */
static void zfp_is_libzfps(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        const int rows = 1 + (int)hp_rng_below(seed, 4, 0, 30), cols = 1 + (int)hp_rng_below(seed, 4, 1, 30),
                  rate = 1 + (int)hp_rng_below(seed, 4, 2, 31);
        const hp_codec codec = hp_codec_of(HP_CODEC_ZFP, rate);
        const size_t bytes = (size_t)hp_codec_bytes(codec, rows, cols);
        float x[900], y[900], theirs[900];
        double in[900], out[900];
        unsigned char *code = malloc(bytes + 1), *want = malloc(bytes + 1);
        assert_non_null(code);
        assert_non_null(want);
        draw(seed, rows * cols, 8, x);
        for (int i = 0; i < rows * cols; i++) in[i] = (double)x[i];
        bitstream *s = stream_open(want, bytes);
        zfp_stream *z = zfp_stream_open(s);
        zfp_stream_set_rate(z, rate, zfp_type_float, 2, zfp_false);
        zfp_field *f = zfp_field_2d(x, zfp_type_float, (size_t)cols, (size_t)rows);
        const size_t written = zfp_compress(z, f);
        /* the size that plans assume */
        assert_in_range(bytes, written, written + (64 - stream_word_bits) / 8);
        code[bytes] = MARK;
        hp_bound b = {.code.codec = codec,
                      .dtype = seed % 2 ? HP_F32 : HP_F64,
                      .count = rows * cols,
                      .code.cols = cols,
                      .code.n = 1};
        b.x[0] = seed % 2 ? (void *)x : in;
        b.y = code;
        hp_code_encode(&b);
        assert_memory_equal(code, want, written);
        assert_int_equal(code[bytes], MARK);
        b.x[0] = code;
        b.y = seed % 2 ? (void *)y : out;
        hp_code_decode(&b);
        zfp_stream_rewind(z);
        zfp_field_set_pointer(f, theirs);
        assert_true(zfp_decompress(z, f) > 0);
        for (int i = 0; i < rows * cols; i++) assert_true((seed % 2 ? y[i] : (float)out[i]) == theirs[i]);
        zfp_field_free(f);
        zfp_stream_close(z);
        stream_close(s);
        free(want);
        free(code);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(casts_are_off_by_half_an_ulp), cmocka_unit_test(int8_is_off_by_half_a_scale),
        cmocka_unit_test(int8_has_its_multiples),       cmocka_unit_test(sums_are_those_of_what_was_encoded),
        cmocka_unit_test(feedback_loses_nothing),       cmocka_unit_test(zfp_is_libzfps),
        cmocka_unit_test(what_is_not_finite_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
