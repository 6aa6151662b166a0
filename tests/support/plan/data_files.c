/* data_files.c - a scratch folder for a test, and files with given bytes in it. */
#include "tests/support/plan/data_files.h"

char scratch[SCRATCH_PATH / 2]; /* the test's folder, between scratch_setup and scratch_teardown */

int scratch_setup(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/hplan-test-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

int scratch_teardown(void **state) {
    (void)state;
    char *roots[] = {scratch, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk) return -1;
    for (FTSENT *e; (e = fts_read(walk));)
        if (e->fts_info != FTS_D && remove(e->fts_accpath) != 0) return -1;
    return fts_close(walk);
}

const char *scratch_path(const char *name) {
    static char paths[8][SCRATCH_PATH];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, SCRATCH_PATH, "%s/%s", scratch, name);
    for (char *slash = path + strlen(scratch) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    return path;
}

const char *scratch_write(const char *name, const void *bytes, size_t n) {
    const char *path = scratch_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) abort();
    return path;
}

void scratch_put(const char *path, long at, const void *bytes, size_t n) {
    FILE *f = fopen(path, "rb+");
    if (!f || fseek(f, at, SEEK_SET) != 0 || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) abort();
}

unsigned char *scratch_read(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) abort();
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n + 1);
    if (!bytes || fread(bytes, 1, *n, f) != *n) abort();
    fclose(f);
    return bytes;
}
