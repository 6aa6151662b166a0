/* st_write.h - writes safetensors files: an 8-byte little-endian header length, a JSON object name -> {dtype,
 * shape, data_offsets}, the tensors' bytes. Format: huggingface/safetensors, README "Format". st_read.h reads
 * them. */
#ifndef HP_ST_WRITE_H
#define HP_ST_WRITE_H

#include "base/status.h"

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
    const unsigned char *data; /* count * bytes, little-endian, any alignment; only the reader sets it */
} hp_st_tensor;

typedef struct hp_st_source {
    /* Returns the bytes of tensor i, called in order of i; valid until the next call. NULL with `err` set
     * aborts the write. */
    const void *(*data)(void *self, int i, hp_error *err);
    void *self;
} hp_st_source;

typedef struct hp_st_note { /* an entry of __metadata__ */
    const char *key, *text;
} hp_st_note;

/* Builds what precedes the tensors' bytes: the header length and the header, padded so that the data starts
 * at a multiple of 8. Sets *bytes; the caller frees the result. Errors: HP_ECREATE (too many names). */
hp_status hp_safetensors_head(const hp_st_note *note, int n_note, const hp_st_tensor *tensor, int n,
                              char **head, size_t *bytes, hp_error *err);

/* Writes a file beside `path`, syncs it and renames it, so that an earlier file stays intact on every
 * failure. `tensor` gives the name (unique), dtype, n_dim and dim of each; count and data are not read. The
 * metadata holds the notes, and "format": "pt" for PyTorch's tools unless a note overrides it. Errors:
 * HP_ECREATE (cannot create, too many names), HP_EIO (disk full), or the source's error. */
hp_status hp_safetensors_write_noted(const char *path, const hp_st_note *note, int n_note,
                                     const hp_st_tensor *tensor, int n, const hp_st_source *source,
                                     hp_error *err);
/* The same without notes. */
hp_status hp_safetensors_write(const char *path, const hp_st_tensor *tensor, int n,
                               const hp_st_source *source, hp_error *err);

#endif
