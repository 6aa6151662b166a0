/* place_traffic.h - seats for a program's ranks by what they send each other: few bytes between nodes. */
#ifndef HP_PLACE_TRAFFIC_H
#define HP_PLACE_TRAFFIC_H

#include "machines/machine.h"
#include "plan/program/program.h"

/* Bytes that each two ranks exchange in a step, messages and collectives (counted as rings), both ways: a symmetric
 * matrix of all ranks. Cost: ranks^2. */
double *hp_traffic_of(hp_arena *arena, const hp_program *p);

/* Of them, the bytes between nodes, each pair once, where place k has seat[k] (NULL: its own) and a node per_node seats. */
double hp_traffic_between_nodes(const double *traffic, int n, int per_node, const int32_t *seat);

/* Improves seats by exchanging two places on different nodes as long as that lowers the bytes between nodes, the best
 * exchange first (Kernighan and Lin 1970, without their look-ahead). Only seats on devices of one class and speed are
 * exchanged. Cost: ranks^2 an exchange. */
void hp_traffic_exchange(const double *traffic, int n, const hp_machine *m, int32_t *seat);

#endif
