/* race_pick.c - chooses the candidates worth running: the best ones, and the best of those about which the
 * model may be wrong. */
#include "cli/race/race.h"
#include "base/alloc.h"

#include "plan/strategy/family.h"

static bool family_of(const hp_candidate *c, hp_family *family) {
    hp_strategy s;
    if (hp_strategy_parse(c->strategy, &s, NULL) != HP_OK) return false;
    *family = hp_family_of(&s);
    return true;
}

static bool is_new_family(const hp_candidate *c, const bool *picked, int i) {
    hp_family mine, other;
    if (!family_of(&c[i], &mine)) return false;
    for (int k = 0; k < i; k++)
        if (picked[k] && family_of(&c[k], &other) && other == mine) return false;
    return true;
}

void race_pick(const hp_candidate *c, int n_candidate, int first, int top, int *pick, int *n) {
    enum { BEST, FAMILIES, REST, PASSES };
    bool *picked = hp_zeroed((size_t)n_candidate, sizeof *picked);
    int count = 0;
    for (int pass = BEST; pass < PASSES; pass++) {
        const int room = pass == BEST ? (top + 1) / 2 : top;
        for (int i = first; i < n_candidate && count < room; i++) {
            if (picked[i] || c[i].gpus != c[first].gpus || c[i].batch != c[first].batch) continue;
            const bool apart = c[first].step_high_s > 0 && c[i].step_low_s > c[first].step_high_s;
            if (pass == FAMILIES && (apart || !is_new_family(c, picked, i))) continue;
            picked[i] = true;
            count++;
        }
    }
    *n = 0;
    for (int i = 0; i < n_candidate; i++)
        if (picked[i]) pick[(*n)++] = i;
    free(picked);
}
