/* bench_list.h - words of a comma-separated option. */
#ifndef HP_BENCH_LIST_H
#define HP_BENCH_LIST_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

enum { BENCH_LIST = 32 };

typedef struct bench_list {
    int n;
    const char *word[BENCH_LIST];
} bench_list;

/* Parses a list. A word that is a number belongs to the previous one: `amoebanetd:18,256` is one network.
 * `numbers`: the words are numbers themselves. `what` names the option in errors. Errors: HP_EUSAGE: empty,
 * too long, an empty word, a duplicate. */
hp_status bench_list_parse(hp_arena *arena, const char *text, const char *what, bool numbers, bench_list *l,
                           hp_error *err);

#endif
