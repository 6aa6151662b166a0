/* damage.h - a program with a few words of its arrays changed at random, as in a damaged or forged file. */
#ifndef HP_TESTS_DAMAGE_H
#define HP_TESTS_DAMAGE_H

#include "tests/support/plan/seed_faults.h"

#include <stddef.h>

/* v->p becomes a copy of `whole` with one to three words changed. */
void damage(victim *v, const hp_program *whole);

#endif
