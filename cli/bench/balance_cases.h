/* balance_cases.h - chains of layers on places of two or three speeds, for comparing balancers. */
#ifndef HP_BALANCE_CASES_H
#define HP_BALANCE_CASES_H

#include "base/status.h"
#include "sim/balance/balance.h"

/* A case from a network ("resnet50"), or from "chain:18": equal convolutions, as in SynthNet. */
typedef struct balance_case {
    const char *net;
    hp_chain chain;
} balance_case;

/* A unit is a layer that multiplies matrices, with everything up to the next one, in its forward pass at
 * batch 1. Half of the places are of the first class and half of the second; or a quarter each of the second
 * and the third. Times are those of an A100, a V100 and a T4 in the shipped cost table. Errors: HP_EUSAGE. */
hp_status balance_case_make(hp_arena *arena, const char *net, int places, int classes, balance_case *c,
                            hp_error *err);

#endif
