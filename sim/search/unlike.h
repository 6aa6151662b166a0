/* unlike.h - what a strategy's stages run on, where a machine's devices are not all alike. */
#ifndef HP_UNLIKE_H
#define HP_UNLIKE_H

#include "machines/machine.h"
#include "plan/strategy/layout.h"

/* Of a position of the pipeline: per class of devices, how fast the slowest of those is that hold one of its ranks, as a share
 * of the class's speed; 0: none of the class does. */
typedef struct hp_unlike_place {
    double speed[1 + HP_MORE_CLASSES];
} hp_unlike_place;

/* In all replicas; a rank that mirrors another position (GEMS) counts for its own alone. Cost: linear in ranks. */
void hp_unlike_places(const hp_strategy *s, const hp_machine *m, hp_unlike_place place[HP_MAX_STAGES]);

#endif
