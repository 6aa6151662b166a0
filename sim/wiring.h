/* wiring.h - the fixed side of a simulation: which task follows which, which queues meet, where ranks are
 * placed. */
#ifndef HP_SIM_WIRING_H
#define HP_SIM_WIRING_H

#include "plan/machine.h"
#include "plan/program.h"

typedef struct hp_wired_queue {
    int32_t n, *task; /* tasks of the queue in list order */
    int32_t partner;  /* send, recv: the peer role's queue of the same channel, -1 = missing */
} hp_wired_queue;

typedef struct hp_wired_role {
    const hp_role *role;
    hp_wired_queue *queue;      /* per role.queue; 0 = compute */
    int32_t *succ_first, *succ; /* CSR: tasks that wait for a task */
    int32_t *place_in_queue;    /* per task */
} hp_wired_role;

typedef struct hp_wiring {
    const hp_program *program;
    int32_t n_rank, n_role, dp; /* ranks simulated; dp = replicas simulated (1 when folded) */
    hp_wired_role *role;
} hp_wiring;

/* Everything lives in `arena`. fold: one replica stands for all. */
hp_wiring *hp_wiring_new(hp_arena *arena, const hp_program *p, bool fold);

/* Where a world rank is placed: ranks fill node after node; more ranks than devices wrap around (a shared
 * core). */
static inline int hp_place_node(const hp_machine *m, int rank) {
    return rank / m->devices_per_node % m->nodes;
}
static inline int hp_place_device(const hp_machine *m, int rank) {
    return rank % hp_machine_devices(m);
}

/* Ranks of a group in a world of `ranks`, and the most of them on one node. */
int hp_group_ranks(const hp_program *p, int group);
int hp_group_per_node(const hp_program *p, const hp_machine *m, int group);

/* Do all replicas see the same machine around them, so that one may stand for all? */
bool hp_can_fold(const hp_program *p, const hp_machine *m);
/* Replicas that share a node with replica 0, itself included. */
int hp_replicas_per_node(const hp_program *p, const hp_machine *m);

#endif
