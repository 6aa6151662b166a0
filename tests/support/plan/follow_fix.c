/* follow_fix.c - does to a strategy what a refusal's fix says, as a user would. */
#include "tests/support/plan/follow_fix.h"

/* Is `key` among the keys of `fix`? */
static bool replaces(const char *fix, const char *key, size_t length) {
    for (const char *at = fix; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, length) == 0 && at[length] == '=') return true;
    }
    return false;
}

/* The strategy with the keys of `fix` replaced. */
static bool replace_keys(const char *fix, hp_strategy *s) {
    char text[HP_STRATEGY_TEXT], merged[2 * HP_STRATEGY_TEXT] = "", *rest = NULL;
    hp_strategy_text(s, text);
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        if (!replaces(fix, item, strcspn(item, "="))) strcat(strcat(merged, item), ",");
    return hp_strategy_parse(strcat(merged, fix), s, NULL) == HP_OK;
}

bool follow_fix(const char *fix, question *q) {
    if (strncmp(fix, "--batch ", 8) == 0)
        q->batch = atoll(fix + 8);
    else if (strncmp(fix, "--gpus ", 7) == 0)
        q->devices = atoi(fix + 7);
    else if (strncmp(fix, "leave out cut", 13) == 0)
        q->s.n_cut = 0;
    else
        return replace_keys(fix, &q->s);
    return true;
}
