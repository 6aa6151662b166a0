/* counts.c - parses lists of counts: numbers between commas, with dots that continue the series. */
#include "base/counts.h"

#include "base/units.h"

#include <stdbool.h>
#include <string.h>

enum { MOST_COUNT = 1 << 20, LIST_TEXT = 512 };

typedef struct list {
    const char *what;
    int room, n;
    int *count;
} list;

static hp_status add(list *l, int count, hp_error *err) {
    if (l->n == l->room)
        return hp_fail(err, HP_EUSAGE, "%s: more than %d counts; leave some out, or take larger steps",
                       l->what, l->room);
    l->count[l->n++] = count;
    return HP_OK;
}

static bool are_dots(const char *word) {
    return strcmp(word, "...") == 0 || strcmp(word, "\xe2\x80\xa6") == 0;
}

/* Factor between successive counts; 0 if they grow by a constant difference. */
static int factor_of(const list *l) {
    const int64_t last = l->count[l->n - 1];
    if (l->n == 1) return 2;
    const int64_t before = l->count[l->n - 2];
    const bool thrice = l->n > 2 && before * before == l->count[l->n - 3] * last;
    return last % before == 0 && (last == 2 * before || thrice) ? (int)(last / before) : 0;
}

static hp_status fill(list *l, int end, hp_error *err) {
    const int last = l->count[l->n - 1], factor = factor_of(l),
              step = l->n > 1 ? last - l->count[l->n - 2] : 0;
    if (end <= last || (l->n > 1 && step <= 0))
        return hp_fail(err, HP_EUSAGE, "%s: counts with dots grow, as in 1,2,4,...,64; %d follows %d",
                       l->what, end <= last ? end : last, end <= last ? last : l->count[l->n - 2]);
    for (int64_t c = last;;) {
        c = factor ? c * factor : c + step;
        if (c >= end) return add(l, end, err);
        HP_TRY(add(l, (int)c, err));
    }
}

hp_status hp_parse_counts(const char *text, const char *what, int room, int *count, int *n, hp_error *err) {
    list l = {.what = what, .room = room, .count = count};
    char copy[LIST_TEXT], *save = NULL;
    bool dots = false;
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return hp_fail(err, HP_EUSAGE, "%s: the list is too long, at most %d counts", what, room);
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        int64_t value;
        if (are_dots(word)) {
            if (dots || !l.n)
                return hp_fail(err, HP_EUSAGE, "%s: dots stand between two counts, as in 1,2,4,...,64", what);
            dots = true;
            continue;
        }
        HP_TRY(hp_parse_int(word, what, 1, MOST_COUNT, &value, err));
        HP_TRY(dots ? fill(&l, (int)value, err) : add(&l, (int)value, err));
        dots = false;
    }
    if (dots)
        return hp_fail(err, HP_EUSAGE, "%s: nothing follows the dots; end in a count, as in 1,2,4,...,64",
                       what);
    *n = l.n;
    return l.n ? HP_OK
               : hp_fail(err, HP_EUSAGE, "%s is empty; for example %s 8 or %s 1,2,4", what, what, what);
}
