/* proportions_text.c - reads and writes proportions, and says which fit the replicas and tiles of a strategy. */
#include "plan/strategy/proportions_text.h"

#include "base/units.h"
#include "plan/strategy/legal.h"

#include <string.h>

static const char EVEN[] = "even";

hp_status hp_proportions_read(const char *key, const char *value, hp_proportions *w, hp_error *err) {
    char copy[HP_STRATEGY_TEXT], what[48], *rest = copy;
    snprintf(copy, sizeof copy, "%s", value);
    snprintf(what, sizeof what, "strategy: %.20s", key);
    *w = (hp_proportions){.n = 0};
    if (strcmp(value, EVEN) == 0) return HP_OK;
    for (char *part = strsep(&rest, ":"); part; part = strsep(&rest, ":")) {
        int64_t weight = 0;
        HP_TRY(hp_parse_int(part, what, 1, UINT16_MAX, &weight, err));
        if (w->n == HP_MAX_PROPORTIONS)
            return hp_fail(err, HP_EUSAGE, "strategy: %s has more than %d entries", key, HP_MAX_PROPORTIONS);
        w->of[w->n++] = (uint16_t)weight;
    }
    return HP_OK;
}

void hp_proportions_write(const hp_proportions *w, char *out) {
    if (!w->n) strcpy(out, EVEN);
    for (int i = 0, n = 0; i < w->n; i++)
        n += snprintf(out + n, HP_STRATEGY_TEXT - (size_t)n, "%s%d", i ? ":" : "", w->of[i]);
}

bool hp_proportions_fit(const hp_strategy *s, int axis, int *misfit) {
    const int n = s->by[axis].n;
    bool several = false;
    if (n == 0) return true;
    if (axis == HP_AXIS_N) return n == s->dp;
    if (misfit) *misfit = -1;
    for (int i = 0; i < s->n_sp; i++) {
        const int degree = axis == HP_AXIS_H ? s->sp_rows[i] : s->sp_cols[i];
        several |= degree > 1;
        if (degree == 1 || degree % n == 0) continue;
        if (misfit) *misfit = i;
        return false;
    }
    return several;
}

/* --- legality --- */

/* Each replica has its own part of every collective and every step. */
bool hp_legal_shares(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int n = s->by[HP_AXIS_N].n;
    if (!n) return true;
    if (!hp_proportions_fit(s, HP_AXIS_N, NULL)) {
        hp_refuse(why, HP_REJECT_SHARE, "share has %d entries, one per data replica, dp=%d", n, s->dp);
        return s->dp == 1 ? hp_fix(why, "dp=%d", n) : hp_fix(why, "share=even");
    }
    if (s->clients > 1) {
        hp_refuse(why, HP_REJECT_SHARE, "ranks that share a device take equal shares, clients=%d",
                  s->clients);
        return hp_fix(why, "clients=1");
    }
    if (s->sync == HP_SYNC_ALLREDUCE) return true;
    hp_refuse(why, HP_REJECT_SHARE, "unequal shares are summed by all replicas together");
    return hp_fix(why, "sync=allreduce");
}

static bool splits(const hp_strategy *s, int axis, const char *key, hp_reject *why) {
    const int n = s->by[axis].n;
    int stage;
    if (hp_proportions_fit(s, axis, &stage)) return true;
    if (stage < 0)
        hp_refuse(why, HP_REJECT_SP, "%s has %d entries, no stage has so many tiles", key, n);
    else
        hp_refuse(why, HP_REJECT_SP, "%s has %d entries, which do not divide the %d %s of tiles of sp=%dx%d",
                  key, n, axis == HP_AXIS_H ? s->sp_rows[stage] : s->sp_cols[stage],
                  axis == HP_AXIS_H ? "rows" : "columns", s->sp_rows[stage], s->sp_cols[stage]);
    return hp_fix(why, "%s=even", key);
}

bool hp_legal_proportions(const hp_legal_case *c, hp_reject *why) {
    return splits(c->s, HP_AXIS_H, "rows", why) && splits(c->s, HP_AXIS_W, "cols", why);
}
