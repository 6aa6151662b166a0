/* wild_strategy.h - anything that a user may type: most of it is illegal, in every possible way. */
#ifndef HP_TESTS_WILD_STRATEGY_H
#define HP_TESTS_WILD_STRATEGY_H

#include "tests/support/plan/random_net.h"

hp_strategy wild_strategy(dice *d);

#endif
