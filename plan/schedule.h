/* schedule.h - the order in which a pipeline stage runs its forward and backward passes. */
#ifndef HP_SCHEDULE_H
#define HP_SCHEDULE_H

#include "plan/strategy.h"

typedef struct hp_sched_step {
    int32_t backward; /* 0: forward */
    int32_t chunk, micro;
} hp_sched_step;

/* The steps of rank position `stage`: 2 * micro * chunks of them, written to `step`. Pure. */
void hp_schedule(const hp_strategy *s, int stage, hp_sched_step *step);

#endif
