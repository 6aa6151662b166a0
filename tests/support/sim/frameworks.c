/* frameworks.c - frameworks by name, for tests. */
#include "tests/support/sim/frameworks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const hp_framework *framework_named(const char *name) {
    const hp_framework *f = NULL;
    hp_error err;
    if (hp_framework_find(name, &f, &err) != HP_OK) fail_msg("%s", err.text);
    return f;
}
