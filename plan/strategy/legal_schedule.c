/* legal_schedule.c - rules for the order of passes: which schedules go with which pipeline. */
#include "plan/strategy/legal.h"

enum { MAX_GROUPS = 65536 }; /* micro-batches of a step: a program lists the tasks of each */

/* LP and zero-bubble. */
bool hp_legal_order(const hp_legal_case *c, hp_reject *why) {
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

/* Several model chunks per rank. */
bool hp_legal_chunks(const hp_legal_case *c, hp_reject *why) {
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
    return hp_fix(why, "micro=%d", more > MAX_GROUPS ? less : more);
}

bool hp_legal_gems(const hp_legal_case *c, hp_reject *why) {
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
    if (groups <= MAX_GROUPS) return true;
    hp_refuse(why, HP_REJECT_GEMS, "gems*micro = %lld micro-batches in a step, at most %d", (long long)groups,
              MAX_GROUPS);
    return hp_fix(why, "micro=%d", MAX_GROUPS / s->gems);
}
