/* proportions_text.c - reads and writes proportions, and says which fit the replicas and tiles of a strategy. */
#include "plan/strategy/proportions_text.h"

#include "plan/base/units.h"
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

/* --- legality --- */

/* Each replica has its own part of every collective and every step. */
bool hp_legal_shares(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int n = s->by[HP_AXIS_N].n;
    if (!n) return true;
    if (n != s->dp) {
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

static bool splits(const hp_strategy *s, int axis, const char *key, const int32_t *degree, hp_reject *why) {
    const int n = s->by[axis].n;
    bool used = false;
    for (int i = 0; i < s->n_sp; i++) {
        used |= degree[i] > 1;
        if (n == 0 || degree[i] == 1 || degree[i] % n == 0) continue;
        hp_refuse(why, HP_REJECT_SP, "%s has %d entries, which do not divide the %d %s of tiles of sp=%dx%d",
                  key, n, degree[i], axis == HP_AXIS_H ? "rows" : "columns", s->sp_rows[i], s->sp_cols[i]);
        return hp_fix(why, "%s=even", key);
    }
    if (n == 0 || used) return true;
    hp_refuse(why, HP_REJECT_SP, "%s has %d entries, no stage has so many tiles", key, n);
    return hp_fix(why, "%s=even", key);
}

bool hp_legal_proportions(const hp_legal_case *c, hp_reject *why) {
    return splits(c->s, HP_AXIS_H, "rows", c->s->sp_rows, why) &&
           splits(c->s, HP_AXIS_W, "cols", c->s->sp_cols, why);
}
