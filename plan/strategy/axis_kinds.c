/* axis_kinds.c - values that are degrees and words. */
#include "plan/strategy/axis_kinds.h"

#include "base/units.h"

#include <string.h>

static const int32_t *field(const hp_axis *a, const hp_strategy *s) {
    return (const int32_t *)(const void *)((const char *)s + a->at);
}

static void set_field(const hp_axis *a, hp_strategy *s, int32_t value) {
    memcpy((char *)s + a->at, &value, sizeof value);
}

int32_t hp_field_value(const hp_axis *a, const hp_strategy *s) {
    return *field(a, s);
}

bool hp_field_is_zero(const hp_axis *a, const hp_strategy *s) {
    return *field(a, s) == 0;
}

int hp_field_cut_key(const hp_axis *a, const hp_strategy *s, int32_t *word) {
    word[0] = *field(a, s);
    return 1;
}

/* --- degrees --- */

hp_status hp_degree_parse(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    char what[48];
    int64_t degree = 0;
    snprintf(what, sizeof what, "strategy: %s", a->name);
    HP_TRY(hp_parse_int(value, what, 1, HP_MAX_DEGREE, &degree, err));
    set_field(a, s, (int32_t)degree);
    return HP_OK;
}

void hp_degree_print(const hp_axis *a, const hp_strategy *s, char *value) {
    snprintf(value, HP_STRATEGY_TEXT, "%d", *field(a, s));
}

bool hp_degree_is_one(const hp_axis *a, const hp_strategy *s) {
    return *field(a, s) == 1;
}

void hp_degree_reset(const hp_axis *a, hp_strategy *s) {
    set_field(a, s, 1);
}

/* --- words --- */

hp_status hp_word_parse(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    for (int i = 0; a->words[i]; i++) {
        if (strcmp(a->words[i], value) == 0) {
            set_field(a, s, i);
            return HP_OK;
        }
    }
    char all[128] = "";
    for (int i = 0; a->words[i]; i++) {
        strcat(all, i ? ", " : "");
        strcat(all, a->words[i]);
    }
    return hp_fail(err, HP_EUSAGE, "strategy: %s=%.40s is unknown; choose one of %s", a->name, value, all);
}

void hp_word_print(const hp_axis *a, const hp_strategy *s, char *value) {
    snprintf(value, HP_STRATEGY_TEXT, "%s", a->words[*field(a, s)]);
}
