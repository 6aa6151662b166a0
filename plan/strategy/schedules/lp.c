/* lp.c - layer parallelism: one batch after the other, so that one position works at a time. */
#include "plan/strategy/sched_kind.h"

static bool legal(const hp_legal_case *c, hp_reject *why) {
    if (c->s->micro == 1) return true;
    hp_refuse(why, HP_REJECT_SCHED, "sched=lp moves one batch at a time, micro=%d", c->s->micro);
    return hp_fix(why, "sched=gpipe");
}

const hp_sched_kind hp_sched_lp = {.name = "lp", .legal = legal};
