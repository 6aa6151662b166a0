/* reach.h - which nodes of a hostfile can be started on: those that remain of a run's nodes. */
#ifndef HP_REACH_H
#define HP_REACH_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

typedef struct reached_nodes {
    int n;            /* number of nodes that answered and are not to be avoided */
    const char *lost; /* the others, separated by commas; "": none. Lives in the arena */
} reached_nodes;

/* Starts `true` on each node of the hostfile, as a run would start its ranks there (6 s for one that is cut
 * off), and writes the lines of the nodes that answered to `out`. avoid: nodes that are not tried, separated
 * by commas. Errors: HP_EDATA, HP_EIO. */
hp_status reach_nodes(hp_arena *arena, const char *hostfile, const char *avoid, const char *out,
                      reached_nodes *r, hp_error *err);

#endif
