/* flips.c - see flips.h. */
#include "tests/support/plan/flips.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const unsigned char MASK[] = {0x01, 0x80, 0xff};
enum { MASKS = sizeof MASK / sizeof *MASK };

unsigned char *flips_read(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

void flips_put(const char *path, size_t at, unsigned char byte) {
    const int fd = open(path, O_WRONLY);
    assert_true(fd >= 0 && pwrite(fd, &byte, 1, (off_t)at) == 1);
    close(fd);
}

flips_count flips_try(const char *path, uint64_t cases, flip_refused refused, const void *self) {
    size_t n;
    unsigned char *bytes = flips_read(path, &n);
    flips_count c = {0};
    size_t step = 1 + n * MASKS / cases;
    if (step % MASKS == 0) step++; /* otherwise all would have the same mask */
    for (size_t k = 0; k < n * MASKS; k += step, c.tried++) {
        const size_t at = k / MASKS;
        const unsigned char mask = MASK[k % MASKS];
        flips_put(path, at, bytes[at] ^ mask);
        c.refused += refused(self, at, mask);
        flips_put(path, at, bytes[at]);
    }
    free(bytes);
    return c;
}
