/* onnx_names.h - a set of names, numbered 0, 1, ... in order of appearance. */
#ifndef HP_ONNX_NAMES_H
#define HP_ONNX_NAMES_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct onnx_names {
    hp_arena *arena;
    const char **name; /* by number; not copied */
    int32_t n, cap;
    int32_t *slot; /* open addressing, -1: free; n_slot is a power of two */
    int32_t n_slot;
} onnx_names;

int32_t onnx_names_find(const onnx_names *s, const char *name); /* -1: not there */
int32_t onnx_names_add(onnx_names *s, const char *name, bool *added);

#endif
