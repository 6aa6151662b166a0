/* legal.c - which strategies are possible for a network, a batch and a number of devices; each refusal
 * carries its code, the limiting number and the smallest change that meets the rule. */
#include "plan/strategy/legal.h"
#include "plan/strategy/sequence.h"
#include "plan/strategy/sync.h"
#include "plan/strategy/zero.h"
#include "plan/strategy/rules_mpi4dl.h"

#include <stdarg.h>
#include <string.h>

enum { MAX_RANKS = 65536 }; /* a role is numbered by 16 bits (HP_MAX_ROLES) */

void hp_refuse(hp_reject *why, hp_reject_code code, const char *limit, ...) {
    if (!why) return;
    va_list ap;
    va_start(ap, limit);
    why->code = code;
    vsnprintf(why->limit, sizeof why->limit, limit, ap);
    va_end(ap);
}

bool hp_fix(hp_reject *why, const char *fix, ...) {
    if (!why) return false;
    va_list ap;
    va_start(ap, fix);
    vsnprintf(why->fix, sizeof why->fix, fix, ap);
    va_end(ap);
    return false;
}

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
    if (s->seq > 1) return hp_fix(why, "seq=1");
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

static bool legal_stages(const hp_legal_case *c, hp_reject *why) {
    const int64_t parts = (int64_t)c->s->stages * c->s->chunks;
    const int most = hp_most_stages(c->g);
    if (parts <= most) return true;
    if (c->g->n_unit < HP_MAX_STAGES)
        hp_refuse(why, HP_REJECT_STAGES, "%.60s has %d unit%s, stages*chunks = %lld", c->g->net, c->g->n_unit,
                  c->g->n_unit == 1 ? "" : "s", (long long)parts);
    else
        hp_refuse(why, HP_REJECT_STAGES, "at most %d stages*chunks, not %lld", HP_MAX_STAGES,
                  (long long)parts);
    if (c->s->chunks > most) return hp_fix(why, "chunks=1");
    return hp_fix(why, "stages=%d", most / c->s->chunks);
}

static bool legal_cut(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    int64_t sum = 0;
    for (int i = 0; i < s->n_cut; i++) sum += s->cut[i];
    if (!s->n_cut || (s->n_cut == s->stages * s->chunks && sum == c->g->n_unit)) return true;
    if (s->n_cut != s->stages * s->chunks)
        hp_refuse(why, HP_REJECT_CUT, "cut has %d entries, stages*chunks = %d", s->n_cut,
                  s->stages * s->chunks);
    else
        hp_refuse(why, HP_REJECT_CUT, "cut sums to %lld, %.60s has %d units (hplan explain lists them)",
                  (long long)sum, c->g->net, c->g->n_unit);
    if (s->stages == 1 && sum == c->g->n_unit && s->n_cut % s->chunks == 0) /* they were left out */
        return hp_fix(why, "stages=%d", s->n_cut / s->chunks);
    return hp_fix(why, "cut=balanced");
}

/* "dp*micro", and what else divides the batch. */
static void name_divisor(const hp_strategy *s, char *out, size_t n) {
    const int slices = hp_stage_layout(s, s->stages - 1).slices / hp_shares(s);
    snprintf(out, n, "%s%s%s*micro%s", s->by[HP_AXIS_N].n ? "(sum of share)" : "dp",
             s->clients > 1 ? "*clients" : "", s->gems > 1 ? "*gems" : "",
             slices == 1                 ? ""
             : s->tail == HP_TAIL_SHARED ? "*tiles"
                                         : "*ldp");
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

static bool legal_passes(const hp_legal_case *c, hp_reject *why) {
    const int64_t passes = (int64_t)c->s->gems * c->s->micro;
    if (passes <= HP_MAX_PASSES) return true;
    hp_refuse(why, HP_REJECT_BATCH, "%s%d is %lld passes a step, at most %d",
              c->s->gems > 1 ? "gems*micro = " : "micro=", c->s->gems > 1 ? (int)passes : c->s->micro,
              (long long)passes, HP_MAX_PASSES);
    const int group = c->s->sched == HP_SCHED_INTERLEAVED ? hp_positions(c->s) : 1,
              most = HP_MAX_PASSES / c->s->gems;
    return c->s->gems > HP_MAX_PASSES ? hp_fix(why, "gems=1")
                                      : hp_fix(why, "micro=%d", most < group ? most : most / group * group);
}

/* Sizes are counted in 64 bits: elements of all tensors, for all samples of a replica, times 8 bytes and what is kept of
 * them twice. No machine has as much. */
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

bool hp_strategy_legal(const hp_strategy *s, const hp_graph *g, int64_t batch, int n_devices,
                       hp_reject *why) {
    static bool (*const rules[])(const hp_legal_case *, hp_reject *) = {
        legal_ranks,          legal_stages,    hp_legal_order,    hp_legal_chunks,  hp_legal_gems,
        hp_legal_tiles,       hp_legal_tail,   hp_legal_channels, legal_cut,        hp_legal_shares,
        hp_legal_proportions, legal_passes,    legal_batch,       legal_amount,     hp_legal_prec,
        hp_legal_whole,       hp_legal_strips, hp_legal_zero,     hp_legal_sync,    hp_legal_comm,
        hp_legal_compress,    hp_legal_place,  hp_legal_tied,     hp_legal_sequence};
    const hp_strategy canonical = hp_strategy_canonical(s);
    const hp_legal_case c = {&canonical, g, batch, n_devices};
    if (why) memset(why, 0, sizeof *why);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (!rules[i](&c, why)) return false;
    return true;
}

const char *const hp_rules_names[] = {"hplan", "mpi4dl", NULL};

bool hp_rules_allow(hp_rules rules, const hp_strategy *s, const hp_graph *g, int64_t batch, int n_devices,
                    hp_reject *why) {
    if (!hp_strategy_legal(s, g, batch, n_devices, why)) return false;
    return rules == HP_RULES_HPLAN || hp_mpi4dl_allows(s, g, why);
}
