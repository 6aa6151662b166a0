/* place_traffic.h - chooses seats for a program's ranks by their traffic, with few bytes between nodes. */
#ifndef HP_PLACE_TRAFFIC_H
#define HP_PLACE_TRAFFIC_H

#include "machines/machine.h"
#include "plan/program/program.h"

/* Bytes that each pair of ranks exchanges in a step, in both directions, through messages and collectives
 * (counted as rings): a symmetric matrix over all ranks. Cost: ranks^2. */
double *hp_traffic_of(hp_arena *arena, const hp_program *p);

/* Bytes between nodes, each pair counted once, if place k has seat[k] (NULL: its own) and a node has per_node
 * seats. */
double hp_traffic_between_nodes(const double *traffic, int n, int per_node, const int32_t *seat);

/* Improves seats by exchanging two places on different nodes while that lowers the bytes between nodes, best
 * exchange first (Kernighan and Lin 1970, without their look-ahead). Exchanges only seats on devices of equal
 * class and speed. Cost: ranks^2 per exchange. */
void hp_traffic_exchange(const double *traffic, int n, const hp_machine *m, int32_t *seat);

#endif
