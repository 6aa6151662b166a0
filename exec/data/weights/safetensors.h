/* safetensors.h - reads tensors from a file that contains data only: 8-byte little-endian header length, a
 * JSON object name -> {dtype, shape, data_offsets}, the bytes. Format: huggingface/safetensors, README
 * "Format".
 *
 * The file is untrusted: checks lengths, shapes (checked multiplication), ranges (inside the file, no
 * overlap, no gap), names (no duplicates). */
#ifndef HP_SAFETENSORS_H
#define HP_SAFETENSORS_H

#include "plan/base/st_write.h"

/* --- reading --- */

typedef struct hp_safetensors hp_safetensors;

/* Maps the file, which must not be truncated while it is open. Errors: HP_EDATA with path, reason and fix. */
hp_status hp_safetensors_open(const char *path, hp_safetensors **st, hp_error *err);
void hp_safetensors_close(hp_safetensors *st); /* NULL is fine */

/* Number of tensors. */
int hp_safetensors_count(const hp_safetensors *st);
const hp_st_tensor *hp_safetensors_tensor(const hp_safetensors *st, int i); /* in the order of the data */
const hp_st_tensor *hp_safetensors_find(const hp_safetensors *st, const char *name); /* or NULL; O(log n) */

/* Text of that key in __metadata__, or NULL. */
const char *hp_safetensors_note(const hp_safetensors *st, const char *key);
/* Drops the pages read so far from memory; they are read again on access. */
void hp_safetensors_release_pages(hp_safetensors *st);

/* Elements first .. first+count-1 as a tensor. */
hp_st_tensor hp_st_slice(const hp_st_tensor *t, int64_t first, int64_t count);

/* Is it F64, F32, F16 or BF16, and so convertible? */
int hp_st_is_real(const hp_st_tensor *t);
void hp_st_to_f32(const hp_st_tensor *t, float *out);  /* out: count elements, rounded to nearest */
void hp_st_to_f64(const hp_st_tensor *t, double *out); /* exact */

/* A name made safe for messages: characters other than printable ASCII become '?'; at most 63 characters. */
const char *hp_st_printable(const char *name, char out[64]);

#endif
