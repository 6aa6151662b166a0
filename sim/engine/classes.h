/* classes.h - indistinguishable ranks are simulated once: classes of ranks, of the places where they run
 * (nodes, devices) and through which they send (NICs, leaf switches), and of their communicators.
 *
 * The classes are the coarsest equitable partition (McKay 1981; colour refinement). Ranks of a class have the
 * same role, the same messages to and from equal classes over equal routes, and communicators and places of
 * equal classes. If equals do equal things at equal times, the simulator's rules preserve that. Max-min fair
 * rates are unique, so equals get equal rates: one member's run is everyone's. */
#ifndef HP_CLASSES_H
#define HP_CLASSES_H

#include "base/arena.h"
#include "machines/machine.h"
#include "plan/program/wiring.h"

/* Where a rank runs, and what it sends through. NICs: those of its node near the rank
 * (machines/network.h). */
typedef enum hp_place_kind {
    HP_PLACE_NODE,
    HP_PLACE_DEVICE,
    HP_PLACE_NICS,
    HP_PLACE_LEAF,
    HP_PLACES
} hp_place_kind;

typedef struct hp_places {
    int32_t *at;       /* per rank of the world: its place */
    int32_t *class_of; /* per place: its class */
    int32_t *of;       /* per class of ranks: the class of its place */
    int32_t *beside;   /* per class of ranks: number of its ranks at each such place */
    int32_t n, all;    /* classes of places; places */
} hp_places;

typedef struct hp_classes {
    int32_t n;      /* number of classes, in the order of their first ranks */
    int32_t *of;    /* per rank of the world */
    int32_t *first; /* per class: the rank that is simulated */
    int32_t *size;  /* ranks of the class */
    /* NICS if a node shares them all: as NODE; LEAF without contention: none */
    hp_places place[HP_PLACES];
    int32_t places;       /* number of places of the most frequent kind */
    int32_t *world_comm;  /* per group: its first communicator in the world (there is one, or one per
                           * replica) */
    int32_t *comm;        /* per communicator of the world: its class */
    int32_t n_comm;       /* classes of communicators */
    int32_t *comm_first;  /* n_comm + 1: CSR into comm_member */
    int32_t *comm_member; /* communicators of the world by class, ascending */
} hp_classes;

/* fold: if false, every rank is a class of its own. apart: ranks unlike any other (n_apart stragglers). A
 * rank's costs may depend on its role, its device's class and speed, and where its partners run. Cost: ranks
 * x queues, times the longest path over which a difference spreads. */
hp_classes *hp_classes_of(hp_arena *arena, const hp_wiring *w, const hp_machine *m, bool fold, int apart);

/* The world communicator to which a rank's calls of a group go. */
static inline int hp_world_comm(const hp_classes *c, const hp_program *p, int rank, int group) {
    return c->world_comm[group] + (p->group[group].all_replicas ? 0 : rank / p->n_role);
}

#endif
