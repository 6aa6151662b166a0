/* wild_strategy.h - whatever a user may type: most of it is illegal, in every way there is. */
#ifndef HP_TESTS_WILD_STRATEGY_H
#define HP_TESTS_WILD_STRATEGY_H

#include "tests/support/plan/random_net.h"

hp_strategy wild_strategy(dice *d);

#endif
