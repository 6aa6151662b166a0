/* schedule.h - the order in which a role runs its forward and backward passes. */
#ifndef HP_SCHEDULE_H
#define HP_SCHEDULE_H

#include "plan/strategy/strategy.h"

typedef enum hp_step_kind {
    HP_STEP_FORWARD,
    HP_STEP_BACKWARD, /* with sched=zb only the gradients of data; else those of the weights too */
    HP_STEP_WEIGHTS   /* sched=zb: the gradients of the weights */
} hp_step_kind;

typedef struct hp_sched_step {
    int32_t kind;  /* hp_step_kind */
    int32_t flip;  /* 1: as the mirror image (GEMS) */
    int32_t chunk; /* model chunk */
    int32_t micro; /* micro-batch, counted through all passes of the step */
} hp_sched_step;

/* Room for the steps of any role. */
int hp_schedule_most(const hp_strategy *s);
/* The steps of a role (plan/strategy/layout.h) of a legal strategy, in order, written to `step`; returns how
 * many. The parts of a position have the same steps. Pure. */
int hp_schedule(const hp_strategy *s, int role, hp_sched_step *step);
/* Micro-batches that a position holds, over all its model chunks, when its first backward pass begins. This
 * is also the most that it holds at any time; with several chunks it is a lower bound. */
int hp_schedule_in_flight(const hp_strategy *s, int position);

#endif
