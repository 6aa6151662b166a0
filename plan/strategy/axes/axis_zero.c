/* axis_zero.c - see axis_zero.h. Its rules about `sched`, `gems` and `strips` are said here. */
#include "plan/strategy/axes/axis_zero.h"

#include "plan/strategy/axis_kinds.h"
#include "plan/strategy/sched_kind.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>

enum { MOST_AHEAD = 64, TEXT = 32 };

static hp_status parse_option(const char *word, hp_strategy *s, hp_error *err) {
    int64_t ahead = 0;
    if (strcmp(word, "keep") == 0) {
        s->zero.keep = 1;
        return HP_OK;
    }
    HP_TRY(hp_parse_int(word, "strategy: zero=3:", 0, MOST_AHEAD, &ahead, err));
    s->zero.prefetch = (int32_t)ahead;
    return HP_OK;
}

static hp_status parse_zero(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    char copy[TEXT], *rest = NULL;
    int64_t stage = 0;
    if (snprintf(copy, sizeof copy, "%s", value) >= (int)sizeof copy || !copy[0] || copy[0] == ':')
        return hp_fail(err, HP_EUSAGE,
                       "strategy: zero=%.40s is no stage of ZeRO; for example zero=1 or zero=3:2:keep",
                       value);
    HP_TRY(hp_parse_int(strtok_r(copy, ":", &rest), "strategy: zero", 0, HP_ZERO_STAGES, &stage, err));
    s->zero.stage = (int32_t)stage;
    for (char *word = strtok_r(NULL, ":", &rest); word; word = strtok_r(NULL, ":", &rest)) {
        if (stage < HP_ZERO_STAGES)
            return hp_fail(
                err, HP_EUSAGE,
                "strategy: zero=%.40s: only zero=3 gathers parameters, ahead or to keep them: zero=%d", value,
                s->zero.stage);
        HP_TRY(parse_option(word, s, err));
    }
    return HP_OK;
}

static void print_zero(const hp_axis *a, const hp_strategy *s, char *out) {
    (void)a;
    int n = sprintf(out, "%d", s->zero.stage);
    if (s->zero.stage == HP_ZERO_STAGES && s->zero.prefetch != HP_ZERO_PREFETCH)
        n += sprintf(out + n, ":%d", s->zero.prefetch);
    if (s->zero.stage == HP_ZERO_STAGES && s->zero.keep) sprintf(out + n, ":keep");
}

static void reset(const hp_axis *a, hp_strategy *s) {
    (void)a;
    s->zero.prefetch = HP_ZERO_PREFETCH;
}

static bool legal_zero(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (!s->zero.stage) return true;
    if (c->g->deployed) {
        hp_refuse(why, HP_REJECT_ZERO,
                  "zero=%d: a deployed network's weights are packed constants, in no parts", s->zero.stage);
        return hp_fix(why, "zero=0");
    }
    if (s->zero.stage >= 2 && hp_sched_of(s)->splits_backward) {
        hp_refuse(why, HP_REJECT_ZERO,
                  "zero=%d scatters a micro-batch's gradients after its backward pass, sched=%s computes "
                  "them later",
                  s->zero.stage, hp_sched_of(s)->name);
        return hp_fix(why, "zero=1");
    }
    if (s->zero.stage >= 2 && s->gems > 1) {
        hp_refuse(why, HP_REJECT_ZERO,
                  "zero=%d: mirrored passes of GEMS work on the same parameters at different times, so their "
                  "ranks cannot "
                  "gather or scatter them together",
                  s->zero.stage);
        return hp_fix(why, "zero=1");
    }
    if (s->zero.stage < HP_ZERO_STAGES || s->strips.n == 1) return true;
    hp_refuse(why, HP_REJECT_ZERO, "zero=3 would gather the parameters for each of %d strips", s->strips.n);
    return hp_fix(why, "zero=0");
}

/* The optimiser on a part, for a sum in two halves. */
static int tries(const hp_strategy *best, const hp_axis_facts *f, hp_strategy *out) {
    if (!f->trains || best->zero.stage || hp_strategy_ranks(best) < 2) return 0;
    out[0] = *best;
    out[0].zero.stage = 1;
    return 1;
}

/* Each holder of the same weights with a part of what belongs to them. */
static int spares(const hp_strategy *s, const hp_axis_facts *f, hp_strategy *out) {
    static const int STAGES[] = {1, HP_ZERO_STAGES};
    enum { N = sizeof STAGES / sizeof *STAGES };
    if (f->g->deployed || s->zero.stage || hp_strategy_ranks(s) == s->stages) return 0;
    for (int i = 0; i < N; i++) {
        out[i] = *s;
        out[i].zero.stage = STAGES[i];
    }
    return N;
}

const hp_axis hp_axis_zero = {
    .name = "zero",
    .example = "zero=1",
    .usual = "0",
    .means = "ZeRO (PyTorch: FSDP). Ranks with the same parameters each keep a part: 1 of the optimiser's "
             "state, 2 also of gradients, 3 also of parameters; 3:2:keep: gather 2 buckets ahead, and keep "
             "gathered parameters for the whole step",
    .alias = {{"fsdp", "dp=N,zero=3"},
              {"zero1", "dp=N,zero=1"},
              {"zero2", "dp=N,zero=2"},
              {"zero3", "dp=N,zero=3"}},
    .at = offsetof(hp_strategy, zero.stage),
    .parse = parse_zero,
    .print = print_zero,
    .omits = hp_field_is_zero,
    .reset = reset,
    .legal = legal_zero,
    .tried = HP_TRY_STATE,
    .tries = tries,
    .spare = HP_SPARE_STATE,
    .spares = spares};
