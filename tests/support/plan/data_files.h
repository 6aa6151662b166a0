/* data_files.h - a scratch folder for a test, and files with given bytes in it. */
#ifndef HP_TESTS_DATA_FILES_H
#define HP_TESTS_DATA_FILES_H

#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCRATCH_PATH = 512 };

extern char scratch[SCRATCH_PATH / 2]; /* the test's folder, between scratch_setup and scratch_teardown */
;
int scratch_setup(void **state);
int scratch_teardown(void **state);

/* Path of scratch/name, whose folders are created; valid until the eighth call after this one. */
const char *scratch_path(const char *name);
const char *scratch_write(const char *name, const void *bytes, size_t n);

/* Overwrites n bytes of a file from `at` on. */
void scratch_put(const char *path, long at, const void *bytes, size_t n);

/* The whole file; the caller frees it. */
unsigned char *scratch_read(const char *path, size_t *n);

#endif
