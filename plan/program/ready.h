/* ready.h - when a task may start: the state of one rank's run through its list, for both interpreters, the
 * deadlock check, the critical path and the order of lanes.
 *
 * A task is ready once all its dependencies are met and it is at the head of its queue. Starting it moves the
 * head on. Completing it meets the dependencies on it. The caller decides what "done" means: an event on a
 * virtual clock, a returned call or a task given to a stream. */
#ifndef HP_READY_H
#define HP_READY_H

#include "plan/program/wiring.h"

typedef struct hp_ready {
    const hp_wired_role *w;
    int32_t *wait; /* per task: dependencies that are not met */
    int32_t *head; /* per queue: how many of its tasks have started */
} hp_ready;

/* Lives in `arena`; as at the start of a step. */
void hp_ready_init(hp_arena *arena, const hp_wired_role *w, hp_ready *r);
/* Back to the start of a step. */
void hp_ready_reset(hp_ready *r);

/* The task that starts next in a queue; -1: all have. */
static inline int hp_ready_head(const hp_ready *r, int queue) {
    return hp_wired_task(r->w, queue, r->head[queue]);
}
/* The task of a queue that may start now, or -1. */
static inline int hp_ready_task(const hp_ready *r, int queue) {
    const int task = hp_ready_head(r, queue);
    return task >= 0 && r->wait[task] == 0 ? task : -1;
}
/* The task at a queue's head starts. Returns the next one if it may start now, else -1. */
static inline int hp_ready_start(hp_ready *r, int queue) {
    r->head[queue]++;
    return hp_ready_task(r, queue);
}
static inline bool hp_ready_started(const hp_ready *r, int task) {
    return r->w->place[task] < r->head[r->w->role->task[task].queue];
}
/* One of a task's dependencies is met. May the task start now? */
static inline bool hp_ready_meet(hp_ready *r, int task) {
    return --r->wait[task] == 0 && r->w->place[task] == r->head[r->w->role->task[task].queue];
}

#endif
