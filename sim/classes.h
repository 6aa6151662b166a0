/* classes.h - ranks that cannot be told apart are simulated once: classes of ranks, of the places they run at (nodes,
 * devices) and send through (NICs, leaf switches) and of the communicators they take part in.
 *
 * The classes are the coarsest equitable partition (McKay 1981; colour refinement): ranks of a class have the
 * same role, messages to and from ranks of equal classes over equal ways, communicators and places of equal
 * classes. From a state in which equals do equal things at equal times the simulator's rules lead to such
 * a state again, and max-min fair rates are unique, so equals get equal ones: one member's run is everyone's. */
#ifndef HP_CLASSES_H
#define HP_CLASSES_H

#include "base/arena.h"
#include "machines/machine.h"
#include "plan/program/wiring.h"

/* Where a rank runs, and what it sends through. NICs: those of its node that are near to it (machines/network.h). */
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
    int32_t *beside;   /* per class of ranks: ranks of the class at each such place */
    int32_t n, all;    /* classes of places; places */
} hp_places;

typedef struct hp_classes {
    int32_t n;      /* of ranks, in order of their first ranks */
    int32_t *of;    /* per rank of the world */
    int32_t *first; /* per class: the rank that is simulated */
    int32_t *size;  /* ranks of the class */
    /* NICS where all of a node are shared: as NODE; LEAF where nobody contends there: none */
    hp_places place[HP_PLACES];
    int32_t places;       /* of the kind that has most */
    int32_t *world_comm;  /* per group: its first communicator in the world: one, or one per replica */
    int32_t *comm;        /* per communicator of the world: its class */
    int32_t n_comm;       /* classes of communicators */
    int32_t *comm_first;  /* n_comm + 1: CSR into comm_member */
    int32_t *comm_member; /* communicators of the world by class, ascending */
} hp_classes;

/* fold: false, every rank is a class of its own. apart: ranks that are like no other (stragglers; n_apart of them). Costs
 * of a rank may depend on its role, its device's class and speed, and where the ranks run that it communicates with.
 * Cost: ranks x queues, times the longest way over which a difference is felt. */
hp_classes *hp_classes_of(hp_arena *arena, const hp_wiring *w, const hp_machine *m, bool fold, int apart);

/* The communicator that a rank's calls of a group go to, of the world. */
static inline int hp_world_comm(const hp_classes *c, const hp_program *p, int rank, int group) {
    return c->world_comm[group] + (p->group[group].all_replicas ? 0 : rank / p->n_role);
}

#endif
