/* tree.h - a folder of small files in place of /proc and /sys, for a test's duration. */
#ifndef HP_TESTS_TREE_H
#define HP_TESTS_TREE_H

typedef struct tree {
    char root[64]; /* prefix for absolute paths */
} tree;

/* cmocka fixtures: *state is a tree. */
int tree_open(void **state);
int tree_close(void **state);

/* Writes a file at an absolute path, with the folders above it; replaces an earlier one. */
void tree_write(const tree *t, const char *path, const char *text);

#endif
