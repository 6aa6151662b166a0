/* st_read.h - reads tensors from a data-only file: 8-byte little-endian header length, a JSON object name ->
 * {dtype, shape, data_offsets}, the bytes. Format: huggingface/safetensors, README "Format".
 *
 * The file is untrusted. Checks lengths, shapes (checked multiplication), ranges (inside the file, no
 * overlap, no gap) and names (no duplicates). */
#ifndef HP_ST_READ_H
#define HP_ST_READ_H

#include "base/st_write.h"

typedef struct hp_safetensors hp_safetensors;

/* Maps the file, which must not be truncated while open. Errors: HP_EDATA with path, reason and fix. */
hp_status hp_safetensors_open(const char *path, hp_safetensors **st, hp_error *err);
void hp_safetensors_close(hp_safetensors *st); /* NULL is fine */

/* Number of tensors. */
int hp_safetensors_count(const hp_safetensors *st);
const hp_st_tensor *hp_safetensors_tensor(const hp_safetensors *st, int i);          /* in data order */
const hp_st_tensor *hp_safetensors_find(const hp_safetensors *st, const char *name); /* or NULL; O(log n) */

/* From now on, a file name that begins with `strip` is looked up with `prefix` in its place. This handles
 * files written by wrapper modules. Both strings are copied; "" and "" disable the renaming. */
void hp_safetensors_use_prefix(hp_safetensors *st, const char *strip, const char *prefix);
void hp_safetensors_prefix(const hp_safetensors *st, const char **strip, const char **prefix);
/* The name under which the tensor that the file calls `name` is looked up; NULL if it lacks the prefix. */
const char *hp_safetensors_own_name(const hp_safetensors *st, const char *name);

/* Value of `key` in __metadata__, or NULL. */
const char *hp_safetensors_note(const hp_safetensors *st, const char *key);
/* Releases the pages read so far from memory; an access reads them again. */
void hp_safetensors_release_pages(hp_safetensors *st);

/* Makes a name safe for messages: non-printable and non-ASCII characters become '?'; at most 63
 * characters. */
const char *hp_st_printable(const char *name, char out[64]);

#endif
