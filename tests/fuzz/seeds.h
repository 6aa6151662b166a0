/* seeds.h - what writes the seeds. */
#ifndef HP_TESTS_SEEDS_H
#define HP_TESTS_SEEDS_H

/* "DIR/NAME"; valid until the next call. */
char *path_in(const char *dir, const char *name);

/* seeds_state.c */
void make_databases(const char *dir);
void make_checkpoint(const char *dir);
void make_ring(const char *dir);
void make_graphs(const char *dir);

#endif
