/* bench_list.c - cuts an option's argument at its commas. */
#include "cli/bench/bench_list.h"

#include <string.h>

static bool is_number(const char *word) {
    return word[0] && strspn(word, "0123456789") == strlen(word);
}

static hp_status add_word(hp_arena *arena, const char *word, const char *what, bool numbers, bench_list *l,
                          hp_error *err) {
    if (!word[0]) return hp_fail(err, HP_EUSAGE, "%s: an empty word; separate words by one comma", what);
    if (!numbers && l->n && is_number(word)) {
        l->word[l->n - 1] = hp_arena_printf(arena, "%s,%s", l->word[l->n - 1], word);
        return HP_OK;
    }
    if (l->n == BENCH_LIST) return hp_fail(err, HP_EUSAGE, "%s: at most %d at a time", what, BENCH_LIST);
    l->word[l->n++] = word;
    return HP_OK;
}

static hp_status check_twice(const char *what, const bench_list *l, hp_error *err) {
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(l->word[i], l->word[k]))
                return hp_fail(err, HP_EUSAGE, "%s: '%.60s' is there twice", what, l->word[i]);
    return HP_OK;
}

hp_status bench_list_parse(hp_arena *arena, const char *text, const char *what, bool numbers, bench_list *l,
                           hp_error *err) {
    *l = (bench_list){0};
    char *rest = hp_arena_strdup(arena, text);
    for (char *word; (word = strsep(&rest, ","));) HP_TRY(add_word(arena, word, what, numbers, l, err));
    return check_twice(what, l, err);
}
