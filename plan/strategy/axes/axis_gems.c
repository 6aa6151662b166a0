/* axis_gems.c - `gems`: passes per update of a bidirectional pipeline, every second one mirrored. How many
 * there may be says plan/strategy/schedules/gems.c. */
#include "plan/strategy/axis_kinds.h"
#include "plan/strategy/sched_kind.h"

enum { DEFAULT_GEMS = 2 };

static bool is_default(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    return s->gems == (hp_sched_of(s)->mirrors ? DEFAULT_GEMS : 1);
}

static void imply(hp_strategy *s) {
    if (hp_sched_of(s)->mirrors) s->gems = DEFAULT_GEMS;
}

static bool legal_gems(const hp_legal_case *c, hp_reject *why) {
    if (c->s->gems == 1 || hp_sched_of(c->s)->mirrors) return true;
    hp_refuse(why, HP_REJECT_GEMS, "gems=%d: only sched=gems makes several passes over the pipeline",
              c->s->gems);
    return hp_fix(why, "gems=1");
}

const hp_axis hp_axis_gems = {.name = "gems",
                              .example = "gems=4",
                              .usual = "2 with sched=gems",
                              .means = "passes per update; every second pass runs on the mirrored pipeline",
                              .at = offsetof(hp_strategy, gems),
                              .parse = hp_degree_parse,
                              .print = hp_degree_print,
                              .omits = is_default,
                              .reset = hp_degree_reset,
                              .imply = imply,
                              .legal = legal_gems};
