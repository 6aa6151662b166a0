/* fuzz_file.h - the fuzzer's bytes as a file that has a path, without a disk. */
#ifndef HP_TESTS_FUZZ_FILE_H
#define HP_TESTS_FUZZ_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns its descriptor, to be closed. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[64]) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
