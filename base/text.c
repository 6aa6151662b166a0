/* text.c - appends text to a fixed-size buffer; quotes words for a shell. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hp_text_add(hp_text t, const char *fmt, ...) {
    const size_t have = strlen(t.out);
    va_list ap;
    va_start(ap, fmt);
    if (have < t.n) vsnprintf(t.out + have, t.n - have, fmt, ap);
    va_end(ap);
}

const char *hp_shell_quoted(hp_arena *arena, const char *s) {
    char *out = hp_arena_alloc(arena, 4 * strlen(s) + 3), *at = out;
    *at++ = '\'';
    for (; *s; s++) {
        if (*s == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *s;
        }
    }
    strcpy(at, "'");
    return out;
}

const char *hp_shell_word(hp_arena *arena, const char *s) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
    return *s && s[strspn(s, plain)] == '\0' ? s : hp_shell_quoted(arena, s);
}
