/* axis_halo.c - `halo`: halo-bearing layers per exchange; redundant rows are computed. */
#include "plan/strategy/axis_kinds.h"

const hp_axis hp_axis_halo = {.name = "halo",
                              .example = "halo=2",
                              .usual = "1",
                              .means = "halo-bearing layers per exchange; tiles compute the extra rows",
                              HP_DEGREE(sp.halo)};
