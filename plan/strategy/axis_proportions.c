/* axis_proportions.c - reads and writes proportions, and says which fit the replicas and tiles of a
 * strategy. */
#include "plan/strategy/axis_proportions.h"

#include "base/units.h"

#include <string.h>

static const char EVEN[] = "even";

static hp_proportions *weights(const hp_axis *a, const hp_strategy *s) {
    return (hp_proportions *)(void *)((char *)(uintptr_t)s + a->at);
}

hp_status hp_proportions_parse(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    char copy[HP_STRATEGY_TEXT], what[48], *rest = copy;
    hp_proportions *w = weights(a, s);
    snprintf(copy, sizeof copy, "%s", value);
    snprintf(what, sizeof what, "strategy: %.20s", a->name);
    *w = (hp_proportions){.n = 0};
    if (strcmp(value, EVEN) == 0) return HP_OK;
    for (char *part = strsep(&rest, ":"); part; part = strsep(&rest, ":")) {
        int64_t weight = 0;
        HP_TRY(hp_parse_int(part, what, 1, UINT16_MAX, &weight, err));
        if (w->n == HP_MAX_PROPORTIONS)
            return hp_fail(err, HP_EUSAGE, "strategy: %s has more than %d entries", a->name,
                           HP_MAX_PROPORTIONS);
        w->of[w->n++] = (uint16_t)weight;
    }
    return HP_OK;
}

void hp_proportions_print(const hp_axis *a, const hp_strategy *s, char *value) {
    const hp_proportions *w = weights(a, s);
    if (!w->n) strcpy(value, EVEN);
    for (int i = 0, n = 0; i < w->n; i++)
        n += snprintf(value + n, HP_STRATEGY_TEXT - (size_t)n, "%s%d", i ? ":" : "", w->of[i]);
}

bool hp_proportions_are_even(const hp_axis *a, const hp_strategy *s) {
    return weights(a, s)->n == 0;
}

int hp_proportions_cut_key(const hp_axis *a, const hp_strategy *s, int32_t *word) {
    (void)word;
    return weights(a, s)->n ? -1 : 0;
}

bool hp_proportions_fit(const hp_strategy *s, int axis, int *misfit) {
    const int n = s->by[axis].n;
    bool several = false;
    if (n == 0) return true;
    if (axis == HP_AXIS_N) return n == s->dp;
    if (misfit) *misfit = -1;
    for (int i = 0; i < s->sp.n; i++) {
        const int degree = axis == HP_AXIS_H ? s->sp.rows[i] : s->sp.cols[i];
        several |= degree > 1;
        if (degree == 1 || degree % n == 0) continue;
        if (misfit) *misfit = i;
        return false;
    }
    return several;
}

void hp_proportions_settle(hp_strategy *s, int axis) {
    if (hp_proportions_fit(s, axis, NULL)) s->by[axis] = hp_proportions_reduced(&s->by[axis]);
}

bool hp_proportions_legal(const hp_strategy *s, int axis, const char *key, hp_reject *why) {
    const int n = s->by[axis].n;
    int stage;
    if (hp_proportions_fit(s, axis, &stage)) return true;
    if (stage < 0)
        hp_refuse(why, HP_REJECT_SP, "%s has %d entries, no stage has so many tiles", key, n);
    else
        hp_refuse(why, HP_REJECT_SP, "%s has %d entries, which do not divide the %d %s of tiles of sp=%dx%d",
                  key, n, axis == HP_AXIS_H ? s->sp.rows[stage] : s->sp.cols[stage],
                  axis == HP_AXIS_H ? "rows" : "columns", s->sp.rows[stage], s->sp.cols[stage]);
    return hp_fix(why, "%s=even", key);
}
