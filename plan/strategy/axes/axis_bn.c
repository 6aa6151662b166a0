/* axis_bn.c - `bn`: whose samples and pixels the statistics of a batch norm are of. */
#include "plan/strategy/axis_kinds.h"

static const char *const words[] = {
    [HP_BN_SYNC] = "sync", [HP_BN_ALL] = "all", [HP_BN_LOCAL] = "local", NULL};

const hp_axis hp_axis_bn = {
    .name = "bn",
    .example = "bn=all",
    .usual = "sync",
    .means = "batch-norm statistics of a micro-batch: sync over a replica's tiles and slices (exact), all "
             "over all replicas, local over a rank's own part (not exact)",
    HP_WORD(bn, words)};
