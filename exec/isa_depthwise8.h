/* isa_depthwise8.h - depthwise convolutions of bytes. With VNNI, 4 rows of a column of taps are one step: the rows'
 * bytes are interleaved once per column of the map, for 64 channels, and every pixel that reads the column multiplies
 * it with its weights. Interleaving by 128-bit lanes puts channel 16 l + 4 v + i into element 4 l + i of vector v,
 * and packing the sums puts it back. Else byte by byte, all channels side by side. */
#ifndef HP_ISA_DEPTHWISE8_H
#define HP_ISA_DEPTHWISE8_H

#if defined(__AVX512VNNI__)

enum { DEPTH8_STRIP = 32, DEPTH8_COLUMNS = 128 }; /* pixels, and interleaved columns, in hand at a time */

/* Places of a block's channels in its four vectors. */
static int depth8_place(int channel) {
    return channel / 4 % 4 * LANES + channel / 16 * 4 + channel % 4;
}

static void depth8_pack(int8_t *to, const int8_t *w, int channels, int kh, int kw) {
    const int quads = (kh + 3) / 4;
    for (int c = 0; c < channels; c++)
        for (int ky = 0; ky < kh; ky++)
            for (int kx = 0; kx < kw; kx++) {
                const int64_t step = ((int64_t)(c / OUTS) * kw + kx) * quads + ky / 4;
                to[(step * OUTS + depth8_place(c % OUTS)) * 4 + ky % 4] = w[((int64_t)c * kh + ky) * kw + kx];
            }
}

/* A block of channels of a row of pixels. */
typedef struct depth8 {
    const hp_depthwise_row *r;
    const unsigned char *x;
    unsigned char *y;
    const int8_t *w;
    int n, quad, quads; /* channels; rows' quads that are read: first, number */
    __mmask64 here;
    float scale[OUTS], shift[OUTS]; /* by place */
    int32_t init[OUTS];
} depth8;

/* Rows outside the map and beyond the filter count as zeros. */
ALWAYS __m512i depth8_row(const depth8 *d, const unsigned char *x, int ky) {
    const int tap = ky - d->r->tap_y;
    if (tap < 0 || tap >= d->r->taps_y) return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi8(d->here, x + tap * d->r->y_step);
}

/* 4 rows of one column, from row `ky` of the filter on. */
ALWAYS void depth8_interleave(const depth8 *d, const unsigned char *x, int ky, sums *to) {
    const __m512i a = depth8_row(d, x, ky), b = depth8_row(d, x, ky + 1), c = depth8_row(d, x, ky + 2),
                  e = depth8_row(d, x, ky + 3);
    const __m512i ab = _mm512_unpacklo_epi8(a, b), ce = _mm512_unpacklo_epi8(c, e),
                  ab2 = _mm512_unpackhi_epi8(a, b), ce2 = _mm512_unpackhi_epi8(c, e);
    to[0] = (sums)_mm512_unpacklo_epi16(ab, ce);
    to[1] = (sums)_mm512_unpackhi_epi16(ab, ce);
    to[2] = (sums)_mm512_unpacklo_epi16(ab2, ce2);
    to[3] = (sums)_mm512_unpackhi_epi16(ab2, ce2);
}

/* --- what becomes of the sums --- */

ALWAYS void depth8_store_fast(const depth8 *d, unsigned char *y, const sums acc[4]) {
    const hp_panel_out *o = d->r->out;
    const __m512i old = o->adds ? _mm512_maskz_loadu_epi8(d->here, y) : _mm512_setzero_si512(),
                  bytes = _mm512_set1_epi32(255);
    __m512i q[4];
    UNROLL
    for (int v = 0; v < 4; v++) {
        __m512 f = _mm512_fmadd_ps(_mm512_loadu_ps(d->scale + v * LANES), _mm512_cvtepi32_ps((__m512i)acc[v]),
                                   _mm512_loadu_ps(d->shift + v * LANES));
        if (o->adds) {
            const __m512i quads[2] = {_mm512_unpacklo_epi8(old, _mm512_setzero_si512()),
                                      _mm512_unpackhi_epi8(old, _mm512_setzero_si512())};
            const __m512i half = quads[v / 2];
            const __m512i wide = v % 2 ? _mm512_unpackhi_epi16(half, _mm512_setzero_si512())
                                       : _mm512_unpacklo_epi16(half, _mm512_setzero_si512());
            f = _mm512_fmadd_ps(_mm512_set1_ps(o->add_scale), _mm512_cvtepi32_ps(_mm512_and_si512(wide, bytes)), f);
        }
        q[v] = _mm512_cvtps_epi32(f);
    }
    const __m512i all = _mm512_packus_epi16(_mm512_packs_epi32(q[0], q[1]), _mm512_packs_epi32(q[2], q[3]));
    const __m512i least = _mm512_max_epu8(all, _mm512_set1_epi8((char)o->lo8));
    _mm512_mask_storeu_epi8(y, d->here, _mm512_min_epu8(least, _mm512_set1_epi8((char)o->hi8)));
}

/* Sums in the channels' order. */
static void depth8_store_any(const depth8 *d, unsigned char *y, const sums acc[4]) {
    int32_t placed[OUTS], sum[OUTS];
    float scale[OUTS], shift[OUTS];
    for (int v = 0; v < 4; v++) sums_store(placed + v * LANES, acc[v]);
    for (int c = 0; c < d->n; c++) {
        sum[c] = placed[depth8_place(c)];
        scale[c] = d->scale[depth8_place(c)];
        shift[c] = d->shift[depth8_place(c)];
    }
    finish_bytes(y, sum, scale, shift, d->n, d->r->out);
}

/* --- rows --- */

/* `columns`: interleaved, from the pixel's first on. */
ALWAYS void depth8_pixel(const depth8 *d, const sums *columns, int64_t steps, unsigned char *y) {
    const hp_depthwise_row *r = d->r;
    const int all = (r->kh + 3) / 4;
    sums acc[4];
    UNROLL
    for (int v = 0; v < 4; v++) acc[v] = sums_load(d->init + v * LANES);
    for (int kx = 0; kx < r->taps_x; kx++)
        for (int k = 0; k < d->quads; k++) {
            const int8_t *w = d->w + (((int64_t)(r->tap_x + kx) * all + d->quad + k) * OUTS) * 4;
            const sums *in = columns + (kx * steps + k) * 4;
            UNROLL
            for (int v = 0; v < 4; v++) acc[v] = dot_bytes(acc[v], in[v], sums_load(w + v * LANES * 4));
        }
    if (r->out->fast)
        depth8_store_fast(d, y, acc);
    else
        depth8_store_any(d, y, acc);
}

/* Pixels `first` .. `first + n`, whose columns fit in hand. Dilated taps, and strides wider than the filter, are
 * interleaved pixel by pixel. */
static void depth8_strip(const depth8 *d, int first, int n) {
    const hp_depthwise_row *r = d->r;
    const bool shared = r->pixel_step % r->x_step == 0 && r->pixel_step / r->x_step < r->taps_x;
    const int apart = shared ? (int)(r->pixel_step / r->x_step) : r->taps_x;
    const int columns = shared ? (n - 1) * apart + r->taps_x : n * r->taps_x;
    sums in[DEPTH8_COLUMNS * 4] __attribute__((aligned(64)));
    for (int i = 0; i < columns; i++) {
        const unsigned char *x = shared ? d->x + first * r->pixel_step + i * r->x_step
                                        : d->x + (first + i / r->taps_x) * r->pixel_step + i % r->taps_x * r->x_step;
        for (int k = 0; k < d->quads; k++) depth8_interleave(d, x, (d->quad + k) * 4, in + (i * d->quads + k) * 4);
    }
    for (int p = 0; p < n; p++)
        depth8_pixel(d, in + (int64_t)p * apart * d->quads * 4, d->quads,
                     d->y + (int64_t)(first + p) * r->channels * hp_dtype_bytes(r->out->op.y.dtype));
}

static void depth8_block(const hp_depthwise_row *r, int at) {
    const int n = at_most(r->channels - at, OUTS), all = (r->kh + 3) / 4;
    depth8 d = {.r = r,
                .x = r->x + at,
                .y = r->y + at * hp_dtype_bytes(r->out->op.y.dtype),
                .w = (const int8_t *)r->weights + (int64_t)at * r->kw * all * 4,
                .n = n,
                .quad = r->tap_y / 4,
                .here = n == OUTS ? ~0ull : (1ull << n) - 1};
    if (r->taps_y > 0) d.quads = (r->tap_y + r->taps_y + 3) / 4 - d.quad;
    for (int c = 0; c < OUTS; c++) { /* constants are padded */
        d.scale[depth8_place(c)] = r->scale[at + c];
        d.shift[depth8_place(c)] = r->shift[at + c];
        d.init[depth8_place(c)] = ((const int32_t *)r->init)[at + c];
    }
    const int each = r->taps_x * d.quads, strip = each ? at_most(DEPTH8_STRIP, DEPTH8_COLUMNS / each) : DEPTH8_STRIP;
    for (int p = 0; p < r->pixels; p += strip) depth8_strip(&d, p, at_most(r->pixels - p, strip));
}

static void depth_bytes(const hp_depthwise_row *r) {
    for (int at = 0; at < r->channels; at += OUTS) depth8_block(r, at);
}

#else

static int64_t depth8_padded(int channels) {
    return (channels + OUTS - 1) / OUTS * OUTS;
}

/* (row, column, channel) */
static void depth8_pack(int8_t *to, const int8_t *w, int channels, int kh, int kw) {
    const int taps = kh * kw;
    for (int c = 0; c < channels; c++)
        for (int k = 0; k < taps; k++) to[k * depth8_padded(channels) + c] = w[(int64_t)c * taps + k];
}

/* A product of two bytes has 16 bits. */
static void depth8_tap(int32_t *sum, const uint8_t *x, const int8_t *w, int n) {
    INDEPENDENT
    for (int i = 0; i < n; i++) sum[i] += (int16_t)((int16_t)x[i] * (int16_t)w[i]);
}

static void depth8_pixel(const hp_depthwise_row *r, const unsigned char *x, unsigned char *y, int at, int n) {
    int32_t sum[OUTS];
    memcpy(sum, (const int32_t *)r->init + at, sizeof sum);
    for (int ky = 0; ky < r->taps_y; ky++)
        for (int kx = 0; kx < r->taps_x; kx++) {
            const int64_t tap = (int64_t)(r->tap_y + ky) * r->kw + r->tap_x + kx;
            depth8_tap(sum, x + ky * r->y_step + kx * r->x_step + at,
                       (const int8_t *)r->weights + tap * depth8_padded(r->channels) + at, n);
        }
    finish_bytes(y + at * hp_dtype_bytes(r->out->op.y.dtype), sum, r->scale + at, r->shift + at, n, r->out);
}

static void depth_bytes(const hp_depthwise_row *r) {
    const int64_t out = (int64_t)r->channels * hp_dtype_bytes(r->out->op.y.dtype);
    for (int p = 0; p < r->pixels; p++)
        for (int at = 0; at < r->channels; at += OUTS)
            depth8_pixel(r, r->x + p * r->pixel_step, r->y + p * out, at, at_most(r->channels - at, OUTS));
}

#endif
#endif
