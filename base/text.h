/* text.h - a text assembled in a buffer of fixed size; what does not fit is cut off. */
#ifndef HP_TEXT_H
#define HP_TEXT_H

#include "base/arena.h"

#include <stddef.h>

typedef struct hp_text {
    char *out; /* always terminated by a zero */
    size_t n;  /* buffer size in bytes, including the zero */
} hp_text;

/* Appends formatted text; what does not fit is cut off. */
void hp_text_add(hp_text t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* 'As it is', for a shell. Lives in `arena`. */
const char *hp_shell_quoted(hp_arena *arena, const char *s);

#endif
