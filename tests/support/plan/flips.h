/* flips.h - a file with one byte changed. */
#ifndef HP_TESTS_FLIPS_H
#define HP_TESTS_FLIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is the file refused after byte `at` was changed by `mask`? Fails the test if the file is accepted
 * as something else. */
typedef bool (*flip_refused)(const void *self, size_t at, unsigned char mask);

typedef struct flips_count {
    size_t refused, tried;
} flips_count;

/* The file's bytes; the caller frees them. */
unsigned char *flips_read(const char *path, size_t *n);
void flips_put(const char *path, size_t at, unsigned char byte);

/* Tries about `cases` flips, evenly spaced over the file: bytes with the lowest bit, the highest or all bits
 * inverted. With more cases than that: each of the three for every byte. The file is restored afterwards. */
flips_count flips_try(const char *path, uint64_t cases, flip_refused refused, const void *self);

#endif
