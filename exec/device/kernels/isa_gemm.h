/* isa_gemm.h - small matrix products out of cache: GEMM_ROWS x GEMM_PANEL blocks of the result held in
 * registers. The right-hand side comes in panels of GEMM_PANEL columns. */
#ifndef HP_ISA_GEMM_H
#define HP_ISA_GEMM_H

#include "plan/memory/device.h"

enum {
    GEMM_PANEL = HP_WINOGRAD_PANEL,
    GEMM_ROWS = LANES == 16 ? 8 : 4, /* rows x 2 vectors of accumulators: 16 of 32, or 8 of 16 registers */
    GEMM_COLS = 2 * LANES,
    GEMM_STRIP = 16 /* rows of a transposed left-hand side stored side by side */
};

/* c (rows, GEMM_COLS) = sum over k of a[row*row_step + k*k_step] * b[k*b_step ...]; `load` continues from c.
 */
static inline __attribute__((always_inline)) void gemm_block(float *c, int64_t ldc, const float *a,
                                                             int64_t row_step, int64_t k_step, const float *b,
                                                             int64_t b_step, int64_t k, bool load) {
    vec sum[GEMM_ROWS][2];
    UNROLL
    for (int r = 0; r < GEMM_ROWS; r++) {
        sum[r][0] = load ? vec_load(c + r * ldc) : (vec){0};
        sum[r][1] = load ? vec_load(c + r * ldc + LANES) : (vec){0};
    }
    for (int64_t i = 0; i < k; i++, a += k_step, b += b_step) {
        const vec b0 = vec_load(b), b1 = vec_load(b + LANES);
        UNROLL
        for (int r = 0; r < GEMM_ROWS; r++) {
            const float v = a[r * row_step];
            sum[r][0] += v * b0;
            sum[r][1] += v * b1;
        }
    }
    UNROLL
    for (int r = 0; r < GEMM_ROWS; r++) {
        vec_store(c + r * ldc, sum[r][0]);
        vec_store(c + r * ldc + LANES, sum[r][1]);
    }
}

/* c (m, panels*GEMM_PANEL) = a (m, k) * panels of b (k, GEMM_PANEL); m a multiple of HP_WINOGRAD_ROWS. */
static void gemm_panels(float *c, const float *a, const float *b, int64_t m, int64_t k, int panels) {
    const int64_t ldc = (int64_t)panels * GEMM_PANEL;
    for (int p = 0; p < panels; p++, b += k * GEMM_PANEL)
        for (int64_t r = 0; r < m; r += GEMM_ROWS)
            for (int j = 0; j < GEMM_PANEL; j += GEMM_COLS)
                gemm_block(c + r * ldc + p * GEMM_PANEL + j, ldc, a + r * k, k, 1, b + j, GEMM_PANEL, k,
                           false);
}

/* c (m, panels*GEMM_PANEL) (+)= transpose of a * b over k rows; a in strips (m/GEMM_STRIP, depth,
 * GEMM_STRIP), b in panels (panels, depth, GEMM_PANEL), depth >= k; m a multiple of GEMM_ROWS. */
static void gemm_transposed(float *c, const float *a, const float *b, int64_t m, int64_t k, int64_t depth,
                            int panels, bool add) {
    const int64_t ldc = (int64_t)panels * GEMM_PANEL;
    for (int p = 0; p < panels; p++, b += depth * GEMM_PANEL)
        for (int64_t r = 0; r < m; r += GEMM_ROWS)
            for (int j = 0; j < GEMM_PANEL; j += GEMM_COLS)
                gemm_block(c + r * ldc + p * GEMM_PANEL + j, ldc,
                           a + r / GEMM_STRIP * GEMM_STRIP * depth + r % GEMM_STRIP, 1, GEMM_STRIP, b + j,
                           GEMM_PANEL, k, add);
}

#endif
