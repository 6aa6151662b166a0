/* loops_store.h - operands of any store as rows of numbers, where they lie or in room beside. */
#ifndef HP_LOOPS_STORE_H
#define HP_LOOPS_STORE_H

#include "exec/device/kernels/loops_elements.h"

/* --- any store --- */

static void load_bytes(real *to, const uint8_t *x, int64_t n, const hp_qparams *l) {
    const real scale = (real)l->scale;
    const int32_t zero = l->zero;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) to[i] = scale * (real)(x[i] - zero);
}

static void load_f32(real *to, const float *x, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) to[i] = (real)x[i];
}

static int element_bytes(const hp_qparams *l) {
    return hp_dtype_bytes(l->dtype);
}

/* Elements at .. at + n as numbers: themselves, or in `room`. */
static const real *view(real *room, const void *x, int64_t at, int64_t n, const hp_qparams *l) {
    if (l->dtype == REAL_DTYPE) return (const real *)x + at;
    if (l->dtype == HP_U8) load_bytes(room, (const uint8_t *)x + at, n, l);
    if (l->dtype == HP_F16) load_f16(room, (const uint16_t *)x + at, n);
    if (l->dtype == HP_BF16) load_bf16(room, (const uint16_t *)x + at, n);
    if (l->dtype == HP_F32) load_f32(room, (const float *)x + at, n);
    return room;
}

/* Where elements from `at` on are made: in their place, or in `room`, from where `put` brings them. */
static real *place(real *room, void *y, int64_t at, const hp_qparams *l) {
    return l->dtype == REAL_DTYPE ? (real *)y + at : room;
}

/* Bytes of `row` become others. */
static void recode_bytes(uint8_t *y, const uint8_t *x, int64_t n, const uint8_t *table) {
    for (int64_t i = 0; i < n; i++) y[i] = table[x[i]];
}

static int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

#endif
