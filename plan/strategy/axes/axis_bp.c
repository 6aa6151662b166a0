/* axis_bp.c - `bp`: independent branches of the network on ranks of their own. */
#include "plan/strategy/axis_kinds.h"

const hp_axis hp_axis_bp = {.name = "bp",
                            .example = "bp=2",
                            .usual = "1",
                            .means = "ranks that share the independent branches of the network",
                            HP_DEGREE(bp),
                            .family = HP_FAMILY_BRANCH,
                            .marks = 4,
                            .cut_key = hp_field_cut_key};
