/* safetensors.h - tensors of a safetensors file (base/st_read.h) as numbers. */
#ifndef HP_SAFETENSORS_H
#define HP_SAFETENSORS_H

#include "base/st_read.h"

/* Elements first .. first+count-1 as a tensor. */
hp_st_tensor hp_st_slice(const hp_st_tensor *t, int64_t first, int64_t count);

/* Is it F64, F32, F16 or BF16, which can be converted? */
int hp_st_is_real(const hp_st_tensor *t);
void hp_st_to_f32(const hp_st_tensor *t, float *out);  /* out: count elements, rounded to nearest */
void hp_st_to_f64(const hp_st_tensor *t, double *out); /* exact */

#endif
