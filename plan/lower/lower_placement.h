/* lower_placement.h - where a program's ranks run on a machine (machines/placement.h). */
#ifndef HP_LOWER_PLACEMENT_H
#define HP_LOWER_PLACEMENT_H

#include "machines/machine.h"
#include "machines/placement.h"
#include "plan/program/program.h"

static inline hp_placement hp_placement_of(const hp_program *p, const hp_machine *m) {
    return (hp_placement){.roles = p->n_role,
                          .replicas = p->dp,
                          .clients = p->clients,
                          .nodes = m->nodes,
                          .devices_per_node = m->devices_per_node,
                          .seat = p->n_seat ? p->seat : NULL};
}

static inline int hp_rank_node(const hp_program *p, const hp_machine *m, int rank) {
    const hp_placement at = hp_placement_of(p, m);
    return hp_placement_node(&at, rank);
}

static inline int hp_rank_device(const hp_program *p, const hp_machine *m, int rank) {
    const hp_placement at = hp_placement_of(p, m);
    return hp_placement_device(&at, rank);
}

/* The seats that the strategy's `place` gives to its places on such a machine; NULL: their own.
 *
 * tile: puts tiles that exchange halos on one node. A block is a rectangle of a x b tiles, where a and b
 * divide the grid's rows and columns. It has as many tiles as a node has room for, and among those is the
 * most nearly square one (the shortest border). A tile's channel slices and branches stay together. Ranks of
 * stages without tiles are blocks of one. */
const int32_t *hp_seats_of(hp_arena *arena, const hp_strategy *s, const hp_machine *m);
/* Where the ranks of its program would run, before there is one; the seats live in `arena`. */
hp_placement hp_placement_of_strategy(hp_arena *arena, const hp_strategy *s, const hp_machine *m);

/* The most members of a group on one node; `replica`: whose, where every replica has its own. */
int hp_group_per_node(const hp_program *p, const hp_machine *m, int group, int replica);
/* Members per node, if in every replica they fill node after node with equally many each, as two-level
 * algorithms need; all of them where they are on one node; else 0. */
int hp_group_fill(const hp_program *p, const hp_machine *m, int group);

#endif
