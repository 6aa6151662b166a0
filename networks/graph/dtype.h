/* dtype.h - types of the elements in a program's buffers. */
#ifndef HP_DTYPE_H
#define HP_DTYPE_H

typedef enum hp_dtype { HP_F32, HP_F64, HP_I32, HP_U8, HP_BF16, HP_F16, HP_I8, HP_DTYPES } hp_dtype;
int hp_dtype_bytes(hp_dtype t);
extern const char *const hp_dtype_names[]; /* "f32", "f64", "i32", "u8", "bf16", "f16", "i8" */

#endif
