/* onnx_names.c - a hash table of names; the seed is fixed, so that reading a model is deterministic. */
#include "networks/onnx/onnx_names.h"

#include "base/hash.h"

#include <string.h>

/* The name's slot, or the free slot for it. */
static int32_t *slot_of(const onnx_names *s, const char *name) {
    const int32_t mask = s->n_slot - 1;
    int32_t i = (int32_t)(hp_hash64(name, strlen(name), 0) & (uint64_t)mask);
    while (s->slot[i] >= 0 && strcmp(s->name[s->slot[i]], name) != 0) i = (i + 1) & mask;
    return &s->slot[i];
}

static void grow_slots(onnx_names *s) {
    s->n_slot = s->n_slot ? 2 * s->n_slot : 64;
    s->slot = HP_NEW(s->arena, int32_t, s->n_slot);
    memset(s->slot, -1, sizeof *s->slot * (size_t)s->n_slot);
    for (int32_t k = 0; k < s->n; k++) *slot_of(s, s->name[k]) = k;
}

int32_t onnx_names_find(const onnx_names *s, const char *name) {
    return s->n_slot ? *slot_of(s, name) : -1;
}

int32_t onnx_names_add(onnx_names *s, const char *name, bool *added) {
    if (2 * (s->n + 1) > s->n_slot) grow_slots(s);
    int32_t *slot = slot_of(s, name);
    *added = *slot < 0;
    if (*slot >= 0) return *slot;
    HP_ROOM(s->arena, s->name, s->n, s->cap);
    s->name[s->n] = name;
    return *slot = s->n++;
}
