/* isa_dot.h - one step of a sum: a broadcast piece of a pixel times the weights of LANES outputs. Bytes
 * exactly, in 32 bits; floats fused where the processor can. */
#ifndef HP_ISA_DOT_H
#define HP_ISA_DOT_H

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* LANES sums of 32 bits, integers or floats. */
typedef int32_t sums __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS sums sums_load(const void *p) {
    return *(const sums *)p;
}

ALWAYS void sums_store(void *p, sums v) {
    *(sums *)p = v;
}

ALWAYS sums splat(int32_t v) {
    return v - (sums){0};
}

/* --- bytes: four products --- */

#if defined(__AVX512VNNI__)
/* The intrinsic would have GCC 12 keep copies of the sums in memory. */
ALWAYS sums dot_bytes(sums acc, sums x, sums w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(x), "v"(w));
    return acc;
}
#elif defined(__AVX512BW__)
/* Two products of bytes may exceed 16 bits: one at a time. */
ALWAYS sums dot_bytes(sums acc, sums x, sums w) {
    const __m512i one = _mm512_set1_epi16(1), v = (__m512i)x;
    const __m512i even = _mm512_maddubs_epi16(_mm512_and_si512(v, _mm512_set1_epi16(0xff)), (__m512i)w),
                  odd = _mm512_maddubs_epi16(_mm512_andnot_si512(_mm512_set1_epi16(0xff), v), (__m512i)w);
    return acc + (sums)_mm512_madd_epi16(even, one) + (sums)_mm512_madd_epi16(odd, one);
}
#elif defined(__AVX2__)
ALWAYS sums dot_bytes(sums acc, sums x, sums w) {
    const __m256i one = _mm256_set1_epi16(1), v = (__m256i)x;
    const __m256i even = _mm256_maddubs_epi16(_mm256_and_si256(v, _mm256_set1_epi16(0xff)), (__m256i)w),
                  odd = _mm256_maddubs_epi16(_mm256_andnot_si256(_mm256_set1_epi16(0xff), v), (__m256i)w);
    return acc + (sums)_mm256_madd_epi16(even, one) + (sums)_mm256_madd_epi16(odd, one);
}
#else
ALWAYS sums dot_bytes(sums acc, sums x, sums w) {
    UNROLL
    for (int i = 0; i < 4; i++) acc += (x >> 8 * i & 255) * (w << (24 - 8 * i) >> 24);
    return acc;
}
#endif

/* --- floats --- */

#if defined(__AVX512F__)
ALWAYS sums dot_floats(sums acc, sums x, sums w) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(acc) : "v"(x), "v"(w));
    return acc;
}
#elif defined(__FMA__)
ALWAYS sums dot_floats(sums acc, sums x, sums w) {
    return (sums)_mm256_fmadd_ps((__m256)x, (__m256)w, (__m256)acc);
}
#else
ALWAYS sums dot_floats(sums acc, sums x, sums w) {
    return (sums)((vec)acc + (vec)x * (vec)w);
}
#endif

/* Two bfloat16, the upper halves of floats. */
#if defined(__AVX512BF16__)
ALWAYS sums dot_halves(sums acc, sums x, sums w) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(x), "v"(w));
    return acc;
}
#else
ALWAYS sums dot_halves(sums acc, sums x, sums w) {
    const sums upper = splat((int32_t)0xffff0000);
    return dot_floats(dot_floats(acc, x << 16, w << 16), x & upper, w & upper);
}
#endif

/* --- a pixel's next step, and the weights of LANES outputs --- */

ALWAYS sums step_load(hp_dtype type, const unsigned char *x) {
    int32_t word;
    uint16_t half;
    if (type != HP_F16) {
        memcpy(&word, x, sizeof word);
        return splat(word);
    }
    memcpy(&half, x, sizeof half);
    const float v = from_f16(half);
    memcpy(&word, &v, sizeof word);
    return splat(word);
}

ALWAYS sums halves_load(const unsigned char *w) {
#if defined(__AVX512F__)
    return (sums)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)w));
#elif defined(__F16C__)
    return (sums)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)w));
#else
    uint16_t half[LANES];
    float v[LANES];
    memcpy(half, w, sizeof half);
    for (int i = 0; i < LANES; i++) v[i] = from_f16(half[i]);
    return sums_load(v);
#endif
}

/* Into a register, to stay there: the compiler would rather load again than use the upper sixteen. */
ALWAYS sums weights_load(hp_dtype type, const unsigned char *w) {
    sums v = type == HP_F16 ? halves_load(w) : sums_load(w);
#if defined(__AVX512F__)
    __asm__("" : "+v"(v));
#endif
    return v;
}

ALWAYS sums dot(hp_dtype type, sums acc, sums x, sums w) {
    if (type == HP_U8) return dot_bytes(acc, x, w);
    if (type == HP_BF16) return dot_halves(acc, x, w);
    return dot_floats(acc, x, w);
}

/* Bytes of a step of one output's weights; of a step of a pixel. */
enum { HALF_STEP = 2, WHOLE_STEP = 4 };

ALWAYS int step_bytes(hp_dtype type) {
    return type == HP_F16 ? HALF_STEP : WHOLE_STEP;
}

#endif
