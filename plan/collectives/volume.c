/* volume.c - bytes that a collective must move, whoever does it. */
#include "plan/collectives/collective.h"

/* Blocks with a place of their own move once each; all of the data reaches all, or is added up at one, in n - 1 times
 * the data together; an all-reduce is both. */
double hp_collective_volume(hp_collective c, int32_t n) {
    const double others = n > 1 ? (double)(n - 1) / n : 0;
    if (c == HP_COLLECTIVE_BARRIER) return 0;
    if (c == HP_COLLECTIVE_ALLREDUCE) return 2 * others;
    return hp_collective_rooted(c) && hp_collective_parts(c) ? others / n : others;
}
