/* prefix.c - see prefix.h. A file's name that ends in a dot and one of the network's names votes for
 * the prefix before it. */
#include "exec/data/weights/prefix.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Length of the longest prefix ending in a dot that all names share; 0 if it leaves a name without a dot. */
static size_t common_beginning(const hp_st_expected *want, int n) {
    size_t common = n ? strlen(want[0].name) : 0;
    for (int i = 1; i < n; i++) {
        size_t k = 0;
        while (k < common && want[i].name[k] == want[0].name[k]) k++;
        common = k;
    }
    while (common > 0 && want[0].name[common - 1] != '.') common--;
    for (int i = 0; i < n; i++)
        if (!strchr(want[i].name + common, '.')) return 0;
    return common;
}

/* The network's names without their first `strip` characters, sorted. */
static const char **sorted_names(hp_arena *a, const hp_st_expected *want, int n, size_t strip) {
    const char **name = HP_NEW(a, const char *, n + 1);
    for (int i = 0; i < n; i++) name[i] = want[i].name + strip;
    if (n) qsort(name, (size_t)n, sizeof *name, by_text);
    return name;
}

typedef struct votes {
    const char **prefix;
    int n, room;
} votes;

static void vote(hp_arena *a, const char *full, const char *const *known, int n_known, votes *v) {
    for (const char *rest = full; rest; rest = strchr(rest, '.') ? strchr(rest, '.') + 1 : NULL) {
        if (!bsearch(&rest, known, (size_t)n_known, sizeof *known, by_text)) continue;
        HP_ROOM(a, v->prefix, v->n, v->room);
        v->prefix[v->n++] = hp_arena_printf(a, "%.*s", (int)(rest - full), full);
    }
}

static int most_first(const void *x, const void *y) {
    const hp_st_prefix *a = x, *b = y;
    if (a->names != b->names) return a->names > b->names ? -1 : 1;
    return strcmp(a->prefix, b->prefix);
}

static int prefixes_without(hp_arena *a, const hp_safetensors *st, const hp_st_expected *want, int n,
                            size_t strip, hp_st_prefix **out) {
    const char *const *known = sorted_names(a, want, n, strip);
    votes v = {0};
    int found = 0;
    for (int i = 0; i < hp_safetensors_count(st); i++)
        vote(a, hp_safetensors_tensor(st, i)->name, known, n, &v);
    if (v.n) qsort(v.prefix, (size_t)v.n, sizeof *v.prefix, by_text);
    *out = HP_NEW(a, hp_st_prefix, v.n + 1);
    for (int i = 0; i < v.n; i++) {
        if (i == 0 || strcmp(v.prefix[i], v.prefix[i - 1]) != 0)
            (*out)[found++] = (hp_st_prefix){.prefix = v.prefix[i],
                                             .strip = hp_arena_printf(a, "%.*s", (int)strip, want[0].name)};
        (*out)[found - 1].names++;
    }
    if (found) qsort(*out, (size_t)found, sizeof **out, most_first);
    return found;
}

int hp_st_prefixes(hp_arena *a, const hp_safetensors *st, const hp_st_expected *want, int n,
                   hp_st_prefix **out) {
    const int found = prefixes_without(a, st, want, n, 0, out);
    const size_t strip = common_beginning(want, n);
    if (strip == 0 || (found > 0 && (*out)[0].names == n)) return found;
    hp_st_prefix *shorter;
    const int other = prefixes_without(a, st, want, n, strip, &shorter);
    if (other == 0 || (found > 0 && (*out)[0].names >= shorter[0].names)) return found;
    *out = shorter;
    return other;
}
