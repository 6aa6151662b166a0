/* axis_gems.c - `gems`: passes per update of a bidirectional pipeline, every second one mirrored. */
#include "plan/strategy/axis_kinds.h"

enum { DEFAULT_GEMS = 2 };

static bool is_default(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    return s->gems == (s->sched == HP_SCHED_GEMS ? DEFAULT_GEMS : 1);
}

static void imply(hp_strategy *s) {
    if (s->sched == HP_SCHED_GEMS) s->gems = DEFAULT_GEMS;
}

static bool legal_gems(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->sched != HP_SCHED_GEMS) {
        if (s->gems == 1) return true;
        hp_refuse(why, HP_REJECT_GEMS, "gems=%d: only sched=gems makes several passes over the pipeline",
                  s->gems);
        return hp_fix(why, "gems=1");
    }
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

const hp_axis hp_axis_gems = {.name = "gems",
                              .example = "gems=4",
                              .usual = "2 with sched=gems",
                              .means = "passes per update; every second one runs on the mirrored pipeline",
                              .at = offsetof(hp_strategy, gems),
                              .parse = hp_degree_parse,
                              .print = hp_degree_print,
                              .omits = is_default,
                              .reset = hp_degree_reset,
                              .imply = imply,
                              .legal = legal_gems};
