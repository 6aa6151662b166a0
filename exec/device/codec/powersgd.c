/* powersgd.c - gradient compression by a power iteration with error feedback (Vogels, Karimireddy & Jaggi,
 * NeurIPS 2019, algorithms 1 and 2), with sums instead of means. On each rank M = G + E. P = M Q^T with the
 * last step's Q, summed, orthogonalised; Q = P^T M, summed; the update is P Q. Each rank keeps what P and its
 * own Q leave of M, so nothing is lost. */
#include "exec/device/codec/code.h"
#include "base/rng.h"
#include "plan/program/factors.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };
static const uint64_t STREAM = UINT64_C(1) << 40; /* first stream of random numbers, one per parameter */

#define REAL     float
#define ROUNDING 1e-6 /* several rounding errors of the type: a column with less left is only rounding */
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
