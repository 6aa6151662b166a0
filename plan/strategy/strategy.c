/* strategy.c - strategies as text: each key reads and writes its own value
 * (plan/strategy/strategy_axis.h). */
#include "plan/strategy/strategy_axis.h"

#include "base/nearest.h"

#include <string.h>

const hp_axis *const hp_strategy_axes[HP_STRATEGY_AXES] = {
#define AXIS(key, ...) &hp_axis_##key,
#include "plan/strategy/axes.def"
};

hp_strategy hp_strategy_default(void) {
    hp_strategy s = {0};
    for (int i = 0; i < HP_STRATEGY_AXES; i++)
        if (hp_strategy_axes[i]->reset) hp_strategy_axes[i]->reset(hp_strategy_axes[i], &s);
    return s;
}

hp_strategy hp_strategy_canonical(const hp_strategy *s) {
    hp_strategy c = *s;
    for (int i = 0; i < HP_STRATEGY_AXES; i++)
        if (hp_strategy_axes[i]->settle) hp_strategy_axes[i]->settle(&c);
    return c;
}

/* The index of a key; -1: there is none. */
static int find_key(const char *word) {
    int i = HP_STRATEGY_AXES - 1;
    while (i >= 0 && strcmp(hp_strategy_axes[i]->name, word) != 0) i--;
    return i;
}

static hp_status unknown_key(const char *word, hp_error *err) {
    const char *names[HP_STRATEGY_AXES], *meant = hp_strategy_called(word);
    for (int i = 0; i < HP_STRATEGY_AXES; i++) names[i] = hp_strategy_axes[i]->name;
    const char *near = *meant ? meant : hp_nearest(word, names, HP_STRATEGY_AXES);
    if (!near) return hp_fail(err, HP_EUSAGE, "strategy: unknown key '%.40s'; keys are as in dp=4", word);
    return hp_fail(err, HP_EUSAGE, "strategy: unknown key '%.40s': did you mean '%s%s'?", word, near,
                   *meant ? "" : "=");
}

/* One "key=value"; `seen` has one flag per key. */
static hp_status parse_item(char *item, bool *seen, hp_strategy *s, hp_error *err) {
    char *value = strchr(item, '=');
    if (!value && *hp_strategy_called(item)) return unknown_key(item, err);
    if (!value)
        return hp_fail(err, HP_EUSAGE,
                       "strategy: '%.60s' is not key=value, for example dp=2,stages=4,micro=8", item);
    *value++ = 0;
    const int key = find_key(item);
    if (key < 0) return unknown_key(item, err);
    const hp_axis *a = hp_strategy_axes[key];
    if (seen[key]) return hp_fail(err, HP_EUSAGE, "strategy: %s is given twice", a->name);
    seen[key] = true;
    return a->parse(a, value, s, err);
}

hp_status hp_strategy_parse(const char *text, hp_strategy *s, hp_error *err) {
    char copy[HP_STRATEGY_TEXT];
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return hp_fail(err, HP_EUSAGE, "strategy: longer than %d characters", HP_STRATEGY_TEXT - 1);
    *s = hp_strategy_default();
    bool seen[HP_STRATEGY_AXES] = {false};
    char *rest = NULL;
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        HP_TRY(parse_item(item, seen, s, err));
    for (int i = 0; i < HP_STRATEGY_AXES; i++)
        if (!seen[i] && hp_strategy_axes[i]->imply) hp_strategy_axes[i]->imply(s);
    *s = hp_strategy_canonical(s);
    return HP_OK;
}

bool hp_strategy_equal(const hp_strategy *a, const hp_strategy *b) {
    char x[HP_STRATEGY_TEXT], y[HP_STRATEGY_TEXT];
    return strcmp(hp_strategy_text(a, x), hp_strategy_text(b, y)) == 0;
}

static bool omits(int key, const hp_strategy *s) {
    return hp_strategy_axes[key]->omits(hp_strategy_axes[key], s);
}

/* A key and its value behind those that are there. */
static void append_key(const hp_axis *a, const hp_strategy *s, char *out) {
    char value[HP_STRATEGY_TEXT] = "";
    const size_t n = strlen(out);
    a->print(a, s, value);
    snprintf(out + n, HP_STRATEGY_TEXT - n, "%s%s=%s", n ? "," : "", a->name, value);
}

const char *hp_strategy_text(const hp_strategy *s, char *out) {
    const hp_strategy c = hp_strategy_canonical(s);
    out[0] = 0;
    for (int i = 0; i < HP_STRATEGY_AXES; i++)
        if (!omits(i, &c)) append_key(hp_strategy_axes[i], &c, out);
    if (!out[0]) strcpy(out, "dp=1");
    return out;
}

/* --- changes --- */

static bool differs(int key, const hp_strategy *a, const hp_strategy *b) {
    char x[HP_STRATEGY_TEXT] = "", y[HP_STRATEGY_TEXT] = "";
    const bool a_omits = omits(key, a), b_omits = omits(key, b);
    if (a_omits || b_omits) return a_omits != b_omits; /* what both leave out follows from other keys */
    hp_strategy_axes[key]->print(hp_strategy_axes[key], a, x);
    hp_strategy_axes[key]->print(hp_strategy_axes[key], b, y);
    return strcmp(x, y) != 0;
}

int hp_strategy_change(const hp_strategy *from, const hp_strategy *to, char *out) {
    const hp_strategy a = hp_strategy_canonical(from), b = hp_strategy_canonical(to);
    int n = 0;
    out[0] = 0;
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        if (!differs(i, &a, &b)) continue;
        append_key(hp_strategy_axes[i], &b, out);
        n++;
    }
    return n;
}

hp_status hp_strategy_replace(hp_strategy *s, const char *items, hp_error *err) {
    char copy[HP_STRATEGY_TEXT], all[2 * HP_STRATEGY_TEXT], *rest = NULL;
    bool replaced[HP_STRATEGY_AXES] = {false};
    const hp_strategy c = hp_strategy_canonical(s);
    snprintf(copy, sizeof copy, "%s", items);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        item[strcspn(item, "=")] = 0;
        const int key = find_key(item);
        if (key >= 0) replaced[key] = true;
    }
    all[0] = 0;
    for (int i = 0; i < HP_STRATEGY_AXES; i++)
        if (!replaced[i] && !omits(i, &c)) append_key(hp_strategy_axes[i], &c, all);
    const size_t n = strlen(all);
    snprintf(all + n, sizeof all - n, "%s%s", n ? "," : "", items);
    return hp_strategy_parse(all, s, err);
}
