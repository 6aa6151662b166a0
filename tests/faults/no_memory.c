/* no_memory.c - preloaded into a program: its K-th allocation fails, or all from the K-th on
 * (HPLAN_NO_MEMORY=K or K+). At its end it says how many there were (HPLAN_NO_MEMORY_COUNT=FILE). Only in the
 * program of that name (HPLAN_NO_MEMORY_IN), not in what it starts. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own, below the names that are taken here. */
extern void *__libc_malloc(size_t bytes);           // NOLINT: its name
extern void *__libc_calloc(size_t n, size_t size);  // NOLINT: its name
extern void *__libc_realloc(void *p, size_t bytes); // NOLINT: its name

static atomic_long count;
static long fatal = -1; /* not yet known */
static bool for_ever;

static void read_orders(void) {
    const char *in = getenv("HPLAN_NO_MEMORY_IN"), *order = getenv("HPLAN_NO_MEMORY");
    const bool here = in && strcmp(in, program_invocation_short_name) == 0;
    fatal = here && order ? atol(order) : 0;
    for_ever = order && strchr(order, '+');
}

static bool strikes(void) {
    if (fatal < 0) {
        if (!program_invocation_short_name || !environ) return false; /* before libc has begun */
        read_orders();
    }
    const long k = atomic_fetch_add(&count, 1) + 1;
    if (fatal == 0 || k < fatal || (k > fatal && !for_ever)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes) {
    return strikes() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t size) {
    return strikes() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t bytes) {
    return strikes() ? NULL : __libc_realloc(p, bytes);
}

__attribute__((destructor)) static void say(void) {
    const char *path = getenv("HPLAN_NO_MEMORY_COUNT"), *in = getenv("HPLAN_NO_MEMORY_IN");
    char text[32];
    if (!path || !in || strcmp(in, program_invocation_short_name) != 0) return;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int n = snprintf(text, sizeof text, "%ld\n", atomic_load(&count));
    if (fd >= 0 && write(fd, text, (size_t)n) == n) close(fd);
}
