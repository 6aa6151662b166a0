/* name.c - parses names of data; see dataset/name.h. */
#include "exec/data/dataset/name.h"

#include "base/units.h"

#include <string.h>

bool hp_data_name_has_kind(const char *name, const char *kind) {
    const size_t n = strlen(kind);
    return strncmp(name, kind, n) == 0 && name[n] == ':';
}

static const hp_data_key *find_key(const char *word, const hp_data_key *keys, int n) {
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(keys[i].key);
        if (strncmp(word, keys[i].key, length) == 0 && word[length] == '=') return &keys[i];
    }
    return NULL;
}

static hp_status parse_value(const hp_data_key *k, const char *what, const char *text, hp_error *err) {
    int64_t whole = 0;
    if (!k->whole) return hp_parse_double(text, what, k->low, k->high, k->value, err);
    HP_TRY(hp_parse_int(text, what, (int64_t)k->low, (int64_t)k->high, &whole, err));
    *k->value = (double)whole;
    return HP_OK;
}

hp_status hp_data_name_parse(hp_arena *a, const char *name, const hp_data_key *keys, int n, char **path,
                             hp_error *err) {
    char *rest = hp_arena_strdup(a, strchr(name, ':') + 1);
    for (char *comma; (comma = strrchr(rest, ','));) {
        const hp_data_key *k = find_key(comma + 1, keys, n);
        if (!k) break;
        const char *what = hp_arena_printf(a, "%s in --data %s", k->key, name);
        HP_TRY(parse_value(k, what, strchr(comma, '=') + 1, err));
        *comma = '\0';
    }
    *path = rest;
    return HP_OK;
}
