/* next.c - command lines for a shell: POSIX quoting (2.2), and $'...' (POSIX 2024, bash, zsh, ksh) for
 * control characters, so that no file name reaches the terminal raw. */
#include "cli/show/next.h"

#include <stdbool.h>
#include <string.h>

static bool is_plain(const char *word) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
    return *word && word[strspn(word, plain)] == 0;
}

/* C0, DEL, and C1 as UTF-8. */
static bool has_control(const char *word) {
    for (const unsigned char *p = (const unsigned char *)word; *p; p++)
        if (*p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)) return true;
    return false;
}

/* A word as a shell reads it: in quotes where it needs them, control characters as escapes. */
static const char *quoted(hp_arena *arena, const char *word) {
    if (is_plain(word)) return word;
    const bool escaped = has_control(word);
    char *out = hp_arena_alloc(arena, 4 * strlen(word) + 4), *at = out;
    at += sprintf(at, escaped ? "$'" : "'");
    for (const unsigned char *p = (const unsigned char *)word; *p; p++) {
        if (!escaped)
            at += sprintf(at, *p == '\'' ? "'\\''" : "%c", *p);
        else if (*p == '\'' || *p == '\\')
            at += sprintf(at, "\\%c", *p);
        else /* octal: three digits, so that a digit may follow */
            at += sprintf(at, *p < 0x20 || *p >= 0x7f ? "\\%03o" : "%c", *p);
    }
    sprintf(at, "'");
    return out;
}

static void add(next_command *c, const char *word) {
    HP_ASSERT(c->n < NEXT_WORDS);
    c->word[c->n++] = word;
}

next_command next_start(const char *verb) {
    return (next_command){1, {verb}};
}

void next_word(next_command *c, const char *word) {
    add(c, word);
}

void next_option(next_command *c, const char *name, const char *value) {
    if (!value) return;
    add(c, name);
    add(c, value);
}

void next_print(FILE *f, const next_command *c) {
    hp_arena *arena = hp_arena_new();
    fprintf(f, "next: hplan %s", c->word[0]);
    for (int i = 1; i < c->n; i++) fprintf(f, " %s", quoted(arena, c->word[i]));
    fputc('\n', f);
    hp_arena_free(arena);
}
