/* wiring.h - the program's indexed view, built once: the tasks of each queue, which task waits for which,
 * where a queue's messages arrive, who takes part in a collective.
 *
 * It is kept per role, like the program: every replica runs the same lists, and ranks follow by
 * arithmetic. */
#ifndef HP_WIRING_H
#define HP_WIRING_H

#include "plan/program/program.h"

typedef struct hp_wired_queue {
    int32_t n, *task; /* tasks of the queue in list order */
    int32_t partner;  /* send, recv: the peer's queue of the same channel; -1: none */
} hp_wired_queue;

typedef struct hp_wired_role {
    const hp_role *role;
    hp_wired_queue *queue;      /* per role.queue; 0 = compute */
    int32_t *sorted_queue;      /* queues by kind, peer, channel */
    int32_t *place;             /* per task: position within its queue */
    int32_t *succ_first, *succ; /* CSR: tasks that depend on a task, ascending */
} hp_wired_role;

/* The roles that call collectives of a group, and from which of their queues. */
typedef struct hp_wired_group {
    int32_t n, *role, *queue;
    int32_t calls; /* the most that any of them makes */
} hp_wired_group;

typedef struct hp_wiring {
    const hp_program *program;
    hp_wired_role *role;   /* per role */
    hp_wired_group *group; /* per group */
} hp_wiring;

/* Builds the view in `arena`; ids must be in range. Cost: linear in tasks and dependencies, q log q in a
 * role's queues. */
hp_wiring *hp_wiring_new(hp_arena *arena, const hp_program *p);
/* Wires one role alone: its queues have no partners. */
void hp_wire_role(hp_arena *arena, const hp_role *role, hp_wired_role *w);

/* The role's queue of that kind, or -1; of two that lead to the same place the first in order. */
int hp_wired_find(const hp_wired_role *w, hp_queue_kind kind, int peer, int channel);
/* Orders queues by kind, peer and channel; 0: they lead to the same place. */
int hp_queue_compare(const hp_queue *a, const hp_queue *b);

/* The k-th task of a queue; -1: it has fewer. */
static inline int hp_wired_task(const hp_wired_role *w, int queue, int k) {
    return k < w->queue[queue].n ? w->queue[queue].task[k] : -1;
}
static inline const hp_queue *hp_wired_queue_of(const hp_wired_role *w, int task) {
    return &w->role->queue[w->role->task[task].queue];
}
/* The other end of a message: a task of role hp_wired_queue_of(...)->peer; -1: there is none. */
static inline int hp_wired_other_end(const hp_wiring *w, int role, int task) {
    const hp_wired_role *r = &w->role[role];
    const int q = r->role->task[task].queue, partner = r->queue[q].partner;
    return partner < 0 ? -1 : hp_wired_task(&w->role[r->role->queue[q].peer], partner, r->place[task]);
}
/* The k-th collective of a member of a group as a task of its role; -1: it makes fewer. */
static inline int hp_wired_call(const hp_wiring *w, const hp_wired_group *g, int member, int k) {
    return hp_wired_task(&w->role[g->role[member]], g->queue[member], k);
}

#endif
