/* layers.c - layers of a network by name, for tests. */
#include "tests/support/plan/built/layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

int layer_named(const hp_graph *g, const char *name) {
    for (int l = 0; l < g->n_layer; l++)
        if (strcmp(g->layer[l].name, name) == 0) return l;
    fail_msg("no layer %s", name);
    return -1;
}
