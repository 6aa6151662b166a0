/* powersgd.c - gradients by a power iteration with error feedback (Vogels, Karimireddy & Jaggi, NeurIPS 2019, algorithms 1
 * and 2), as sums instead of means: M = G + E on each rank; P = M Q^T by the last step's Q, summed, orthogonal; Q = P^T M,
 * summed; applied is P Q. Each rank keeps of M what P and its own Q leave over, so that nothing is lost. */
#include "exec/device/codec/code.h"
#include "base/rng.h"
#include "plan/program/factors.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };
static const uint64_t STREAM = UINT64_C(1) << 40; /* of random numbers, one for each parameter from here on */

#define REAL     float
#define ROUNDING 1e-6 /* several times the type's rounding: what is left of a column is nothing but that */
#define NAME(f)  f##_f32
#include "exec/device/codec/powersgd.inc"
#undef REAL
#undef ROUNDING
#undef NAME
#define REAL     double
#define ROUNDING 1e-14
#define NAME(f)  f##_f64
#include "exec/device/codec/powersgd.inc"

void hp_code_factors(const hp_bound *b, const hp_step *s) {
    (b->dtype == HP_F32 ? run_f32 : run_f64)(b, s, hp_codec_number(b->code.codec));
}
