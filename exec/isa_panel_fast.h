/* isa_panel_fast.h - from sums in 512-bit registers to outputs without a detour through memory: bytes with a clamp,
 * floats with a clamp. What other instruction sets get instead is isa_panel.h's. */
#ifndef HP_ISA_PANEL_FAST_H
#define HP_ISA_PANEL_FAST_H

#if defined(__AVX512BW__)

/* What all pixels of a tile share, out of reach of the stores. */
typedef struct ends {
    const float *scale, *shift;
    float add_scale, lo, hi;
    char lo8, hi8;
    int outs;
} ends;

ALWAYS ends ends_of(const hp_panel_tile *t) {
    const hp_panel_out *o = t->out;
    return (ends){t->scale,         t->shift,      o->add_scale, (float)o->op.lo, (float)o->op.hi,
                  (char)o->lo8, (char)o->hi8, t->outs};
}

ALWAYS __mmask16 first_lanes(int n) {
    return n >= LANES ? 0xffff : (__mmask16)((1u << n) - 1);
}

/* --- bytes --- */

/* Integers near the output: sums scaled and shifted, and what is added. */
ALWAYS __m512i scaled(const ends *e, sums sum, const unsigned char *y, int at, bool whole, bool adds) {
    __m512 v = _mm512_fmadd_ps(_mm512_loadu_ps(e->scale + at), _mm512_cvtepi32_ps((__m512i)sum),
                               _mm512_loadu_ps(e->shift + at));
    if (adds) {
        const __m128i old = whole ? _mm_loadu_si128((const __m128i *)(y + at))
                                  : _mm_maskz_loadu_epi8(first_lanes(e->outs - at), y + at);
        v = _mm512_fmadd_ps(_mm512_set1_ps(e->add_scale), _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(old)), v);
    }
    return _mm512_cvtps_epi32(v);
}

/* Packing interleaves the 128-bit lanes of its operands; the permutation of words undoes it. */
ALWAYS __m512i bytes_of(const __m512i q[4], const ends *e) {
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i all = _mm512_packus_epi16(_mm512_packs_epi32(q[0], q[1]), _mm512_packs_epi32(q[2], q[3]));
    const __m512i least = _mm512_max_epu8(all, _mm512_set1_epi8(e->lo8));
    return _mm512_permutexvar_epi32(order, _mm512_min_epu8(least, _mm512_set1_epi8(e->hi8)));
}

ALWAYS void store_whole(const ends *e, unsigned char *y, const sums acc[CHUNK_VECS], bool adds) {
    __m512i q[4];
    UNROLL
    for (int v = 0; v < 4; v++) q[v] = scaled(e, acc[v], y, v * LANES, true, adds);
    _mm512_storeu_si512(y, bytes_of(q, e));
}

ALWAYS void store_part(const ends *e, unsigned char *y, sums acc, int at, bool adds) {
    const __m512i q = _mm512_max_epi32(scaled(e, acc, y, at, false, adds), _mm512_setzero_si512());
    const __m128i least = _mm_max_epu8(_mm512_cvtusepi32_epi8(q), _mm_set1_epi8(e->lo8));
    _mm_mask_storeu_epi8(y + at, first_lanes(e->outs - at), _mm_min_epu8(least, _mm_set1_epi8(e->hi8)));
}

ALWAYS void store_bytes_row(const ends *e, unsigned char *y, int vecs, const sums acc[CHUNK_VECS], bool adds) {
    if (vecs == 4 && e->outs == HP_PANEL_OUTS) {
        store_whole(e, y, acc, adds);
        return;
    }
    UNROLL
    for (int v = 0; v < vecs; v++) store_part(e, y, acc[v], v * LANES, adds);
}

/* --- floats --- */

ALWAYS void store_floats(const ends *e, float *y, __m512 v, int at, bool adds) {
    const __mmask16 here = first_lanes(e->outs - at);
    if (adds) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(here, y + at));
    v = _mm512_max_ps(_mm512_set1_ps(e->lo), v); /* in this order a NaN stays one */
    v = _mm512_min_ps(_mm512_set1_ps(e->hi), v);
    _mm512_mask_storeu_ps(y + at, here, v);
}

ALWAYS void store_row(hp_dtype type, const ends *e, unsigned char *y, int vecs, const sums acc[CHUNK_VECS],
                      bool adds) {
    if (type == HP_U8) {
        store_bytes_row(e, y, vecs, acc, adds);
        return;
    }
    UNROLL
    for (int v = 0; v < vecs; v++) store_floats(e, (float *)(void *)y, (__m512)acc[v], v * LANES, adds);
}

ALWAYS void tile_fast(hp_dtype type, int rows, int width, const hp_panel_tile *t) {
    const ends e = ends_of(t);
    sums acc[ROWS][CHUNK_VECS];
    chunk_sums(type, rows, width / LANES, t, 0, width, acc);
    if (t->out->adds) {
        UNROLL
        for (int r = 0; r < rows; r++) store_row(type, &e, t->y[r], width / LANES, acc[r], true);
    } else {
        UNROLL
        for (int r = 0; r < rows; r++) store_row(type, &e, t->y[r], width / LANES, acc[r], false);
    }
}

#else

ALWAYS void tile_fast(hp_dtype type, int rows, int width, const hp_panel_tile *t) {
    tile(type, rows, width, t);
}

#endif
#endif
