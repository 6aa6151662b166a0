/* test_clip.c - the range that calibration keeps: closed forms, published optima, direct definitions, and
 * that no partition of the data changes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/quant/clip.h"
#include "base/rng.h"
#include "base/status.h"

static hp_histogram *empty(double lo, double hi) {
    hp_histogram *h = malloc(sizeof *h);
    assert_non_null(h);
    hp_histogram_start(h, (hp_range){lo, hi});
    return h;
}

/* 1e12 elements of the distribution, cut off at the ends of the range. */
static hp_histogram *distributed(double (*cdf)(double), double lo, double hi) {
    hp_histogram *h = empty(lo, hi);
    const double width = hp_histogram_width(h);
    for (int i = 0; i < HP_BINS; i++)
        h->count[i] = llrint(1e12 * (cdf(lo + (i + 1) * width) - cdf(lo + i * width)));
    return h;
}

static double normal(double x) {
    return 0.5 * erfc(-x / sqrt(2));
}

static double laplace(double x) {
    return x < 0 ? 0.5 * exp(x) : 1 - 0.5 * exp(-x);
}

static double uniform(double x) {
    return x < -1 ? 0 : x > 1 ? 1 : 0.5 * (x + 1);
}

static hp_range clip(const hp_histogram *h, int kind) {
    const hp_range r = hp_clip(h, &(hp_clip_options){kind, 99.99});
    assert_true(r.lo >= h->range.lo && r.hi <= h->range.hi && r.lo <= r.hi);
    return r;
}

static void near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance)) fail_msg("%g, not %g within %g", got, want, tolerance);
}

/* --- affine quantisation of a range --- */

static void real_zero_is_a_level_and_the_range_is_covered(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        const double a = 20 * hp_rng_uniform(1, 0, i) - 10, b = 20 * hp_rng_uniform(1, 1, i) - 10;
        const double size = pow(10, 20 * hp_rng_uniform(1, 2, i) - 10);
        const hp_range r = {size * fmin(a, b), size * fmax(a, b)};
        const hp_qparam q = hp_qparam_of(r);
        const double lo = fmin(r.lo, 0), hi = fmax(r.hi, 0), step = (double)q.scale;
        near(step, (hi - lo) / 255, 1e-7 * step);
        assert_in_range(q.zero, 0, 255);
        /* ends are at most half a level outside */
        assert_true(lo >= (0 - q.zero - 0.5001) * step && hi <= (255 - q.zero + 0.5001) * step);
        if (r.lo >= 0) assert_int_equal(q.zero, 0);
        if (r.hi <= 0) assert_int_equal(q.zero, 255);
    }
}

static void ranges_without_extent_have_a_scale(void **state) {
    (void)state;
    static const hp_range ranges[] = {{0, 0}, {1, 0}, {1e-30, 1e-30}, {-1e-300, 0}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const hp_qparam q = hp_qparam_of(ranges[i]);
        assert_true(q.scale == 1.0f);
        assert_int_equal(q.zero, 0);
    }
    const hp_qparam five = hp_qparam_of((hp_range){5, 5}); /* a constant: 255 represents it */
    near((double)five.scale * 255, 5, 1e-6);
}

/* --- the histogram --- */

static void counts_follow_the_definition(void **state) {
    (void)state;
    enum { N = 100000 };
    double *d = malloc(N * sizeof *d);
    int64_t zeros = 0, want[HP_BINS] = {0};
    for (int i = 0; i < N; i++) {
        d[i] = i % 7 ? hp_rng_normal(2, 0, (uint64_t)i) : 0;
        const double at = floor((d[i] + 3) / (6.0 / HP_BINS)); /* outliers count at the ends */
        zeros += d[i] == 0;
        if (d[i] != 0) want[at < 0 ? 0 : at > HP_BINS - 1 ? HP_BINS - 1 : (int)at]++;
    }
    hp_histogram *h = empty(-3, 3);
    hp_histogram_count(h, d, N);
    assert_int_equal(h->zeros, zeros);
    int64_t moved = 0; /* rounding at an edge may move an element to the next bin */
    for (int i = 0; i < HP_BINS; i++) moved += llabs(h->count[i] - want[i]);
    assert_true(moved <= 4);
    free(d), free(h);
}

/* As ranks add their counts up (exec/run/observe.c). */
static void merge(hp_histogram *sum, const hp_histogram *part) {
    sum->zeros += part->zeros;
    for (int i = 0; i < HP_BINS; i++) sum->count[i] += part->count[i];
}

/* Every way to share elements out to ranks, and every order to merge them, gives the same choice. */
static void no_partition_changes_the_choice(void **state) {
    (void)state;
    enum { N = 20000, MOST = 7 };
    double *x = malloc(N * sizeof *x);
    for (int i = 0; i < N; i++) x[i] = exp(hp_rng_normal(3, 0, (uint64_t)i)) - 0.5;
    hp_histogram *whole = empty(-0.5, 60);
    hp_histogram_count(whole, x, N);
    for (uint64_t draw = 0; draw < 20; draw++) {
        const int ranks = 1 + (int)hp_rng_below(4, 0, draw, MOST);
        hp_histogram *part[MOST], *sum = empty(-0.5, 60);
        for (int r = 0; r < ranks; r++) part[r] = empty(-0.5, 60);
        for (int i = 0, n; i < N; i += n) {
            n = 1 + (int)hp_rng_below(5 + draw, 1, (uint64_t)i, 300);
            if (n > N - i) n = N - i;
            hp_histogram_count(part[hp_rng_below(5 + draw, 2, (uint64_t)i, (uint64_t)ranks)], x + i, n);
        }
        for (int r = ranks - 1; r >= 0; r--) merge(sum, part[r]);
        assert_memory_equal(sum, whole, sizeof *sum);
        for (int k = 0; k < HP_OBSERVERS; k++) {
            const hp_range a = clip(whole, k), b = clip(sum, k);
            assert_memory_equal(&a, &b, sizeof a);
        }
        for (int r = 0; r < ranks; r++) free(part[r]);
        free(sum);
    }
    free(x), free(whole);
}

/* --- the choices --- */

static void minmax_keeps_all(void **state) {
    (void)state;
    hp_histogram *h = distributed(normal, -9, 7);
    const hp_range r = clip(h, HP_OBSERVE_MINMAX);
    assert_true(r.lo == -9 && r.hi == 7);
    free(h);
}

/* Quantiles of the normal distribution: 0.005 % lie beyond 3.8906 on each side; of |x|, 0.01 % above. */
static void percentile_is_the_quantile(void **state) {
    (void)state;
    hp_histogram *h = distributed(normal, -8, 8);
    const hp_range r = clip(h, HP_OBSERVE_PERCENTILE);
    near(r.lo, -3.890592, 16.0 / HP_BINS);
    near(r.hi, 3.890592, 16.0 / HP_BINS);
    hp_histogram *half = empty(0, 8);
    for (int i = 0; i < HP_BINS; i++)
        half->count[i] = llrint(2e12 * (normal((i + 1) * 8.0 / HP_BINS) - normal(i * 8.0 / HP_BINS)));
    const hp_range p = clip(half, HP_OBSERVE_PERCENTILE);
    assert_true(p.lo == 0);
    near(p.hi, 3.890592, 8.0 / HP_BINS);
    /* half of the elements are zeros, as after a ReLU: 0.01 % are 0.02 % of the others */
    half->zeros = llrint(1e12);
    near(clip(half, HP_OBSERVE_PERCENTILE).hi, 3.719016, 8.0 / HP_BINS);
    free(h), free(half);
}

/* Optima for 8 bits: 3.92 sigma for the normal, 9.89 b for the Laplace distribution (Banner et al. 2019,
 * "Post training 4-bit quantization", table of the published code). The error is flat around them. */
static void least_error_is_where_theory_has_it(void **state) {
    (void)state;
    hp_histogram *n = distributed(normal, -8, 8), *l = distributed(laplace, -25, 25);
    const hp_range a = clip(n, HP_OBSERVE_MSE), b = clip(l, HP_OBSERVE_MSE);
    near(a.hi, 3.92, 0.08);
    near(a.lo, -3.92, 0.08);
    near(b.hi, 9.89, 0.25);
    near(b.lo, -9.89, 0.25);
    free(n), free(l);
}

/* A uniform distribution has nothing to clip: the error is scale^2 / 12 per element. */
static void uniform_elements_are_not_clipped(void **state) {
    (void)state;
    hp_histogram *h = distributed(uniform, -1, 1);
    const hp_range r = clip(h, HP_OBSERVE_MSE), e = clip(h, HP_OBSERVE_ENTROPY);
    near(r.lo, -1, 0.005);
    near(r.hi, 1, 0.005);
    near(e.lo, -1, 0.001);
    near(e.hi, 1, 0.001);
    const double step = 2.0 / 255;
    near(hp_quantisation_error(h, h->range) / 1e12, step * step / 12, 0.01 * step * step / 12);
    free(h);
}

/* The error against a plain sum over many points in every bin. */
static void error_is_the_integral(void **state) {
    (void)state;
    enum { POINTS = 400 };
    hp_histogram *h = distributed(normal, -4, 6);
    static const hp_range ranges[] = {{-4, 6}, {-1, 1}, {-0.5, 3}, {-2, 0.25}, {0, 2}};
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
        const hp_qparam q = hp_qparam_of(ranges[k]);
        const double s = (double)q.scale, width = hp_histogram_width(h);
        double sum = 0;
        for (int i = 0; i < HP_BINS; i++)
            for (int p = 0; p < POINTS; p++) {
                const double x = -4 + (i + (p + 0.5) / POINTS) * width;
                const double e = x - (fmin(fmax(rint(x / s) + q.zero, 0), 255) - q.zero) * s;
                sum += e * e / POINTS * (double)h->count[i];
            }
        near(hp_quantisation_error(h, ranges[k]), sum, 1e-3 * sum);
    }
    free(h);
}

/* Kullback-Leibler divergence of a window by its definition, bin by bin. */
static double divergence(const hp_histogram *h, int first, int end) {
    enum { LEVELS = 128 };
    double p[HP_BINS] = {0}, q[HP_BINS] = {0}, sum_p = 0, sum_q = 0, kl = 0;
    for (int i = 0; i < HP_BINS; i++) p[i < first ? first : i >= end ? end - 1 : i] += (double)h->count[i];
    for (int k = 0; k < LEVELS; k++) {
        double mass = 0;
        int held = 0;
        for (int i = first + (end - first) * k / LEVELS; i < first + (end - first) * (k + 1) / LEVELS; i++) {
            mass += (double)h->count[i];
            held += h->count[i] != 0;
        }
        for (int i = first + (end - first) * k / LEVELS; i < first + (end - first) * (k + 1) / LEVELS; i++)
            q[i] = h->count[i] ? mass / held : 0;
    }
    for (int i = first; i < end; i++) sum_p += p[i], sum_q += q[i];
    for (int i = first; i < end; i++)
        if (p[i] > 0) kl += q[i] > 0 ? p[i] / sum_p * log(p[i] / sum_p / (q[i] / sum_q)) : (double)INFINITY;
    return kl;
}

static void least_divergence_is(hp_histogram *h, int zero) {
    const double width = hp_histogram_width(h);
    const hp_range got = clip(h, HP_OBSERVE_ENTROPY);
    double least = INFINITY;
    for (int reach = 64; reach <= HP_BINS; reach++) {
        const int first = zero > reach ? zero - reach : 0,
                  end = zero + reach < HP_BINS ? zero + reach : HP_BINS;
        if (end - first >= 128) least = fmin(least, divergence(h, first, end));
    }
    const int first = (int)lrint((got.lo - h->range.lo) / width),
              end = (int)lrint((got.hi - h->range.lo) / width);
    near(divergence(h, first, end), least, 1e-9);
    free(h);
}

static void entropy_choice_has_the_least_divergence(void **state) {
    (void)state;
    least_divergence_is(distributed(normal, -8, 8), HP_BINS / 2);
    least_divergence_is(distributed(normal, 0, 8), 0);
    least_divergence_is(distributed(laplace, -10, 30), HP_BINS / 4);
    hp_histogram *sampled = empty(0, 12);
    for (uint64_t i = 0; i < 30000; i++) {
        const double x = fabs(hp_rng_normal(6, 0, i));
        hp_histogram_count(sampled, &x, 1);
    }
    sampled->count[HP_BINS - 1] += 2; /* a far outlier is clipped */
    assert_true(clip(sampled, HP_OBSERVE_ENTROPY).hi < 5);
    least_divergence_is(sampled, 0);
}

/* Elements twice as large give twice the range. */
static void choices_scale_with_the_data(void **state) {
    (void)state;
    hp_histogram *h = distributed(laplace, -6, 20), *g = empty(-12, 40);
    memcpy(g->count, h->count, sizeof g->count);
    for (int k = 0; k < HP_OBSERVERS; k++) {
        const hp_range a = clip(h, k), b = clip(g, k);
        assert_true(2 * a.lo == b.lo && 2 * a.hi == b.hi);
    }
    free(h), free(g);
}

static void odd_histograms_have_a_choice(void **state) {
    (void)state;
    static const hp_range ranges[] = {{0, 0}, {3, 3}, {-2, -1}, {1, 2}, {-1e-20, 1e20}};
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
        for (int bin = -1; bin <= HP_BINS; bin += HP_BINS / 2) {
            hp_histogram *h = empty(ranges[k].lo, ranges[k].hi);
            if (bin >= 0 && bin < HP_BINS) h->count[bin] = 5;
            h->zeros = bin < 0 ? 0 : 7;
            for (int i = 0; i < HP_OBSERVERS; i++) {
                const hp_qparam q = hp_qparam_of(clip(h, i));
                assert_true(q.scale > 0 && isfinite(q.scale));
            }
            free(h);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_zero_is_a_level_and_the_range_is_covered),
        cmocka_unit_test(ranges_without_extent_have_a_scale),
        cmocka_unit_test(counts_follow_the_definition),
        cmocka_unit_test(no_partition_changes_the_choice),
        cmocka_unit_test(minmax_keeps_all),
        cmocka_unit_test(percentile_is_the_quantile),
        cmocka_unit_test(least_error_is_where_theory_has_it),
        cmocka_unit_test(uniform_elements_are_not_clipped),
        cmocka_unit_test(error_is_the_integral),
        cmocka_unit_test(entropy_choice_has_the_least_divergence),
        cmocka_unit_test(choices_scale_with_the_data),
        cmocka_unit_test(odd_histograms_have_a_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
