/* axis_chunks.c - `chunks`: several parts of the model on each rank, with sched=interleaved. */
#include "plan/strategy/axis_kinds.h"
#include "plan/strategy/sched_kind.h"

static bool legal_chunks(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const bool interleaved = hp_sched_of(s)->interleaves;
    if (interleaved == (s->chunks > 1)) return true;
    hp_refuse(why, HP_REJECT_SCHED,
              "chunks=%d: sched=interleaved, and no other, has several model chunks per rank", s->chunks);
    if (interleaved) return hp_fix(why, "sched=1f1b");
    return hp_sched_of(s)->mirrors ? hp_fix(why, "chunks=1") : hp_fix(why, "sched=interleaved");
}

const hp_axis hp_axis_chunks = {.name = "chunks",
                                .example = "chunks=2",
                                .usual = "1",
                                .means = "model chunks per rank, with sched=interleaved",
                                HP_DEGREE(chunks),
                                .cut_key = hp_field_cut_key,
                                .legal = legal_chunks};
