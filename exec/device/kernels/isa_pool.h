/* isa_pool.h - maximum and mean pooling, channel innermost; chunks of POOL_CHUNK channels stay in registers
 * or L1. */
#ifndef HP_ISA_POOL_H
#define HP_ISA_POOL_H

enum { POOL_CHUNK = 64 }; /* four 512-bit vectors */

/* One output pixel, `n` <= POOL_CHUNK channels. */
static void pool_max_pixel(float *y, uint8_t *tap, const float *x, const hp_shape *s, int oy, int ox, int n) {
    float best[POOL_CHUNK];
    int32_t index[POOL_CHUNK];
    bool first = true;
    for (int ky = 0; ky < s->kh; ky++)
        for (int kx = 0; kx < s->kw; kx++) {
            const int iy = oy * s->sh - s->ph + ky * s->dh, ix = ox * s->sw - s->pw + kx * s->dw;
            if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw) continue;
            const float *v = x + ((int64_t)iy * s->iw + ix) * s->ic;
            const int32_t t = ky * s->kw + kx;
            for (int c = 0; c < n; c++) {
                const bool take = first | (v[c] > best[c]);
                best[c] = take ? v[c] : best[c];
                index[c] = take ? t : index[c];
            }
            first = false;
        }
    for (int c = 0; c < n; c++) y[c] = best[c];
    for (int c = 0; tap && c < n; c++) tap[c] = (uint8_t)index[c];
}

static void pool_max(float *y, uint8_t *tap, const float *x, const hp_shape *s) {
    for (int64_t n = 0; n < s->n; n++)
        for (int oy = 0; oy < s->oh; oy++)
            for (int ox = 0; ox < s->ow; ox++)
                for (int c = 0; c < s->ic; c += POOL_CHUNK) {
                    const int64_t at = ((n * s->oh + oy) * s->ow + ox) * s->ic + c;
                    pool_max_pixel(y + at, tap ? tap + at : NULL, x + n * s->ih * s->iw * s->ic + c, s, oy,
                                   ox, s->ic - c < POOL_CHUNK ? s->ic - c : POOL_CHUNK);
                }
}

static void pool_max_bwd_pixel(float *dx, const uint8_t *tap, const float *dy, const hp_shape *s, int oy,
                               int ox) {
    for (int ky = 0; ky < s->kh; ky++)
        for (int kx = 0; kx < s->kw; kx++) {
            const int iy = oy * s->sh - s->ph + ky * s->dh, ix = ox * s->sw - s->pw + kx * s->dw;
            if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw) continue;
            float *restrict d = dx + ((int64_t)iy * s->iw + ix) * s->ic;
            const int t = ky * s->kw + kx;
            INDEPENDENT
            for (int c = 0; c < s->ic; c++) d[c] += tap[c] == t ? dy[c] : 0.0f;
        }
}

static void pool_max_bwd(float *dx, const uint8_t *tap, const float *dy, const hp_shape *s) {
    const int64_t image = (int64_t)s->ih * s->iw * s->ic;
    for (int64_t n = 0; n < s->n; n++) {
        memset(dx + n * image, 0, (size_t)image * sizeof *dx);
        for (int oy = 0; oy < s->oh; oy++)
            for (int ox = 0; ox < s->ow; ox++) {
                const int64_t at = ((n * s->oh + oy) * s->ow + ox) * s->ic;
                pool_max_bwd_pixel(dx + n * image, tap + at, dy + at, s, oy, ox);
            }
    }
}

/* Windows of output pixel `pixel` (samples counted too): the image and what to multiply its sum with. */
typedef struct pool_window {
    int64_t image; /* first element */
    const int32_t *rows, *cols;
    float factor;
} pool_window;

static pool_window pool_window_of(const hp_shape *s, const hp_windows *rows, const hp_windows *cols,
                                  int64_t pixel) {
    const int64_t ox = pixel % s->ow, oy = pixel / s->ow % s->oh;
    return (pool_window){pixel / s->ow / s->oh * s->ih * s->iw * s->ic, rows->edge + 2 * oy,
                         cols->edge + 2 * ox, 1.0f / (rows->divisor[oy] * cols->divisor[ox])};
}

static void pool_mean(float *y, const float *x, const hp_shape *s, const hp_windows *rows,
                      const hp_windows *cols) {
    for (int64_t o = 0; o < s->n * s->oh * s->ow; o++, y += s->ic) {
        const pool_window w = pool_window_of(s, rows, cols, o);
        memset(y, 0, (size_t)s->ic * sizeof *y);
        for (int iy = w.rows[0]; iy < w.rows[1]; iy++)
            for (int ix = w.cols[0]; ix < w.cols[1]; ix++)
                point_accum(y, x + w.image + ((int64_t)iy * s->iw + ix) * s->ic, s->ic);
        for (int c = 0; c < s->ic; c++) y[c] *= w.factor;
    }
}

static void pool_mean_bwd(float *dx, const float *dy, const hp_shape *s, const hp_windows *rows,
                          const hp_windows *cols) {
    memset(dx, 0, (size_t)(s->n * s->ih * s->iw * s->ic) * sizeof *dx);
    for (int64_t o = 0; o < s->n * s->oh * s->ow; o++, dy += s->ic) {
        const pool_window w = pool_window_of(s, rows, cols, o);
        for (int iy = w.rows[0]; iy < w.rows[1]; iy++)
            for (int ix = w.cols[0]; ix < w.cols[1]; ix++) {
                float *d = dx + w.image + ((int64_t)iy * s->iw + ix) * s->ic;
                INDEPENDENT
                for (int c = 0; c < s->ic; c++) d[c] += w.factor * dy[c];
            }
    }
}

#endif
