/* axis_dp.c - `dp`: data-parallel replicas over everything; how many ranks all degrees together make. */
#include "plan/strategy/axis_kinds.h"

enum { MAX_RANKS = 65536 }; /* a role is numbered by 16 bits (HP_MAX_ROLES) */

/* The first degree, in this order, that is there to be lowered. */
static bool fewer_ranks(const hp_strategy *s, hp_reject *why) {
    hp_strategy one = *s;
    one.dp = 1;
    const int others = hp_strategy_ranks(&one);
    if (s->dp > 1) return hp_fix(why, "dp=%d", others < MAX_RANKS ? MAX_RANKS / others : 1);
    if (s->clients > 1) return hp_fix(why, "clients=1");
    if (s->cp > 1) return hp_fix(why, "cp=1");
    if (s->bp > 1) return hp_fix(why, "bp=1");
    if (s->tp > 1) return hp_fix(why, "tp=1");
    if (s->seq.ranks > 1) return hp_fix(why, "seq=1");
    if (s->ldp > 1) return hp_fix(why, "ldp=1");
    return hp_fix(why, "sp=1x1");
}

static bool legal_ranks(const hp_legal_case *c, hp_reject *why) {
    const int ranks = hp_strategy_ranks(c->s), devices = hp_strategy_devices(c->s);
    if (ranks > MAX_RANKS) {
        hp_refuse(why, HP_REJECT_GPUS, "%d ranks or more, at most %d", ranks, MAX_RANKS);
        return fewer_ranks(c->s, why);
    }
    if (!c->n_devices || devices <= c->n_devices) return true;
    hp_refuse(why, HP_REJECT_GPUS, "dp=%d times %d ranks need %d devices, there are %d", c->s->dp,
              hp_strategy_roles(c->s), devices, c->n_devices);
    return hp_fix(why, "--gpus %d", devices);
}

const hp_axis hp_axis_dp = {.name = "dp",
                            .example = "dp=4",
                            .usual = "1",
                            .means = "data-parallel replicas of everything (PyTorch: DDP)",
                            .alias = {{"ddp", "dp=N"}, {"data", "dp=N"}},
                            HP_DEGREE(dp),
                            .legal = legal_ranks};
