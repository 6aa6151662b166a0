/* diagnosis.h - which rank waited for which when a run stopped, from the tasks that each rank is
 * known to have done. */
#ifndef HP_DIAGNOSIS_H
#define HP_DIAGNOSIS_H

#include "plan/program/program.h"

typedef enum hp_stop {
    HP_STOP_UNKNOWN,  /* nothing is known about the rank */
    HP_STOP_BETWEEN,  /* it had started nothing of its step, although it could */
    HP_STOP_COMPUTES, /* its next task has everything it needs: it was running it */
    HP_STOP_WAITS     /* for others */
} hp_stop;

enum { HP_STOP_NAMED = 8 };

/* Where a rank stopped. */
typedef struct hp_stopped {
    hp_stop kind;
    int32_t iter; /* step, from 0 */
    int32_t task; /* index in the role: the task that it was running, or the message or collective
                   * that it waited for */
    int32_t n_for,
        for_rank[HP_STOP_NAMED]; /* waits: the first of n_for ranks that it waited for; 0: none, all had
                                  * arrived: the message itself, or the network */
} hp_stopped;

typedef struct hp_diagnosis hp_diagnosis;
/* Lives in `arena`, with the program. */
hp_diagnosis *hp_diagnosis_new(hp_arena *arena, const hp_program *p);
/* Notes that a rank has done a task of a step, in any order; ignores values out of range. Only each
 * rank's last step counts. */
void hp_diagnosis_done(hp_diagnosis *d, int rank, int32_t iter, int32_t task);
/* Fills in all ranks; nothing may be noted afterwards. */
void hp_diagnosis_conclude(hp_diagnosis *d, hp_stopped *stopped);
/* The rank that others waited for, directly or not, and that waited for nobody. -1: there is none, or more
 * than one. -1, too, if it had not started its step, because no program tells what ranks do between steps.
 * Also -1 if all had arrived at the message or collective that others waited for: then one of them, or the
 * connection, stopped in it. */
int hp_diagnosis_culprit(const hp_diagnosis *d, const hp_stopped *stopped);

#endif
