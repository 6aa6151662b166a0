/* balance_cases.h - chains of layers over places of two and three speeds, for balancers to be compared on. */
#ifndef HP_BALANCE_CASES_H
#define HP_BALANCE_CASES_H

#include "base/status.h"
#include "sim/balance/balance.h"

/* Of a network ("resnet50"), or "chain:18", convolutions of one shape, as SynthNet is built. */
typedef struct balance_case {
    const char *net;
    hp_chain chain;
} balance_case;

/* A unit is a layer that multiplies matrices with what follows it up to the next, in its forward pass at batch 1; half of
 * the places are of the first class, the others of the second, or a quarter each of the second and the third: what an A100, a
 * V100 and a T4 take by the shipped cost table. Errors: HP_EUSAGE. */
hp_status balance_case_make(hp_arena *arena, const char *net, int places, int classes, balance_case *c,
                            hp_error *err);

#endif
