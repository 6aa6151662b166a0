/* arena.h - memory by lifetime: one arena per plan, candidate or run, freed as a whole. */
#ifndef HP_ARENA_H
#define HP_ARENA_H

#include <stddef.h>

typedef struct hp_arena hp_arena;

hp_arena *hp_arena_new(void);    /* aborts when out of memory */
void hp_arena_free(hp_arena *a); /* NULL is fine */

/* `size` zeroed bytes aligned to 16; lives as long as the arena. Never NULL. */
void *hp_arena_alloc(hp_arena *a, size_t size);
/* Copies a string, or formatted text, into the arena. */
char *hp_arena_strdup(hp_arena *a, const char *s);
char *hp_arena_printf(hp_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Grows an array of `count` elements and capacity `*capacity` so that one more fits. Returns the array, which
 * may have moved. */
void *hp_arena_grow(hp_arena *a, void *array, size_t elem_size, int count, int *capacity);

#define HP_NEW(arena, type, n) ((type *)hp_arena_alloc((arena), sizeof(type) * (size_t)(n)))

/* Makes room for element `count` of `array`; appends nothing itself. */
#define HP_ROOM(arena, array, count, capacity)                                                               \
    ((count) < (capacity)                                                                                    \
         ? (void)0                                                                                           \
         : (void)((array) = hp_arena_grow((arena), (array), sizeof *(array), (count), &(capacity))))

#endif
