/* axis_overlap.c - `overlap`: what is computed while a halo is on its way. */
#include "plan/strategy/axis_kinds.h"

static const char *const words[] = {[HP_OVERLAP_NONE] = "none", [HP_OVERLAP_INTERIOR] = "interior", NULL};

const hp_axis hp_axis_overlap = {.name = "overlap",
                                 .example = "overlap=interior",
                                 .usual = "none",
                                 .means = "compute what needs no halo while the halo is in flight",
                                 HP_WORD(sp.overlap, words)};
