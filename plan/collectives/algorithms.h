/* algorithms.h - inside of collectives: what each file defines. */
#ifndef HP_COLLECTIVES_ALGORITHMS_H
#define HP_COLLECTIVES_ALGORITHMS_H

#include "plan/collectives/collective.h"

extern const hp_collective_ops hp_collective_doubling, hp_collective_ring;

#endif
