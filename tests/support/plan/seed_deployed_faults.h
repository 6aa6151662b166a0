/* seed_deployed_faults.h - faults that only programs of deployed networks can have; see seed_faults.h. */
#ifndef HP_TESTS_SEED_DEPLOYED_FAULTS_H
#define HP_TESTS_SEED_DEPLOYED_FAULTS_H

#include "tests/support/plan/seed_faults.h"

enum { DEPLOYED_FAULTS = 40 };

extern const struct fault deployed_faults[DEPLOYED_FAULTS];

#endif
