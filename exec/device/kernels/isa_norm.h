/* isa_norm.h - batch norm: statistics and application, one pass each, channel innermost.
 *
 * Sums run in float32 over blocks of NORM_BLOCK rows and are then added in float64, so that their error does
 * not grow with the number of pixels (blocked summation: Higham, "Accuracy and Stability of Numerical
 * Algorithms", section 4.2). */
#ifndef HP_ISA_NORM_H
#define HP_ISA_NORM_H

#include <string.h>

enum { NORM_BLOCK = 64 }; /* rows per float32 partial sum: its error bound is 64 units in the last place */

static void norm_flush(float *part, int channels, double *sum) {
    INDEPENDENT
    for (int c = 0; c < channels; c++) {
        sum[c] += (double)part[c];
        part[c] = 0;
    }
}

/* Four rows at once, so that the partial sums are read and written once per four. */
static void norm_sums4(const float *restrict x, const float *restrict shift, int channels,
                       float *restrict sum, float *restrict square) {
    const float *x1 = x + channels, *x2 = x1 + channels, *x3 = x2 + channels;
    INDEPENDENT
    for (int c = 0; c < channels; c++) {
        const float a = x[c] - shift[c], b = x1[c] - shift[c], d = x2[c] - shift[c], e = x3[c] - shift[c];
        sum[c] += (a + b) + (d + e);
        square[c] += (a * a + b * b) + (d * d + e * e);
    }
}

static void norm_sums1(const float *restrict x, const float *restrict shift, int channels,
                       float *restrict sum, float *restrict square) {
    INDEPENDENT
    for (int c = 0; c < channels; c++) {
        const float a = x[c] - shift[c];
        sum[c] += a;
        square[c] += a * a;
    }
}

static void norm_sums(const float *x, const float *shift, int64_t rows, int channels, double *sum,
                      double *square, float *tmp) {
    float *s = tmp, *q = tmp + channels;
    memset(tmp, 0, 2 * (size_t)channels * sizeof *tmp);
    memset(sum, 0, (size_t)channels * sizeof *sum);
    memset(square, 0, (size_t)channels * sizeof *square);
    for (int64_t r0 = 0; r0 < rows; r0 += NORM_BLOCK) {
        const int64_t end = r0 + NORM_BLOCK < rows ? r0 + NORM_BLOCK : rows;
        int64_t r = r0;
        for (; r + 4 <= end; r += 4) norm_sums4(x + r * channels, shift, channels, s, q);
        for (; r < end; r++) norm_sums1(x + r * channels, shift, channels, s, q);
        norm_flush(s, channels, sum);
        norm_flush(q, channels, square);
    }
}

static void norm_add_sums(const float *x, int64_t rows, int channels, double *restrict sum,
                          double *restrict square) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, x += 4 * (int64_t)channels) {
        const float *x1 = x + channels, *x2 = x1 + channels, *x3 = x2 + channels;
        INDEPENDENT
        for (int c = 0; c < channels; c++) {
            const double a = (double)x[c], b = (double)x1[c], d = (double)x2[c], e = (double)x3[c];
            sum[c] += (a + b) + (d + e);
            square[c] += (a * a + b * b) + (d * d + e * e);
        }
    }
    for (; r < rows; r++, x += channels) {
        INDEPENDENT
        for (int c = 0; c < channels; c++) {
            sum[c] += (double)x[c];
            square[c] += (double)x[c] * (double)x[c];
        }
    }
}

static void norm_apply(float *y, const float *x, const float *r, const float *mean, const float *scale,
                       const float *beta, int64_t rows, int channels, hp_clamp k) {
    for (int64_t i = 0; i < rows; i++, x += channels, y += channels) {
        if (r) {
            INDEPENDENT
            for (int c = 0; c < channels; c++)
                y[c] = point_clamp1((x[c] - mean[c]) * scale[c] + beta[c] + r[c], k);
            r += channels;
        } else {
            INDEPENDENT
            for (int c = 0; c < channels; c++) y[c] = point_clamp1((x[c] - mean[c]) * scale[c] + beta[c], k);
        }
    }
}

/* One row of masked gradients into the partial sums. */
static void norm_bwd_row(const float *dy, const float *y, const float *restrict x, const float *restrict mean,
                         int channels, hp_clamp k, float *restrict sum, float *restrict dot) {
    if (y) {
        INDEPENDENT
        for (int c = 0; c < channels; c++) {
            const float g = ((y[c] > k.lo) & (y[c] < k.hi)) ? dy[c] : 0.0f;
            sum[c] += g;
            dot[c] += g * (x[c] - mean[c]);
        }
    } else {
        INDEPENDENT
        for (int c = 0; c < channels; c++) {
            sum[c] += dy[c];
            dot[c] += dy[c] * (x[c] - mean[c]);
        }
    }
}

static void norm_bwd_sums(const float *dy, const float *y, const float *x, const float *mean, int64_t rows,
                          int channels, hp_clamp k, float *keep, double *sum, double *dot, float *tmp) {
    float *s = tmp, *d = tmp + channels;
    memset(tmp, 0, 2 * (size_t)channels * sizeof *tmp);
    memset(sum, 0, (size_t)channels * sizeof *sum);
    memset(dot, 0, (size_t)channels * sizeof *dot);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = r * channels;
        norm_bwd_row(dy + at, y ? y + at : NULL, x + at, mean, channels, k, s, d);
        if (keep && y)
            point_clamp_bwd(keep + at, dy + at, y + at, channels, k);
        else if (keep && keep != dy)
            memcpy(keep + at, dy + at, (size_t)channels * sizeof *dy);
        if (r % NORM_BLOCK < NORM_BLOCK - 1 && r < rows - 1) continue;
        norm_flush(s, channels, sum);
        norm_flush(d, channels, dot);
    }
}

static void norm_bwd_apply(float *dx, const float *dy, const float *y, const float *x, const float *mean,
                           const float *scale, const float *a, const float *b, int64_t rows, int channels,
                           hp_clamp k) {
    for (int64_t i = 0; i < rows; i++, x += channels, dy += channels, dx += channels) {
        if (y) {
            INDEPENDENT
            for (int c = 0; c < channels; c++) {
                const float g = ((y[c] > k.lo) & (y[c] < k.hi)) ? dy[c] : 0.0f;
                dx[c] = scale[c] * g - a[c] - (x[c] - mean[c]) * b[c];
            }
            y += channels;
        } else {
            INDEPENDENT
            for (int c = 0; c < channels; c++) dx[c] = scale[c] * dy[c] - a[c] - (x[c] - mean[c]) * b[c];
        }
    }
}

#endif
