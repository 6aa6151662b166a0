/* axis_micro.c - `micro`: micro-batches; what all that divides the batch has to divide. */
#include "plan/strategy/axis_kinds.h"
#include "plan/strategy/change.h"
#include "plan/strategy/sched_kind.h"

/* "dp*micro", and what else divides the batch. */
static void name_divisor(const hp_strategy *s, char *out, size_t n) {
    const int slices = hp_stage_layout(s, s->stages - 1).slices / hp_shares(s);
    snprintf(out, n, "%s%s%s*micro%s", s->by[HP_AXIS_N].n ? "(sum of share)" : "dp",
             s->clients > 1 ? "*clients" : "", s->gems > 1 ? "*gems" : "",
             slices == 1                    ? ""
             : s->sp.tail == HP_TAIL_SHARED ? "*tiles"
                                            : "*ldp");
}

static bool legal_passes(const hp_legal_case *c, hp_reject *why) {
    const int64_t passes = (int64_t)c->s->gems * c->s->micro;
    if (passes <= HP_MAX_PASSES) return true;
    hp_refuse(why, HP_REJECT_BATCH, "%s%d is %lld passes a step, at most %d",
              c->s->gems > 1 ? "gems*micro = " : "micro=", c->s->gems > 1 ? (int)passes : c->s->micro,
              (long long)passes, HP_MAX_PASSES);
    const int group = hp_sched_of(c->s)->interleaves ? hp_positions(c->s) : 1,
              most = HP_MAX_PASSES / c->s->gems;
    return c->s->gems > HP_MAX_PASSES ? hp_fix(why, "gems=1")
                                      : hp_fix(why, "micro=%d", most < group ? most : most / group * group);
}

static bool legal_batch(const hp_legal_case *c, hp_reject *why) {
    const int64_t group = hp_strategy_divisor(c->s);
    if (c->batch >= 1 && c->batch % group == 0) return true;
    char what[64];
    name_divisor(c->s, what, sizeof what);
    hp_refuse(why, HP_REJECT_BATCH, "batch %lld is not divisible by %s = %lld", (long long)c->batch, what,
              (long long)group);
    return hp_fix(why, "--batch %lld", (long long)hp_strategy_batch(c->s, c->batch));
}

/* Sizes are counted in 64 bits: elements of all tensors, for all samples of a replica, times 8 bytes and
 * what is kept of them twice. No machine has as much. */
static bool legal_amount(const hp_legal_case *c, hp_reject *why) {
    static const double MOST = (double)((int64_t)1 << 58);
    const int64_t group = hp_strategy_divisor(c->s), replica = c->batch / hp_strategy_replicas(c->s);
    const int64_t pass = replica / ((int64_t)c->s->gems * c->s->micro);
    double elems = 0;
    for (int t = 0; t < c->g->n_tensor; t++) elems += (double)hp_tensor_elems(c->g, t);
    if (pass <= INT32_MAX && elems * (double)replica <= MOST / 8) return true;
    if (pass > INT32_MAX)
        hp_refuse(why, HP_REJECT_BATCH, "a micro-batch of %lld samples, at most %d", (long long)pass,
                  INT32_MAX);
    else
        hp_refuse(why, HP_REJECT_BATCH, "%.3g bytes of %lld samples in a replica, at most %.3g",
                  8 * elems * (double)replica, (long long)replica, MOST);
    return hp_fix(why, "--batch %lld", (long long)group);
}

static bool legal_micro(const hp_legal_case *c, hp_reject *why) {
    return legal_passes(c, why) && legal_batch(c, why) && legal_amount(c, why);
}

/* More of them, up to one sample each. */
static int spares(const hp_strategy *s, const hp_axis_facts *f, hp_strategy *out) {
    const hp_question q = {.s = *s, .batch = f->batch};
    const int64_t groups = hp_strategy_divisor(s) / s->micro;
    const int64_t share = hp_question_batch(&q) / groups;
    int n = 0;
    for (int64_t m = 2 * (int64_t)s->micro; m <= share && m <= HP_MAX_PASSES;
         m = m < share && 2 * m > share ? share : 2 * m) {
        if (share % m) continue;
        out[n] = *s;
        out[n].micro = (int32_t)m;
        if (s->sched == hp_sched_plain(1)) out[n].sched = hp_sched_plain((int)m);
        n++;
        if (m == share) break;
    }
    return n;
}

const hp_axis hp_axis_micro = {.name = "micro",
                               .example = "micro=8",
                               .usual = "1",
                               .means = "micro-batches; with one stage, gradient accumulation",
                               HP_DEGREE(micro),
                               .cut_key = hp_field_cut_key,
                               .legal = legal_micro,
                               .spare = HP_SPARE_BATCH,
                               .spares = spares};
