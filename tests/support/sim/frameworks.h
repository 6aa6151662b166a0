/* frameworks.h - frameworks by name, for tests. */
#ifndef HP_TESTS_FRAMEWORKS_H
#define HP_TESTS_FRAMEWORKS_H

#include "costmodels/framework/framework.h"

/* Fails the test if there is none of that name; returns NULL for hplan itself. */
const hp_framework *framework_named(const char *name);

#endif
