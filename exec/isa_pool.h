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

static void pool_mean(float *y, const float *x, const hp_shape *s, const int32_t *rows, const int32_t *cols,
                      const float *factor) {
    for (int64_t o = 0; o < s->n * s->oh * s->ow; o++, y += s->ic) {
        const int oy = (int)(o / s->ow % s->oh), ox = (int)(o % s->ow);
        const float *image = x + o / s->ow / s->oh * s->ih * s->iw * s->ic, f = factor[oy * s->ow + ox];
        memset(y, 0, (size_t)s->ic * sizeof *y);
        for (int iy = rows[2 * oy]; iy < rows[2 * oy + 1]; iy++)
            for (int ix = cols[2 * ox]; ix < cols[2 * ox + 1]; ix++)
                point_accum(y, image + ((int64_t)iy * s->iw + ix) * s->ic, s->ic);
        for (int c = 0; c < s->ic; c++) y[c] *= f;
    }
}

static void pool_mean_bwd(float *dx, const float *dy, const hp_shape *s, const int32_t *rows,
                          const int32_t *cols, const float *factor) {
    memset(dx, 0, (size_t)(s->n * s->ih * s->iw * s->ic) * sizeof *dx);
    for (int64_t o = 0; o < s->n * s->oh * s->ow; o++, dy += s->ic) {
        const int oy = (int)(o / s->ow % s->oh), ox = (int)(o % s->ow);
        float *image = dx + o / s->ow / s->oh * s->ih * s->iw * s->ic;
        const float f = factor[oy * s->ow + ox];
        for (int iy = rows[2 * oy]; iy < rows[2 * oy + 1]; iy++)
            for (int ix = cols[2 * ox]; ix < cols[2 * ox + 1]; ix++) {
                float *d = image + ((int64_t)iy * s->iw + ix) * s->ic;
                INDEPENDENT
                for (int c = 0; c < s->ic; c++) d[c] += f * dy[c];
            }
    }
}

#endif
