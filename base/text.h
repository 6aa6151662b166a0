/* text.h - builds text in a fixed-size buffer; text that does not fit is truncated. */
#ifndef HP_TEXT_H
#define HP_TEXT_H

#include "base/arena.h"

#include <stddef.h>

typedef struct hp_text {
    char *out; /* always NUL-terminated */
    size_t n;  /* buffer size in bytes, including the NUL */
} hp_text;

/* Appends formatted text; truncates what does not fit. */
void hp_text_add(hp_text t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Quotes text for a shell: 'as it is'. Lives in `arena`. */
const char *hp_shell_quoted(hp_arena *arena, const char *s);
/* The same where a shell needs the quotes; other text is returned as it is. */
const char *hp_shell_word(hp_arena *arena, const char *s);

#endif
