/* isa_panel_fast.h - from sums in 512-bit registers to outputs without a detour through memory: bytes with a
 * clamp, floats with a clamp. Of a whole panel, all outputs exist. What other instruction sets get instead is
 * isa_panel.h's. */
#ifndef HP_ISA_PANEL_FAST_H
#define HP_ISA_PANEL_FAST_H

#if defined(__AVX512BW__)

ALWAYS __mmask16 first_lanes(int n) {
    return (__mmask16)(n >= LANES ? 0xffffu : (1u << n) - 1);
}

/* --- bytes --- */

/* Integers near the output of LANES outputs of every pixel: sums scaled and shifted, and what is added. */
ALWAYS void scale_column(const hp_panel_tile *t, unsigned char *const *y, int rows, int v, bool whole,
                         sums acc[ROWS][CHUNK_VECS], bool adds) {
    const __mmask16 here = first_lanes(t->outs - v * LANES);
    const __m512 scale = _mm512_loadu_ps(t->scale + v * LANES), shift = _mm512_loadu_ps(t->shift + v * LANES),
                 add_scale = _mm512_set1_ps(t->out->add_scale);
    UNROLL
    for (int r = 0; r < rows; r++) {
        __m512 f = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps((__m512i)acc[r][v]), shift);
        if (adds) {
            const __m128i old = whole ? _mm_loadu_si128((const __m128i *)(y[r] + t->y_at + v * LANES))
                                      : _mm_maskz_loadu_epi8(here, y[r] + t->y_at + v * LANES);
            f = _mm512_fmadd_ps(add_scale, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(old)), f);
        }
        acc[r][v] = (sums)_mm512_cvtps_epi32(f);
    }
}

/* Packing interleaves the 128-bit lanes of its operands; the permutation of words undoes it. */
ALWAYS void store_panel(unsigned char *y, const sums q[CHUNK_VECS], __m512i lo, __m512i hi) {
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i all = _mm512_packus_epi16(_mm512_packs_epi32((__m512i)q[0], (__m512i)q[1]),
                                            _mm512_packs_epi32((__m512i)q[2], (__m512i)q[3]));
    const __m512i near = _mm512_min_epu8(_mm512_max_epu8(all, lo), hi);
    _mm512_storeu_si512(y, _mm512_permutexvar_epi32(order, near));
}

/* Less than a panel: vector by vector, of which the last may be part. */
ALWAYS void store_vectors(unsigned char *y, int vecs, int outs, const sums q[CHUNK_VECS], __m512i lo,
                          __m512i hi) {
    UNROLL
    for (int v = 0; v < vecs; v++) {
        const __m128i b = _mm512_cvtusepi32_epi8(_mm512_max_epi32((__m512i)q[v], _mm512_setzero_si512()));
        const __m128i least = _mm_max_epu8(b, _mm512_castsi512_si128(lo));
        _mm_mask_storeu_epi8(y + v * LANES, first_lanes(outs - v * LANES),
                             _mm_min_epu8(least, _mm512_castsi512_si128(hi)));
    }
}

ALWAYS void store_bytes_tile(const hp_panel_tile *t, unsigned char *const *y, int rows, int vecs,
                             sums acc[ROWS][CHUNK_VECS], bool adds) {
    const __m512i lo = _mm512_set1_epi8((char)t->out->lo8), hi = _mm512_set1_epi8((char)t->out->hi8);
    UNROLL
    for (int v = 0; v < vecs; v++) scale_column(t, y, rows, v, vecs == CHUNK_VECS, acc, adds);
    UNROLL
    for (int r = 0; r < rows; r++) {
        if (vecs == CHUNK_VECS)
            store_panel(y[r] + t->y_at, acc[r], lo, hi);
        else
            store_vectors(y[r] + t->y_at, vecs, t->outs, acc[r], lo, hi);
    }
}

/* --- floats --- */

/* Sums of bytes as the floats that they stand for. */
ALWAYS void floats_of_sums(const hp_panel_tile *t, int rows, int vecs, sums acc[ROWS][CHUNK_VECS]) {
    UNROLL
    for (int v = 0; v < vecs; v++) {
        const __m512 scale = _mm512_loadu_ps(t->scale + v * LANES),
                     shift = _mm512_loadu_ps(t->shift + v * LANES);
        UNROLL
        for (int r = 0; r < rows; r++)
            acc[r][v] = (sums)_mm512_fmadd_ps(scale, _mm512_cvtepi32_ps((__m512i)acc[r][v]), shift);
    }
}

ALWAYS void store_floats_tile(const hp_panel_tile *t, unsigned char *const *y, int rows, int vecs,
                              sums acc[ROWS][CHUNK_VECS], bool adds) {
    const __m512 lo = _mm512_set1_ps((float)t->out->op.lo), hi = _mm512_set1_ps((float)t->out->op.hi);
    UNROLL
    for (int r = 0; r < rows; r++) {
        float *to = (float *)(void *)(y[r] + t->y_at);
        UNROLL
        for (int v = 0; v < vecs; v++) {
            const __mmask16 here = vecs == CHUNK_VECS ? 0xffff : first_lanes(t->outs - v * LANES);
            __m512 f = (__m512)acc[r][v];
            if (adds) f = _mm512_add_ps(f, _mm512_maskz_loadu_ps(here, to + v * LANES));
            /* in this order a NaN stays one */
            _mm512_mask_storeu_ps(to + v * LANES, here, _mm512_min_ps(hi, _mm512_max_ps(lo, f)));
        }
    }
}

/* What the next tile will write. */
ALWAYS void expect_tile(const hp_panel_tile *t, unsigned char *const *y, int rows, int bytes) {
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int i = 0; i < bytes; i += 64) __builtin_prefetch(y[r] + t->y_at + i, 1);
    }
}

ALWAYS void fast_tiles(hp_dtype type, int rows, int width, const hp_panel_tile *t, bool bytes, bool adds) {
    for (int k = 0; k < t->tiles; k++) {
        sums acc[ROWS][CHUNK_VECS];
        unsigned char *const *y = t->y + k * rows;
        if (k + 1 < t->tiles) expect_tile(t, y + rows, rows, width * (bytes ? 1 : 4));
        chunk_sums(type, rows, width / LANES, t, k, 0, width, acc);
        if (type == HP_U8 && !bytes) floats_of_sums(t, rows, width / LANES, acc);
        if (bytes)
            store_bytes_tile(t, y, rows, width / LANES, acc, adds);
        else
            store_floats_tile(t, y, rows, width / LANES, acc, adds);
    }
}

ALWAYS void tile_fast(hp_dtype type, int rows, int width, const hp_panel_tile *t) {
    const bool bytes = type == HP_U8 && t->out->units, adds = t->out->adds;
    if (bytes && adds)
        fast_tiles(type, rows, width, t, true, true);
    else if (bytes)
        fast_tiles(type, rows, width, t, true, false);
    else if (adds)
        fast_tiles(type, rows, width, t, false, true);
    else
        fast_tiles(type, rows, width, t, false, false);
}

#else

ALWAYS void tile_fast(hp_dtype type, int rows, int width, const hp_panel_tile *t) {
    tile(type, rows, width, t);
}

#endif
#endif
