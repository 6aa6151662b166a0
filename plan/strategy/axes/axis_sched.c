/* axis_sched.c - `sched`: the order of forward and backward passes. What `micro` and `recompute` need of it is said here. */
#include "plan/strategy/axis_kinds.h"

static const char *const words[] = {"lp", "gpipe", "1f1b", "interleaved", "zb", "gems", NULL};

static hp_sched plain_sched(const hp_strategy *s) {
    return s->micro > 1 ? HP_SCHED_GPIPE : HP_SCHED_LP;
}

/* What a text without `sched` means. */
static hp_sched implied_sched(const hp_strategy *s) {
    if (s->gems > 1) return HP_SCHED_GEMS;
    return s->chunks > 1 ? HP_SCHED_INTERLEAVED : plain_sched(s);
}

static void imply(hp_strategy *s) {
    s->sched = (int32_t)implied_sched(s);
}

/* Only the contract's defaults are left out, and only where reading brings them back. */
static bool is_implied(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    const hp_sched sched = (hp_sched)s->sched;
    return sched == plain_sched(s) && sched == implied_sched(s);
}

/* Every order is gradient accumulation in a pipeline of one position. */
static void settle(hp_strategy *s) {
    if (hp_positions(s) == 1 && s->chunks == 1 && s->sched != HP_SCHED_GEMS)
        s->sched = (int32_t)plain_sched(s);
}

static bool legal_sched(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->sched == HP_SCHED_LP && s->micro > 1) {
        hp_refuse(why, HP_REJECT_SCHED, "sched=lp moves one batch at a time, micro=%d", s->micro);
        return hp_fix(why, "sched=gpipe");
    }
    if (s->sched == HP_SCHED_ZB && s->recompute != HP_RECOMPUTE_NONE) {
        hp_refuse(why, HP_REJECT_SCHED,
                  "sched=zb keeps activations until the weights' gradients are computed, "
                  "recompute drops them");
        return hp_fix(why, "recompute=none");
    }
    return true;
}

const hp_axis hp_axis_sched = {
    .name = "sched",
    .example = "sched=1f1b",
    .usual = "lp, with micro-batches gpipe",
    .means = "order of passes: lp gpipe 1f1b interleaved zb gems",
    .alias = {{"gpipe", "stages=N,micro=M,sched=gpipe"}, {"1f1b", "stages=N,micro=M,sched=1f1b"}},
    .at = offsetof(hp_strategy, sched),
    .words = words,
    .parse = hp_word_parse,
    .print = hp_word_print,
    .omits = is_implied,
    .imply = imply,
    .settle = settle,
    .legal = legal_sched};
