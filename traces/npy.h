/* npy.h - arrays in NumPy's .npy format, versions 1 to 3 (NEP 1 and its successors), from untrusted files:
 * little-endian, C order, read as float32. */
#ifndef HP_NPY_H
#define HP_NPY_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

enum { HP_NPY_DIMS = 8 };

typedef struct hp_npy {
    int32_t n_dim; /* 0: a scalar */
    int64_t dim[HP_NPY_DIMS];
    int64_t count; /* product of dim */
    float *data;   /* (dim), dense */
} hp_npy;

/* Elements may be f4, f8, or integers u1, i4, i8, which are rounded to float32. The file must be exactly as
 * long as its header implies. Errors: HP_EDATA. */
hp_status hp_npy_read(hp_arena *arena, const char *path, hp_npy *a, hp_error *err);

#endif
