/* axis_chunks.c - `chunks`: several parts of the model on each rank, with sched=interleaved. */
#include "plan/strategy/axis_kinds.h"

static bool legal_chunks(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const bool interleaved = s->sched == HP_SCHED_INTERLEAVED;
    const int positions = hp_positions(s);
    if (interleaved != (s->chunks > 1)) {
        hp_refuse(why, HP_REJECT_SCHED,
                  "chunks=%d: sched=interleaved, and no other, has several model chunks per rank", s->chunks);
        if (interleaved) return hp_fix(why, "sched=1f1b");
        return s->sched == HP_SCHED_GEMS ? hp_fix(why, "chunks=1") : hp_fix(why, "sched=interleaved");
    }
    if (!interleaved) return true;
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

const hp_axis hp_axis_chunks = {.name = "chunks",
                                .example = "chunks=2",
                                .usual = "1",
                                .means = "model chunks per rank, with sched=interleaved",
                                HP_DEGREE(chunks),
                                .legal = legal_chunks};
