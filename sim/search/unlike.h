/* unlike.h - the devices that a strategy's stages run on, if a machine's devices differ. */
#ifndef HP_UNLIKE_H
#define HP_UNLIKE_H

#include "machines/machine.h"
#include "plan/strategy/layout.h"

/* For a position of the pipeline and each device class: speed of the slowest device that holds one of its
 * ranks, as a fraction of the class's speed; 0: no device of the class holds one. */
typedef struct hp_unlike_place {
    double speed[1 + HP_MORE_CLASSES];
} hp_unlike_place;

/* Covers all replicas. A rank that mirrors another position (GEMS) counts only for its own. Cost: linear in
 * ranks. */
void hp_unlike_places(const hp_strategy *s, const hp_machine *m, hp_unlike_place place[HP_MAX_STAGES]);

#endif
