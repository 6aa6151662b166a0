/* zb.c - zero-bubble: 1F1B that computes the gradients of weights where it would otherwise wait (Qi et al.
 * 2023, ZB-H1). */
#include "plan/strategy/sched_kind.h"

static int warm_up(int positions, int position, int chunks) {
    (void)chunks;
    return positions - position;
}

static bool legal(const hp_legal_case *c, hp_reject *why) {
    if (c->s->recompute == HP_RECOMPUTE_NONE) return true;
    hp_refuse(why, HP_REJECT_SCHED,
              "sched=zb keeps activations until the weights' gradients are computed, "
              "recompute drops them");
    return hp_fix(why, "recompute=none");
}

const hp_sched_kind hp_sched_zb = {
    .name = "zb", .warm_up = warm_up, .splits_backward = true, .pipelines = true, .legal = legal};
