/* flips.h - a file in which one byte is another. */
#ifndef HP_TESTS_FLIPS_H
#define HP_TESTS_FLIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the file is refused whose byte `at` is another, by `mask`; fails the test where it is taken for something else. */
typedef bool (*flip_refused)(const void *self, size_t at, unsigned char mask);

typedef struct flips_count {
    size_t refused, tried;
} flips_count;

/* The file's bytes, to be freed. */
unsigned char *flips_read(const char *path, size_t *n);
void flips_put(const char *path, size_t at, unsigned char byte);

/* Some `cases` flips, evenly spaced over the file: bytes with the lowest bit, the highest or all bits inverted. More cases than
 * there are: each of the three in every byte. The file is as before afterwards. */
flips_count flips_try(const char *path, uint64_t cases, flip_refused refused, const void *self);

#endif
