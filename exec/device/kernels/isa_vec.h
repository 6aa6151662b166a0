/* isa_vec.h - the vector of this translation unit's instruction set, and how loops are told they may use it.
 */
#ifndef HP_ISA_VEC_H
#define HP_ISA_VEC_H

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

/* Loads and stores through it need no alignment. */
typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* The next loop's iterations do not depend on each other, also where an output is an input. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define UNROLL      _Pragma("clang loop unroll(full)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#define UNROLL      _Pragma("GCC unroll 16")
#endif

static inline vec vec_load(const float *p) {
    return *(const vec *)p;
}

static inline void vec_store(float *p, vec v) {
    *(vec *)p = v;
}

#endif
