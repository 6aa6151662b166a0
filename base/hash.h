/* hash.h - content hashes (XXH3, 128 bit) as 32 hex digits. */
#ifndef HP_HASH_H
#define HP_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct hp_hash {
    char hex[33];
} hp_hash;

/* Hash of `size` bytes, as text of 32 hex digits. */
hp_hash hp_hash_bytes(const void *data, size_t size);
/* 64-bit hash (XXH3) of `size` bytes. */
uint64_t hp_hash64(const void *data, size_t size, uint64_t seed);

#endif
