/* axis_tail.c - `tail`: ranks of the stage after the spatial ones. What `ldp` needs of these stages is said
 * here, too. */
#include "plan/strategy/axis_kinds.h"

static const char *const words[] = {[HP_TAIL_OWN] = "own", [HP_TAIL_SHARED] = "shared", NULL};

static bool legal_tail(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const bool shared = s->sp.tail == HP_TAIL_SHARED;
    if (s->ldp > 1 && (shared || s->sp.n == s->stages)) {
        hp_refuse(why, HP_REJECT_TAIL, "ldp=%d slices stages after the spatial ones%s", s->ldp,
                  shared ? "; tail=shared has a slice per tile already" : ", there are none");
        return hp_fix(why, "ldp=1");
    }
    if (!shared || (s->sp.n && s->stages == s->sp.n + 1)) return true;
    hp_refuse(why, HP_REJECT_TAIL,
              "tail=shared needs one stage after the spatial ones: %d of stages=%d are spatial", s->sp.n,
              s->stages);
    if (s->sp.n && hp_legal_fits_stages(c, s->sp.n + 1)) return hp_fix(why, "stages=%d", s->sp.n + 1);
    return hp_fix(why, "tail=own");
}

const hp_axis hp_axis_tail = {.name = "tail",
                              .example = "tail=shared",
                              .usual = "own",
                              .means = "who computes the stages after the spatial ones: ranks of their own; "
                                       "shared, for a single such stage: the tiles' ranks, each with a part "
                                       "of the samples",
                              HP_WORD(sp.tail, words),
                              .cut_key = hp_field_cut_key,
                              .legal = legal_tail};
