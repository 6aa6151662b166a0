/* follow_fix.h - does to a strategy what a refusal's fix says, as a user would. */
#ifndef HP_TESTS_FOLLOW_FIX_H
#define HP_TESTS_FOLLOW_FIX_H

#include "plan/strategy/strategy.h"

#include <string.h>

typedef struct question {
    hp_strategy s;
    int64_t batch;
    int devices;
} question;

/* False when the fix is none of the known forms. */
bool follow_fix(const char *fix, question *q);

#endif
