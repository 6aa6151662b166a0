/* slow_rows.c - preloaded: every row of an image whose name contains "slow" takes SLOW_MS milliseconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

FILE *fopen(const char *path, const char *mode);
int inflate(void *stream, int flush);

static bool is_slow;

FILE *fopen(const char *path, const char *mode) {
    FILE *(*const next)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    if (strstr(path, ".png")) is_slow = strstr(path, "slow") != NULL;
    return next(path, mode);
}

/* libpng asks for the pixels of a row at a time. */
int inflate(void *stream, int flush) {
    int (*const next)(void *, int) = (int (*)(void *, int))dlsym(RTLD_NEXT, "inflate");
    const char *ms = getenv("SLOW_MS");
    const long ns = ms ? 1000000 * atol(ms) : 0;
    const struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    if (is_slow) nanosleep(&pause, NULL);
    return next(stream, flush);
}
