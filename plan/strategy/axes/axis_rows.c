/* axis_rows.c - `rows`: the proportions of the tiles' heights. */
#include "plan/strategy/axis_proportions.h"

static bool legal_rows(const hp_legal_case *c, hp_reject *why) {
    return hp_proportions_legal(c->s, HP_AXIS_H, "rows", why);
}

static void settle(hp_strategy *s) {
    hp_proportions_settle(s, HP_AXIS_H);
}

const hp_axis hp_axis_rows = {.name = "rows",
                              .example = "rows=5:3",
                              .usual = "even",
                              .means = "proportions of tile heights; each entry is for equally many rows of "
                                       "tiles, which share it evenly",
                              HP_PROPORTIONS(HP_AXIS_H),
                              .settle = settle,
                              .legal = legal_rows};
