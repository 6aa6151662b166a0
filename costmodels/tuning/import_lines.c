/* import_lines.c - recovers a tool's lines from logs that put prefixes before each (mpirun --tag-output, srun
 * -l, times, names of pods), colour them, or lost the '#' in a web page.
 *
 * The prefix of a table's title shows the form: a line belongs to the tool if it begins in the same form,
 * with the same marks, and digits and words in the same places. */
#include "costmodels/tuning/import_text.h"

#include <ctype.h>
#include <string.h>

/* --- colours --- */

/* Removes escape sequences (ECMA-48: ESC [ ... a final byte) and carriage returns. */
static void strip_controls(char *line) {
    char *to = line;
    for (const char *c = line; *c;) {
        if (c[0] == '\x1b' && c[1] == '[') {
            c += 2;
            while (*c && (*c < '@' || *c > '~')) c++;
            c += *c != 0;
        } else if (*c == '\r') {
            c++;
        } else {
            *to++ = *c++;
        }
    }
    *to = 0;
}

/* --- what stands before --- */

static const char *after_blanks(const char *c) {
    return c + strspn(c, " \t");
}

static size_t run_of(const char *c, bool *letters) {
    size_t n = 0;
    *letters = false;
    for (; isalnum((unsigned char)c[n]); n++) *letters |= isalpha((unsigned char)c[n]) != 0;
    return n;
}

/* What follows a prefix of this form; NULL if the line begins differently. */
static const char *after_form(const char *form, const char *line) {
    for (;;) {
        bool letters, other;
        form = after_blanks(form);
        line = after_blanks(line);
        if (!*form) return line;
        const size_t n = run_of(form, &letters), m = run_of(line, &other);
        if ((n == 0) != (m == 0) || letters != other || (n == 0 && *form != *line)) return NULL;
        form += n ? n : 1;
        line += n ? m : 1;
    }
}

/* The prefix before the title, without the title's '#'. */
static char *before(hp_arena *arena, const char *line, const char *title) {
    size_t n = (size_t)(title - line);
    while (n > 0 && isblank((unsigned char)line[n - 1])) n--;
    if (n > 0 && line[n - 1] == '#') n--;
    while (n > 0 && isblank((unsigned char)line[n - 1])) n--;
    return hp_arena_printf(arena, "%.*s", (int)n, line);
}

static void add_form(import_lines *l, const char *form) {
    for (int i = 0; i < l->n_form; i++) {
        const char *rest = after_form(l->form[i], form);
        if (rest && !*rest) return;
    }
    if (l->n_form < (int)(sizeof l->form / sizeof *l->form)) l->form[l->n_form++] = form;
}

/* The rest of the line after the longest matching form. */
static char *after_any_form(const import_lines *l, char *line) {
    char *own = line;
    for (int i = 0; i < l->n_form; i++) {
        const char *rest = after_form(l->form[i], line);
        if (rest && rest > own) own = line + (rest - line);
    }
    return own;
}

/* --- lost marks --- */

static bool is_comment_of(const import_tool *t, const char *line) {
    if (t->title(line) == line) return true;
    for (const char *const *c = t->comments; *c; c++)
        if (strncmp(line, *c, strlen(*c)) == 0) return true;
    return false;
}

static char *with_mark(hp_arena *arena, char *line, const import_tool *const *tools) {
    if (*line == '#') return line;
    for (const import_tool *const *t = tools; *t; t++)
        if (is_comment_of(*t, line)) return hp_arena_printf(arena, "# %s", line);
    return line;
}

/* --- all lines --- */

import_lines hp_import_lines(hp_arena *arena, const char *text, const import_tool *const *tools) {
    import_lines l = {0};
    int room = 0;
    char *rest = hp_arena_strdup(arena, text);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        strip_controls(line);
        HP_ROOM(arena, l.line, l.n, room);
        l.line[l.n++] = line;
    }
    for (int i = 0; i < l.n; i++)
        for (const import_tool *const *t = tools; *t; t++) {
            const char *title = (*t)->title(l.line[i]);
            if (title) add_form(&l, before(arena, l.line[i], title));
        }
    for (int i = 0; i < l.n; i++) {
        char *own = after_any_form(&l, l.line[i]);
        l.line[i] = with_mark(arena, own + strspn(own, " \t"), tools);
    }
    return l;
}
