/* wiring.h - the fixed side of a simulation: which task follows which, which queues meet. */
#ifndef HP_SIM_WIRING_H
#define HP_SIM_WIRING_H

#include "plan/program/program.h"

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

/* The roles that call collectives of a group, and from which of their queues. */
typedef struct hp_wired_group {
    int32_t n, *role, *queue;
    int32_t calls; /* the most that any of them makes */
} hp_wired_group;

typedef struct hp_wiring {
    const hp_program *program;
    int32_t n_rank, n_role, dp; /* ranks simulated; dp = replicas simulated (1 when folded) */
    hp_wired_role *role;
    hp_wired_group *group;
} hp_wiring;

/* Everything lives in `arena`. fold: one replica stands for all. */
hp_wiring *hp_wiring_new(hp_arena *arena, const hp_program *p, bool fold);

/* The k-th collective of a member of a group as a task of its role; -1: it makes fewer. */
static inline int hp_wired_call(const hp_wiring *w, const hp_wired_group *g, int member, int k) {
    const hp_wired_queue *q = &w->role[g->role[member]].queue[g->queue[member]];
    return k < q->n ? q->task[k] : -1;
}

#endif
