/* alloc.h (arena.c) - allocation that never returns NULL: out of memory ends the program with a message and
 * status 70, as in arenas.
 *
 * Use it for handles and scratch. Data of a plan, a candidate or a run belongs in an arena. A size that the
 * user chooses (an image) goes to malloc, whose failure is an ordinary error. */
#ifndef HP_ALLOC_H
#define HP_ALLOC_H

#include <stddef.h>

/* Freed by free. Never NULL. */
void *hp_alloc(size_t bytes);
void *hp_zeroed(size_t n, size_t size); /* n zeroed elements of `size` bytes */
void *hp_realloc(void *p, size_t bytes);
char *hp_strdup(const char *s);
/* Checks an allocation made by a library: returns p, or ends the program if it is NULL. */
void *hp_allocated(void *p);

#endif
