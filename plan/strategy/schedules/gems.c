/* gems.c - bidirectional pipeline: passes alternate between the pipeline and its mirror image (Jain et al.,
 * SC 2020). */
#include "plan/strategy/sched_kind.h"

static bool implied(const hp_strategy *s) {
    return s->gems > 1;
}

static bool legal(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->chunks > 1) return true; /* the rule of `chunks` refuses that */
    if (s->gems < 2 || s->gems % 2) {
        hp_refuse(why, HP_REJECT_GEMS, "gems=%d: passes come in pairs, one of them mirrored", s->gems);
        return hp_fix(why, "gems=%d", s->gems + 1);
    }
    const int64_t groups = (int64_t)s->gems * s->micro;
    if (groups <= HP_MAX_GROUPS) return true;
    hp_refuse(why, HP_REJECT_GEMS, "gems*micro = %lld micro-batches in a step, at most %d", (long long)groups,
              HP_MAX_GROUPS);
    return hp_fix(why, "micro=%d", HP_MAX_GROUPS / s->gems);
}

const hp_sched_kind hp_sched_gems = {.name = "gems", .mirrors = true, .implied = implied, .legal = legal};
