/* safetensors.h - tensors in a file that holds data and nothing else: 8-byte little-endian header length, a
 * JSON object name -> {dtype, shape, data_offsets}, the bytes. Format: huggingface/safetensors, README
 * "Format".
 *
 * Reading trusts nothing: lengths, shapes (checked multiplication), ranges (inside the file, no overlap, no
 * hole), names (no duplicates). */
#ifndef HP_SAFETENSORS_H
#define HP_SAFETENSORS_H

#include "plan/base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { HP_ST_MAX_HEADER = 16 << 20, HP_ST_MAX_TENSORS = 65536, HP_ST_MAX_DIM = 8 };

typedef enum hp_st_dtype {
    HP_ST_F64,
    HP_ST_F32,
    HP_ST_F16,
    HP_ST_BF16,
    HP_ST_I64,
    HP_ST_I32,
    HP_ST_I16,
    HP_ST_I8,
    HP_ST_U64,
    HP_ST_U32,
    HP_ST_U16,
    HP_ST_U8,
    HP_ST_BOOL,
    HP_ST_DTYPES
} hp_st_dtype;

typedef struct hp_st_info {
    const char *name; /* "F32" */
    int32_t bytes;
} hp_st_info;
extern const hp_st_info hp_st_infos[HP_ST_DTYPES];

typedef struct hp_st_tensor {
    const char *name;
    int32_t dtype; /* hp_st_dtype */
    int32_t n_dim; /* 0: a scalar */
    int64_t dim[HP_ST_MAX_DIM];
    int64_t count;             /* elements */
    const unsigned char *data; /* count * bytes, little-endian, of any alignment; reader only */
} hp_st_tensor;

/* --- reading --- */

typedef struct hp_safetensors hp_safetensors;

/* Maps the file; nobody may shorten it while it is open. Errors: HP_EDATA with path, reason and fix. */
hp_status hp_safetensors_open(const char *path, hp_safetensors **st, hp_error *err);
void hp_safetensors_close(hp_safetensors *st); /* NULL is fine */

int hp_safetensors_count(const hp_safetensors *st);
const hp_st_tensor *hp_safetensors_tensor(const hp_safetensors *st, int i); /* in the order of the data */
const hp_st_tensor *hp_safetensors_find(const hp_safetensors *st, const char *name); /* or NULL; O(log n) */

/* Text of that key in __metadata__, or NULL. */
const char *hp_safetensors_note(const hp_safetensors *st, const char *key);
/* Gives back the memory of what was read; tensors are read again when they are asked for. */
void hp_safetensors_rest(hp_safetensors *st);

/* Elements first .. first+count-1 of the tensor, as one of its own. */
hp_st_tensor hp_st_slice(const hp_st_tensor *t, int64_t first, int64_t count);

/* Is it F64, F32, F16 or BF16: can it be converted? */
int hp_st_is_real(const hp_st_tensor *t);
void hp_st_to_f32(const hp_st_tensor *t, float *out);  /* out: count elements, rounded to nearest */
void hp_st_to_f64(const hp_st_tensor *t, double *out); /* exact */

/* Text of a name for messages: what is not printable ASCII becomes '?'; at most 63 characters. */
const char *hp_st_printable(const char *name, char out[64]);

/* --- writing --- */

typedef struct hp_st_source {
    /* Bytes of tensor i, in order of i; they need to last until the next call. NULL with `err` set stops the
     * writing. */
    const void *(*data)(void *self, int i, hp_error *err);
    void *self;
} hp_st_source;

typedef struct hp_st_note { /* of __metadata__ */
    const char *key, *text;
} hp_st_note;

/* Writes `path`.tmp, syncs it and renames it: a file of that name stays whole whatever happens. `tensor`:
 * name, dtype, n_dim, dim of each, unique names; count and data are not read. Metadata: the notes, and
 * "format": "pt" for PyTorch's tools unless they say otherwise. Errors: HP_ECREATE (cannot
 * create), HP_EIO (disk full), or what the source reports. */
hp_status hp_safetensors_write_noted(const char *path, const hp_st_note *note, int n_note,
                                     const hp_st_tensor *tensor, int n, const hp_st_source *source,
                                     hp_error *err);
/* The same without notes. */
hp_status hp_safetensors_write(const char *path, const hp_st_tensor *tensor, int n,
                               const hp_st_source *source, hp_error *err);

#endif
