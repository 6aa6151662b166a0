/* arena.c - bump allocation from chained blocks, and the out-of-memory exit. */
#include "base/arena.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

/* --- one end for all that is out of memory --- */

void *hp_allocated(void *p) {
    static const char MESSAGE[] = "hplan: out of memory\n";
    if (p) return p;
    fputs(MESSAGE, stderr);
    exit(HP_EINTERNAL);
}

void *hp_alloc(size_t bytes) {
    return hp_allocated(malloc(bytes ? bytes : 1));
}

void *hp_zeroed(size_t n, size_t size) {
    return hp_allocated(calloc(n ? n : 1, size ? size : 1));
}

void *hp_realloc(void *p, size_t bytes) {
    return hp_allocated(realloc(p, bytes ? bytes : 1));
}

char *hp_strdup(const char *s) {
    return hp_allocated(strdup(s));
}

/* --- blocks --- */

typedef struct block {
    struct block *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} block;

struct hp_arena {
    block *head;
};

hp_arena *hp_arena_new(void) {
    return hp_zeroed(1, sizeof(hp_arena));
}

void hp_arena_free(hp_arena *a) {
    if (!a) return;
    for (block *b = a->head; b;) {
        block *next = b->next;
        free(b);
        b = next;
    }
    free(a);
}

void *hp_arena_alloc(hp_arena *a, size_t size) {
    HP_ASSERT(size < SIZE_MAX / 2);
    size = (size + 15) & ~(size_t)15;
    if (!a->head || a->head->size - a->head->used < size) {
        const size_t room = size > 65536 ? size : 65536;
        block *b = hp_zeroed(1, sizeof(block) + room);
        b->size = room;
        b->next = a->head;
        a->head = b;
    }
    void *p = a->head->bytes + a->head->used;
    a->head->used += size;
    return p;
}

char *hp_arena_strdup(hp_arena *a, const char *s) {
    const size_t n = strlen(s) + 1;
    return memcpy(hp_arena_alloc(a, n), s, n);
}

char *hp_arena_printf(hp_arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    HP_ASSERT(n >= 0);
    char *text = hp_arena_alloc(a, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

void *hp_arena_grow(hp_arena *a, void *array, size_t elem_size, int count, int *capacity) {
    if (count < *capacity) return array;
    const int more = *capacity ? *capacity * 2 : 16;
    HP_ASSERT(count <= *capacity); /* the capacity belongs to this array, not to an earlier one */
    void *grown = hp_arena_alloc(a, elem_size * (size_t)more);
    if (count) memcpy(grown, array, elem_size * (size_t)count);
    *capacity = more;
    return grown;
}
