/* words.c - splits the options of a row as a shell would for `hplan simulate`. */
#include "cli/experiments/experiments.h"

#include <string.h>

enum { MOST_WORDS = 64 };

/* Splits `text` at blanks outside double quotes, and removes the quotes. Returns the number of words; -1: too
 * many, or an open quote. */
static int split(char *text, char **word) {
    int n = 0;
    for (char *from = text; *from;) {
        from += strspn(from, " \t");
        if (!*from) break;
        if (n == MOST_WORDS) return -1;
        const bool quoted = *from == '"';
        word[n++] = from += quoted;
        from += strcspn(from, quoted ? "\"" : " \t");
        if (quoted && !*from) return -1;
        if (*from) *from++ = 0;
    }
    return n;
}

hp_status experiment_parse_options(hp_arena *arena, const char *text, experiment_row *row, hp_error *err) {
    char **word = HP_NEW(arena, char *, MOST_WORDS + 2);
    static char command[] = "simulate";
    word[0] = command;
    const int n = split(hp_arena_strdup(arena, text), word + 1);
    if (n < 0) return hp_fail(err, HP_EUSAGE, "an open quote, or more than %d words of options", MOST_WORDS);
    word[n + 1] = NULL;
    for (int i = 1; i <= n; i += 2)
        if (strncmp(word[i], "--", 2) != 0 || i == n)
            return hp_fail(err, HP_EUSAGE, "'%.40s' is no option with its value", word[i]);
    for (int i = 1; i <= n; i += 2) { /* one at a time, to name the wrong one */
        char *pair[] = {command, word[i], word[i + 1], NULL};
        if (argp_parse(&simulate_argp, 3, pair, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL,
                       &row->options) != 0)
            return hp_fail(err, HP_EUSAGE, "hplan simulate has no option %.40s with a value", word[i]);
    }
    return HP_OK;
}
