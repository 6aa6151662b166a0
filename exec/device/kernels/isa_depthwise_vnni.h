/* isa_depthwise_vnni.h - depthwise convolutions of bytes, 64 channels at a time: 4 rows of a column of the
 * map are interleaved once, and every pixel whose filter covers the column multiplies it with its weights,
 * four products per instruction. With a filter of 3 rows and stride 1 the fourth serves a second row of
 * pixels, whose weights are the first's, one row on. Interleaving by 128-bit lanes puts channel 16 l + 4 v +
 * i into element 4 l + i of vector v, and packing the sums puts it back. */
#ifndef HP_ISA_DEPTHWISE_VNNI_H
#define HP_ISA_DEPTHWISE_VNNI_H

enum {
    DEPTH_VECS = OUTS / LANES,
    DEPTH_COLUMNS = HP_DEPTHWISE_COLUMNS,
    DEPTH_NEAR = 48 /* columns in hand that stay in the first-level cache with what they become */
};

/* Places of a block's channels in its four vectors. */
static int depth_place(int channel) {
    return channel / 4 % 4 * LANES + channel / 16 * 4 + channel % 4;
}

/* (block of channels, column, 4 rows) */
static void depth_pack(int8_t *to, const int8_t *w, int channels, int kh, int kw) {
    const int quads = (kh + 3) / 4;
    for (int c = 0; c < channels; c++)
        for (int ky = 0; ky < kh; ky++)
            for (int kx = 0; kx < kw; kx++) {
                const int64_t step = ((int64_t)(c / OUTS) * kw + kx) * quads + ky / 4;
                to[(step * OUTS + depth_place(c % OUTS)) * 4 + ky % 4] = w[((int64_t)c * kh + ky) * kw + kx];
            }
}

/* A block of channels. */
typedef struct depth_block {
    const hp_depthwise_map *m;
    int at, n; /* first channel, how many */
    int quads; /* of a filter's rows */
    __mmask64 here;
    const int8_t *w[2]; /* of the first row of pixels, and of the second, NULL: one row at a time */
    sums scale[DEPTH_VECS], shift[DEPTH_VECS], init[DEPTH_VECS];   /* by place */
    int8_t outside[OUTS], second[HP_DEPTHWISE_COLUMNS * OUTS * 4]; /* zero points; weights one row on */
    sums column[DEPTH_COLUMNS][DEPTH_VECS];                        /* (column, quad): interleaved */
} depth_block;

/* --- columns --- */

/* 4 rows of the map: those outside are zero points, the same in every column. */
typedef struct depth_rows {
    const unsigned char *at[4];
    int64_t step[4];
} depth_rows;

static depth_rows depth_rows_of(const depth_block *d, int64_t sample, int64_t iy, int rows) {
    const hp_shape *s = d->m->shape;
    depth_rows r;
    for (int k = 0; k < 4; k++, iy += s->dh) {
        const bool inside = k < rows && iy >= 0 && iy < s->ih;
        r.at[k] =
            inside ? d->m->x + (sample * s->ih + iy) * s->iw * s->ic + d->at : (const uint8_t *)d->outside;
        r.step[k] = inside ? s->ic : 0;
    }
    return r;
}

ALWAYS void depth_interleave(__m512i a, __m512i b, __m512i c, __m512i e, sums to[DEPTH_VECS]) {
    const __m512i ab = _mm512_unpacklo_epi8(a, b), ce = _mm512_unpacklo_epi8(c, e),
                  ab2 = _mm512_unpackhi_epi8(a, b), ce2 = _mm512_unpackhi_epi8(c, e);
    to[0] = (sums)_mm512_unpacklo_epi16(ab, ce);
    to[1] = (sums)_mm512_unpackhi_epi16(ab, ce);
    to[2] = (sums)_mm512_unpacklo_epi16(ab2, ce2);
    to[3] = (sums)_mm512_unpackhi_epi16(ab2, ce2);
}

/* `n` columns of the map from column `ix` on, quad `quad` of each. */
static void depth_columns(depth_block *d, const depth_rows *r, int64_t ix, int n, int quad) {
    const int width = d->m->shape->iw;
    const __m512i outside = _mm512_loadu_si512(d->outside);
    for (int i = 0; i < n; i++) {
        const int64_t x = ix + i;
        __m512i row[4] = {outside, outside, outside, outside};
        if (x >= 0 && x < width) {
            UNROLL
            for (int k = 0; k < 4; k++) row[k] = _mm512_maskz_loadu_epi8(d->here, r->at[k] + x * r->step[k]);
        }
        depth_interleave(row[0], row[1], row[2], row[3], d->column[i * d->quads + quad]);
    }
}

/* --- pixels --- */

/* What all pixels of a strip share, out of reach of the stores. */
typedef struct depth_ends {
    __m512 scale[DEPTH_VECS], shift[DEPTH_VECS], add_scale;
    __m512i lo, hi;
    __mmask64 here;
} depth_ends;

ALWAYS depth_ends depth_ends_of(const depth_block *d) {
    const hp_panel_out *o = d->m->out;
    depth_ends e = {.add_scale = _mm512_set1_ps(o->add_scale),
                    .lo = _mm512_set1_epi8((char)o->lo8),
                    .hi = _mm512_set1_epi8((char)o->hi8),
                    .here = d->here};
    UNROLL
    for (int v = 0; v < DEPTH_VECS; v++) {
        e.scale[v] = (__m512)d->scale[v];
        e.shift[v] = (__m512)d->shift[v];
    }
    return e;
}

/* Vector v, in its order, of bytes in theirs. */
ALWAYS __m512 depth_added(__m512i bytes, int v) {
    const __m512i none = _mm512_setzero_si512();
    const __m512i half = v / 2 ? _mm512_unpackhi_epi8(bytes, none) : _mm512_unpacklo_epi8(bytes, none);
    return _mm512_cvtepi32_ps(v % 2 ? _mm512_unpackhi_epi16(half, none) : _mm512_unpacklo_epi16(half, none));
}

ALWAYS void depth_store_fast(const depth_ends *e, unsigned char *y, const sums acc[DEPTH_VECS], bool adds) {
    const __m512i old = adds ? _mm512_maskz_loadu_epi8(e->here, y) : _mm512_setzero_si512();
    __m512i q[DEPTH_VECS];
    UNROLL
    for (int v = 0; v < DEPTH_VECS; v++) {
        __m512 f = _mm512_fmadd_ps(e->scale[v], _mm512_cvtepi32_ps((__m512i)acc[v]), e->shift[v]);
        if (adds) f = _mm512_fmadd_ps(e->add_scale, depth_added(old, v), f);
        q[v] = _mm512_cvtps_epi32(f);
    }
    const __m512i all = _mm512_packus_epi16(_mm512_packs_epi32(q[0], q[1]), _mm512_packs_epi32(q[2], q[3]));
    _mm512_mask_storeu_epi8(y, e->here, _mm512_min_epu8(_mm512_max_epu8(all, e->lo), e->hi));
}

/* Sums in the channels' order. */
static void depth_store_any(const depth_block *d, unsigned char *y, const sums acc[DEPTH_VECS]) {
    int32_t placed[OUTS], sum[OUTS];
    for (int v = 0; v < DEPTH_VECS; v++) sums_store(placed + v * LANES, acc[v]);
    for (int c = 0; c < d->n; c++) sum[c] = placed[depth_place(c)];
    finish_bytes(y, sum, d->m->scale + d->at, d->m->shift + d->at, d->n, d->m->out);
}

ALWAYS void depth_tap(sums acc[DEPTH_VECS], const sums in[DEPTH_VECS], const sums w[DEPTH_VECS]) {
    UNROLL
    for (int v = 0; v < DEPTH_VECS; v++) acc[v] = dot_bytes(acc[v], in[v], w[v]);
}

ALWAYS void depth_begin(const depth_block *d, sums acc[DEPTH_VECS]) {
    UNROLL
    for (int v = 0; v < DEPTH_VECS; v++) acc[v] = d->init[v];
}

/* A strip of `n` pixels over the columns in hand, `step` bytes apart in y: 3 columns of up to 4 rows, whose
 * weights stay in registers. */
ALWAYS void depth_pixels_3(const depth_block *d, const int8_t *weights, int n, unsigned char *y, int64_t step,
                           bool adds) {
    const depth_ends e = depth_ends_of(d);
    const int64_t apart = d->m->shape->sw, across = d->m->shape->dw;
    sums w[3][DEPTH_VECS], acc[DEPTH_VECS];
    UNROLL
    for (int k = 0; k < 3 * DEPTH_VECS; k++)
        w[k / DEPTH_VECS][k % DEPTH_VECS] =
            weights_load(HP_U8, (const unsigned char *)weights + k * LANES * 4);
    for (int p = 0; p < n; p++, y += step) {
        const sums(*in)[DEPTH_VECS] = d->column + p * apart;
        depth_begin(d, acc);
        UNROLL
        for (int k = 0; k < 3; k++) depth_tap(acc, in[k * across], w[k]);
        depth_store_fast(&e, y, acc, adds);
    }
}

/* Of any filter, to any output. */
static void depth_pixels_any(const depth_block *d, const int8_t *w, int n, unsigned char *y, int64_t step) {
    const hp_shape *s = d->m->shape;
    const depth_ends e = depth_ends_of(d);
    const bool fast = d->m->out->fast, adds = d->m->out->adds;
    for (int p = 0; p < n; p++, y += step) {
        sums acc[DEPTH_VECS];
        const sums *at = (const sums *)w;
        depth_begin(d, acc);
        for (int kx = 0; kx < s->kw; kx++)
            for (int k = 0; k < d->quads; k++, at += DEPTH_VECS)
                depth_tap(acc, d->column[(p * s->sw + kx * s->dw) * d->quads + k], at);
        if (!fast)
            depth_store_any(d, y, acc);
        else if (adds)
            depth_store_fast(&e, y, acc, true);
        else
            depth_store_fast(&e, y, acc, false);
    }
}

static void depth_pixels(const depth_block *d, const int8_t *w, int n, unsigned char *y) {
    const hp_panel_out *o = d->m->out;
    const int64_t step = (int64_t)d->m->shape->oc * hp_dtype_bytes(o->op.y.dtype);
    if (d->m->shape->kw != 3 || d->quads != 1 || !o->fast)
        depth_pixels_any(d, w, n, y, step);
    else if (o->adds)
        depth_pixels_3(d, w, n, y, step, true);
    else
        depth_pixels_3(d, w, n, y, step, false);
}

/* --- rows --- */

/* Columns of the map under `n` columns of taps from pixel (oy, ox) on, 4 rows at a time. */
static void depth_fill(depth_block *d, int64_t sample, int64_t oy, int ox, int n, int rows) {
    const hp_shape *s = d->m->shape;
    for (int q = 0; q < d->quads; q++) {
        const depth_rows r = depth_rows_of(d, sample, oy * s->sh - s->ph + 4 * (int64_t)q * s->dh,
                                           rows > 1 ? 4 : s->kh - 4 * q);
        depth_columns(d, &r, (int64_t)ox * s->sw - s->pw, n, q);
    }
}

/* One row of pixels, or two. */
static void depth_row(depth_block *d, int64_t sample, int oy, int rows) {
    const hp_shape *s = d->m->shape;
    const int span = (s->kw - 1) * s->dw + 1,
              most = (DEPTH_NEAR > span * d->quads ? DEPTH_NEAR : DEPTH_COLUMNS) / d->quads;
    const int strip = (most - span) / s->sw + 1, size = hp_dtype_bytes(d->m->out->op.y.dtype);
    for (int ox = 0; ox < s->ow; ox += strip) {
        const int n = at_most(s->ow - ox, strip);
        depth_fill(d, sample, oy, ox, (n - 1) * s->sw + span, rows);
        for (int k = 0; k < rows; k++) {
            const int64_t pixel = (sample * s->oh + oy + k) * s->ow + ox;
            depth_pixels(d, d->w[k], n, d->m->y + (pixel * s->oc + d->at) * size);
        }
    }
}

/* Weights of a second row of pixels: the first row's, shifted by a byte. */
static void depth_set_weights(depth_block *d) {
    const hp_shape *s = d->m->shape;
    const int vecs = s->kw * d->quads * DEPTH_VECS;
    d->w[0] = d->m->weights + (int64_t)d->at / OUTS * vecs * LANES * 4;
    d->w[1] = NULL;
    if (s->kh != 3 || s->sh != 1 || s->dh != 1) return;
    for (int v = 0; v < vecs; v++)
        sums_store(d->second + v * LANES * 4, sums_load(d->w[0] + v * LANES * 4) << 8);
    d->w[1] = d->second;
}

/* Words of 64 channels by place: lanes and vectors change roles. */
static void depth_put_in_place(sums to[DEPTH_VECS], const void *from) {
    __m512i c[DEPTH_VECS];
    for (int v = 0; v < DEPTH_VECS; v++) c[v] = _mm512_loadu_si512((const int32_t *)from + v * LANES);
    const __m512i a = _mm512_shuffle_i32x4(c[0], c[1], 0x88), b = _mm512_shuffle_i32x4(c[2], c[3], 0x88),
                  e = _mm512_shuffle_i32x4(c[0], c[1], 0xdd), f = _mm512_shuffle_i32x4(c[2], c[3], 0xdd);
    to[0] = (sums)_mm512_shuffle_i32x4(a, b, 0x88);
    to[1] = (sums)_mm512_shuffle_i32x4(e, f, 0x88);
    to[2] = (sums)_mm512_shuffle_i32x4(a, b, 0xdd);
    to[3] = (sums)_mm512_shuffle_i32x4(e, f, 0xdd);
}

static void depth_set_block(depth_block *d, const hp_depthwise_map *m, int at) {
    d->m = m;
    d->at = at;
    d->n = at_most(m->shape->oc - at, OUTS);
    d->quads = (m->shape->kh + 3) / 4;
    d->here = d->n == OUTS ? ~0ull : (1ull << d->n) - 1;
    memset(d->outside, m->zero, sizeof d->outside);
    depth_put_in_place(d->scale, m->scale + at); /* constants are padded */
    depth_put_in_place(d->shift, m->shift + at);
    depth_put_in_place(d->init, m->init + at);
    depth_set_weights(d);
}

static void depth_bytes(const hp_depthwise_map *m) {
    const hp_shape *s = m->shape;
    depth_block d;
    for (int at = 0; at < s->oc; at += OUTS) {
        depth_set_block(&d, m, at);
        for (int64_t n = 0; n < s->n; n++)
            for (int oy = 0, rows; oy < s->oh; oy += rows) {
                rows = d.w[1] && oy + 1 < s->oh ? 2 : 1;
                depth_row(&d, n, oy, rows);
            }
    }
}

#endif
