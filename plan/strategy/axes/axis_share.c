/* axis_share.c - `share`: how much of the batch each data replica takes. Each then has its own part of every
 * collective and of every step. */
#include "plan/strategy/axis_proportions.h"

static bool legal_share(const hp_legal_case *c, hp_reject *why) {
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
    if (s->sync.how == HP_SYNC_ALLREDUCE) return true;
    hp_refuse(why, HP_REJECT_SHARE, "unequal shares are summed by all replicas together");
    return hp_fix(why, "sync=allreduce");
}

static void settle(hp_strategy *s) {
    hp_proportions_settle(s, HP_AXIS_N);
}

const hp_axis hp_axis_share = {
    .name = "share",
    .example = "share=3:1",
    .usual = "even",
    .means = "how much of the batch each data replica takes, one entry each: for unequal devices",
    HP_PROPORTIONS(HP_AXIS_N),
    .settle = settle,
    .legal = legal_share};
