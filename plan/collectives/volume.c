/* volume.c - bytes that a collective must move, whatever the algorithm. */
#include "plan/collectives/collective.h"

/* Each block with a fixed place moves once. Sending all the data to all members, or summing it at one, moves
 * n - 1 times the data in total. An all-reduce does both. */
double hp_collective_volume(hp_collective c, int32_t n) {
    const double others = n > 1 ? (double)(n - 1) / n : 0;
    if (c == HP_COLLECTIVE_BARRIER) return 0;
    if (c == HP_COLLECTIVE_ALLREDUCE) return 2 * others;
    return hp_collective_rooted(c) && hp_collective_parts(c) ? others / n : others;
}
