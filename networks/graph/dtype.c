/* dtype.c - sizes and names of element types. */
#include "networks/graph/dtype.h"

const char *const hp_dtype_names[] = {"f32", "f64", "i32", "u8", "bf16", "f16", "i8"};

int hp_dtype_bytes(hp_dtype t) {
    static const int bytes[HP_DTYPES] = {4, 8, 4, 1, 2, 2, 1};
    return bytes[t];
}
