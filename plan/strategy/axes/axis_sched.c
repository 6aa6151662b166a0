/* axis_sched.c - `sched`: the order of forward and backward passes. Each order has a file in
 * plan/strategy/schedules/, with its rule. */
#include "plan/strategy/axis_kinds.h"
#include "plan/strategy/sched_kind.h"

static const char *const words[] = {
#define SCHED(ID, id) [HP_SCHED_##ID] = #id,
#include "plan/strategy/sched.def"
    NULL};

/* The order that a text without `sched` means: the last one in the list that its other keys imply. */
static int32_t implied_sched(const hp_strategy *s) {
    int k = HP_SCHEDS - 1;
    while (k >= 0 && !(hp_sched_kinds[k]->implied && hp_sched_kinds[k]->implied(s))) k--;
    return k >= 0 ? k : hp_sched_plain(s->micro);
}

static void imply(hp_strategy *s) {
    s->sched = implied_sched(s);
}

/* Omits only the contract's defaults, and only where reading the text restores them. */
static bool is_implied(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    return s->sched == hp_sched_plain(s->micro) && s->sched == implied_sched(s);
}

/* Every order is gradient accumulation in a pipeline of one position. */
static void settle(hp_strategy *s) {
    if (hp_positions(s) == 1 && s->chunks == 1 && !hp_sched_of(s)->mirrors)
        s->sched = hp_sched_plain(s->micro);
}

static bool legal_sched(const hp_legal_case *c, hp_reject *why) {
    return !hp_sched_of(c->s)->legal || hp_sched_of(c->s)->legal(c, why);
}

/* Fewer micro-batches in flight. */
static int spares(const hp_strategy *s, const hp_axis_facts *f, hp_strategy *out) {
    const int32_t sparing = hp_sched_sparing(s->micro);
    if (f->g->deployed || s->micro == 1 || s->sched == sparing || hp_positions(s) == 1 || s->chunks > 1 ||
        s->gems > 1)
        return 0;
    out[0] = *s;
    out[0].sched = sparing;
    return 1;
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
    .legal = legal_sched,
    .cut_key = hp_field_cut_key,
    .spare = HP_SPARE_ORDER,
    .spares = spares};
