/* alloc.h (arena.c) - memory that is there, or the program ends: with a message and status 70, as arenas do it. For handles and scratch; what belongs to
 * a plan, a candidate or a run lies in an arena. What a user can make too large to have (an image) is asked of malloc, and is an error. */
#ifndef HP_ALLOC_H
#define HP_ALLOC_H

#include <stddef.h>

/* Freed by free. Never NULL. */
void *hp_alloc(size_t bytes);
void *hp_zeroed(size_t n, size_t size); /* n of `size` zeroed bytes */
void *hp_realloc(void *p, size_t bytes);
char *hp_strdup(const char *s);
/* What some library has allocated: p, if it has. */
void *hp_allocated(void *p);

#endif
