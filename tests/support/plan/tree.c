/* tree.c - files below a temporary folder of mkdtemp. */
#define _GNU_SOURCE /* nftw */
#include "tests/support/plan/tree.h"

#include "base/status.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int tree_open(void **state) {
    tree *t = calloc(1, sizeof *t);
    HP_ASSERT(t);
    strcpy(t->root, "/tmp/hplan-tree-XXXXXX");
    *state = t;
    return mkdtemp(t->root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

int tree_close(void **state) {
    tree *t = *state;
    const int status = nftw(t->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(t);
    return status;
}

void tree_write(const tree *t, const char *path, const char *text) {
    char full[1024];
    HP_ASSERT(snprintf(full, sizeof full, "%s%s", t->root, path) < (int)sizeof full);
    for (char *p = full + strlen(t->root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    HP_ASSERT(f && fputs(text, f) >= 0 && fclose(f) == 0);
}
