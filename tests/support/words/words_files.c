/* words_files.c - files that a test of the command line creates and compares. */
#define _GNU_SOURCE /* vasprintf */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void words_write_bytes(const char *name, const void *bytes, size_t n) {
    FILE *f = fopen(name, "w");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f)) fail_msg("%s cannot be written", name);
}

void words_write(const char *name, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (n < 0) fail_msg("no memory for %s", name);
    words_write_bytes(name, text, (size_t)n);
    free(text);
}

char *words_read(const char *name, size_t *n) {
    struct stat s;
    FILE *f = fopen(name, "r");
    *n = 0;
    if (!f) return NULL;
    char *bytes = NULL;
    if (!fstat(fileno(f), &s) && S_ISREG(s.st_mode) && (bytes = malloc((size_t)s.st_size + 1))) {
        *n = fread(bytes, 1, (size_t)s.st_size, f);
        bytes[*n] = 0;
    }
    fclose(f);
    return bytes;
}

bool words_same_file(const char *a, const char *b) {
    size_t na, nb;
    char *x = words_read(a, &na), *y = words_read(b, &nb);
    const bool same = x && y && na == nb && !memcmp(x, y, na);
    free(x);
    free(y);
    return same;
}

bool words_program(const char *name) {
    const char *path = getenv("PATH");
    for (char at[512]; path && *path; path += strcspn(path, ":"), path += *path == ':') {
        snprintf(at, sizeof at, "%.*s/%s", (int)strcspn(path, ":"), path, name);
        if (!access(at, X_OK)) return true;
    }
    return false;
}
