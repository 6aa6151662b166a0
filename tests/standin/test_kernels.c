/* test_kernels.c - kernels on the stand-in for a GPU: barriers, shuffles, tensor cores and 16-bit floats
 * against plain loops, and its diagnosis of wrong kernels. */
#include "base/rng.h"
#include "tests/standin/probe.h"
#include "tests/support/standin/standin_child.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 5000, SEEDS = 4 };

static int dice(uint64_t at, int low, int high) {
    return low + (int)hp_rng_below(3, 1, at, (uint64_t)(high - low + 1));
}

static void *put(const void *from, size_t bytes) {
    void *d = new_device(bytes);
    CUDA(cudaMemcpy(d, from, bytes, cudaMemcpyHostToDevice));
    return d;
}

static void get(void *to, const void *from, size_t bytes) {
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

/* --- threads of a block --- */

static void check_sums(unsigned threads, int broken) {
    int32_t x[N], got[N];
    for (int i = 0; i < N; i++) x[i] = dice((uint64_t)i, -1000, 1000);
    const int blocks = (int)((N + threads - 1) / threads);
    int32_t *sum = new_device(sizeof got);
    CUDA(probe_sum(sum, put(x, sizeof x), N, threads, broken, new_stream()));
    get(got, sum, sizeof got);
    for (int b = 0; b < blocks; b++) {
        int32_t want = 0;
        for (int i = b * (int)threads; i < N && i < (b + 1) * (int)threads; i++) want += x[i];
        CHECK(got[b] == want);
    }
}

static void sums(void) {
    static const unsigned THREADS[] = {1, 2, 31, 32, 33, 100, 256, 1000, 1024};
    for (size_t i = 0; i < sizeof THREADS / sizeof *THREADS; i++) check_sums(THREADS[i], 0);
}

static void broken_sums(void) {
    check_sums(256, 1);
}

static void barriers_make_sums_whole(void **state) {
    (void)state;
    assert_int_equal(children_failed(sums, SEEDS), 0);
}

static void a_missing_barrier_is_seen_in_either_order(void **state) {
    (void)state;
    for (int seed = 0; seed < SEEDS; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        assert_false(child_law(broken_sums, "HPLAN_STANDIN_SEED", text, true));
    }
}

static void transposed(void) {
    enum { ROWS = 37, COLUMNS = 50 };
    float x[ROWS * COLUMNS], t[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)i;
    const probe_matrices m = {ROWS, COLUMNS, put(x, sizeof x), new_device(sizeof t)};
    CUDA(probe_transpose(&m, new_stream()));
    get(t, m.t, sizeof t);
    for (int y = 0; y < ROWS; y++)
        for (int c = 0; c < COLUMNS; c++) CHECK(t[c * ROWS + y] == x[y * COLUMNS + c]);
}

static void tiles_in_shared_memory_transpose(void **state) {
    (void)state;
    assert_int_equal(children_failed(transposed, SEEDS), 0);
}

static void shuffled(void) {
    enum { T = 96 };
    int32_t x[T], sum[T], segments[T / 8];
    for (int i = 0; i < T; i++) x[i] = dice((uint64_t)i, -1000, 1000);
    int32_t *d_sum = new_device(sizeof sum), *d_segments = new_device(sizeof segments);
    CUDA(probe_warps(d_sum, d_segments, put(x, sizeof x), T, new_stream()));
    get(sum, d_sum, sizeof sum);
    get(segments, d_segments, sizeof segments);
    for (int i = 0; i < T; i++) {
        int32_t want = 0;
        for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++) want += x[k];
        CHECK(sum[i] == want);
    }
    for (int s = 0; s < T / 8; s++) {
        int32_t want = 0;
        for (int k = 8 * s; k < 8 * s + 8; k++) want += x[k];
        CHECK(segments[s] == want);
    }
}

static void warps_exchange_what_their_lanes_hold(void **state) {
    (void)state;
    assert_int_equal(children_failed(shuffled, SEEDS), 0);
}

static void counted(void) {
    uint8_t x[N];
    unsigned long long bins[256] = {0}, want[256] = {0};
    for (int i = 0; i < N; i++) want[x[i] = (uint8_t)dice((uint64_t)i, 0, 255)]++;
    unsigned long long *d = put(bins, sizeof bins);
    const uint8_t *from = put(x, sizeof x);
    for (int k = 0; k < 4; k++) CUDA(probe_count(d, from, N, new_stream()));
    get(bins, d, sizeof bins);
    for (int i = 0; i < 256; i++) CHECK(bins[i] == 4 * want[i]);
}

static void streams_count_into_the_same_bins(void **state) {
    (void)state;
    assert_int_equal(children_failed(counted, SEEDS), 0);
}

/* --- arithmetic --- */

static void multiplied(void) {
    enum { K = 96 };
    uint8_t a[16 * K];
    int8_t b[K * 8];
    int32_t d[16 * 8], got[16 * 8];
    for (int i = 0; i < 16 * K; i++) a[i] = (uint8_t)dice((uint64_t)i, 0, 255);
    for (int i = 0; i < K * 8; i++) b[i] = (int8_t)dice((uint64_t)i + 5000, -128, 127);
    for (int i = 0; i < 16 * 8; i++) d[i] = dice((uint64_t)i + 9000, -1000000, 1000000);
    int32_t *to = put(d, sizeof d);
    CUDA(probe_mma(to, put(a, sizeof a), put(b, sizeof b), K, new_stream()));
    get(got, to, sizeof got);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            int32_t want = d[i * 8 + j];
            for (int k = 0; k < K; k++) want += a[i * K + k] * b[k * 8 + j];
            CHECK(got[i * 8 + j] == want);
        }
}

static void tensor_cores_multiply_bytes_exactly(void **state) {
    (void)state;
    assert_int_equal(children_failed(multiplied, SEEDS), 0);
}

/* Value of a float with `exponents` exponent bits and `digits` fraction bits, by definition. */
static double value_of(unsigned bits, int exponents, int digits) {
    const int bias = (1 << (exponents - 1)) - 1, e = (int)(bits >> digits) & ((1 << exponents) - 1);
    const double fraction = (double)(bits & ((1u << digits) - 1)), unit = ldexp(1, -digits);
    const double sign = bits >> 15 ? -1 : 1;
    if (e == (1 << exponents) - 1) return fraction != 0 ? NAN : sign * INFINITY;
    return sign * (e ? ldexp(1 + fraction * unit, e - bias) : ldexp(fraction * unit, 1 - bias));
}

/* No neighbour is nearer, and on a tie the even one is taken. Infinity counts as the next power of two. */
static void check_nearest(double x, unsigned bits, int exponents, int digits) {
    const unsigned infinity = ((1u << exponents) - 1) << digits, size = bits & 0x7fff;
    const double top = ldexp(1, 1 << (exponents - 1)),
                 at = size == infinity ? top : value_of(size, exponents, digits);
    const double off = fabs(fabs(x) - at);
    CHECK(signbit(x) == (int)(bits >> 15) || !signbit(x) == !(bits >> 15));
    CHECK(size <= infinity);
    for (int by = -1; by <= 1; by += 2) {
        const unsigned other = size + (unsigned)by;
        if ((by < 0 && size == 0) || other > infinity) continue;
        const double there = other == infinity ? top : value_of(other, exponents, digits);
        const double its = fabs(fabs(x) - there);
        CHECK(off < its || (off == its && size % 2 == 0) || (size == infinity && fabs(x) > top));
    }
}

static void rounded(void) {
    enum { M = 20000 };
    static float x[M], b[M], h[M];
    static uint16_t bf16[M], f16[M];
    for (int i = 0; i < M; i++) {
        const uint32_t bits =
            (uint32_t)dice(2 * (uint64_t)i, 0, 65535) << 16 |
            (uint32_t)dice(2 * (uint64_t)i + 1, 0, 3) * 0x4000u; /* half of them are ties of bf16 */
        memcpy(&x[i], &bits, 4);
        if (i % 2)
            x[i] =
                (float)ldexp(dice((uint64_t)i, -8200, 8200), dice((uint64_t)i + M, -28, 4)); /* ties of f16 */
        if (!isfinite(x[i])) x[i] = 0;
    }
    uint16_t *db = new_device(sizeof bf16), *dh = new_device(sizeof f16);
    float *fb = new_device(sizeof b), *fh = new_device(sizeof h);
    CUDA(probe_round(db, dh, fb, fh, put(x, sizeof x), M, new_stream()));
    get(bf16, db, sizeof bf16);
    get(f16, dh, sizeof f16);
    get(b, fb, sizeof b);
    get(h, fh, sizeof h);
    for (int i = 0; i < M; i++) {
        check_nearest((double)x[i], bf16[i], 8, 7);
        check_nearest((double)x[i], f16[i], 5, 10);
        CHECK((double)b[i] == value_of(bf16[i], 8, 7) && (double)h[i] == value_of(f16[i], 5, 10));
    }
}

static void floats_of_16_bits_are_the_nearest(void **state) {
    (void)state;
    assert_true(child_law(rounded, NULL, NULL, false));
}

/* --- wrong kernels --- */

static void stuck(void) {
    const cudaStream_t s = new_stream();
    CUDA(probe_stuck(s));
    CUDA(cudaStreamSynchronize(s));
}

static void partial_warp(void) { /* asks for lanes that the block does not have */
    int32_t *d = new_device(400);
    CUDA(probe_warps(d, d, d, 20, new_stream()));
    CUDA(cudaDeviceSynchronize());
}

static void too_large(void) {
    int32_t *d = new_device(4);
    CHECK(probe_sum(d, d, 1, 1025, 0, new_stream()) == cudaErrorInvalidConfiguration);
    CHECK(probe_sum(d, d, 0, 32, 0, new_stream()) == cudaErrorInvalidConfiguration); /* no blocks */
    CUDA(cudaDeviceSynchronize());
}

static void kernels_that_wait_in_vain_end(void **state) {
    (void)state;
    assert_false(child_law(stuck, NULL, NULL, true));
    assert_false(child_law(partial_warp, NULL, NULL, true));
    assert_true(child_law(too_large, NULL, NULL, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barriers_make_sums_whole),
        cmocka_unit_test(a_missing_barrier_is_seen_in_either_order),
        cmocka_unit_test(tiles_in_shared_memory_transpose),
        cmocka_unit_test(warps_exchange_what_their_lanes_hold),
        cmocka_unit_test(streams_count_into_the_same_bins),
        cmocka_unit_test(tensor_cores_multiply_bytes_exactly),
        cmocka_unit_test(floats_of_16_bits_are_the_nearest),
        cmocka_unit_test(kernels_that_wait_in_vain_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
