/* diagnosis.h - who waited for whom when a run stopped, from the tasks that each rank is known to have done. */
#ifndef HP_DIAGNOSIS_H
#define HP_DIAGNOSIS_H

#include "plan/program/program.h"

typedef enum hp_stop {
    HP_STOP_UNKNOWN,  /* nothing is known of the rank */
    HP_STOP_BETWEEN,  /* it had begun nothing of its step, though nothing kept it from that */
    HP_STOP_COMPUTES, /* what its next task needs is there: it was at it */
    HP_STOP_WAITS     /* for others */
} hp_stop;

enum { HP_STOP_NAMED = 8 };

/* Where a rank stopped. */
typedef struct hp_stopped {
    hp_stop kind;
    int32_t iter; /* step, from 0 */
    int32_t task; /* of its role: what it was at; or the message or collective that it waited for */
    int32_t n_for,
        for_rank[HP_STOP_NAMED]; /* waits: for whom, the first ones of n_for; 0: for nobody, all had come: the
                                               message itself, or the network */
} hp_stopped;

typedef struct hp_diagnosis hp_diagnosis;
/* Lives in `arena`, with the program. */
hp_diagnosis *hp_diagnosis_new(hp_arena *arena, const hp_program *p);
/* A rank has done a task of a step: in any order; what is out of range is left out. Only each rank's last step counts. */
void hp_diagnosis_done(hp_diagnosis *d, int rank, int32_t iter, int32_t task);
/* Of all ranks; nothing may be noted after it. */
void hp_diagnosis_conclude(hp_diagnosis *d, hp_stopped *stopped);
/* The rank that others waited for, directly or not, and that waited for nobody; -1: there is none, or more than one, or it had
 * not begun its step (what ranks do between steps is in no program), or what others waited for was a message or collective
 * to which all had come: one of them stopped in it, or what is between them. */
int hp_diagnosis_culprit(const hp_diagnosis *d, const hp_stopped *stopped);

#endif
