/* interleaved.c - 1F1B with several model chunks on each rank (Narayanan et al., SC 2021, section 2.2). */
#include "plan/strategy/sched_kind.h"

static int warm_up(int positions, int position, int chunks) {
    return (positions - position - 1) * 2 + (chunks - 1) * positions + 1;
}

static bool implied(const hp_strategy *s) {
    return s->chunks > 1;
}

static bool legal(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int positions = hp_positions(s);
    if (s->chunks == 1) return true; /* the rule of `chunks` says so */
    if (positions < 2) {
        hp_refuse(why, HP_REJECT_SCHED, "sched=interleaved needs a pipeline of at least 2 positions, not %d",
                  positions);
        return hp_fix(why, "chunks=1,sched=gpipe");
    }
    if (s->micro % positions == 0) return true;
    hp_refuse(why, HP_REJECT_SCHED,
              "sched=interleaved needs micro divisible by the pipeline's %d positions, micro=%d", positions,
              s->micro);
    const int less = s->micro / positions * positions, more = less + positions;
    return hp_fix(why, "micro=%d", more > HP_MAX_GROUPS ? less : more);
}

const hp_sched_kind hp_sched_interleaved = {
    .name = "interleaved", .warm_up = warm_up, .interleaves = true, .implied = implied, .legal = legal};
