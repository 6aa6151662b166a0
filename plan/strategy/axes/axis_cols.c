/* axis_cols.c - `cols`: the proportions of the tiles' widths. */
#include "plan/strategy/axis_proportions.h"

static bool legal_cols(const hp_legal_case *c, hp_reject *why) {
    return hp_proportions_legal(c->s, HP_AXIS_W, "cols", why);
}

static void settle(hp_strategy *s) {
    hp_proportions_settle(s, HP_AXIS_W);
}

const hp_axis hp_axis_cols = {.name = "cols",
                              .example = "cols=2:1",
                              .usual = "even",
                              .means = "proportions of tile widths; each entry is for equally many columns "
                                       "of tiles, which share it evenly",
                              HP_PROPORTIONS(HP_AXIS_W),
                              .settle = settle,
                              .legal = legal_cols};
