/* run_again.h - after a rank or a node was lost: does the run go on, and where? --restarts, --elastic. */
#ifndef HP_RUN_AGAIN_H
#define HP_RUN_AGAIN_H

#include "cli/run/run_fit.h"
#include "cli/launch/launch.h"
#include "cli/options/run_options.h"

/* What one attempt leaves to the next. */
typedef struct run_again {
    int64_t restarts;      /* made */
    run_fit fit;           /* as the plan is to be fitted */
    const char *hostfile;  /* nodes to use: the user's, or the one below */
    const char *avoid;     /* nodes that ranks died on again and again, separated by commas */
    char left[4160];       /* a hostfile of the nodes that are left; "": there is none */
    int dead_rank, deaths; /* the rank that died last, how many times in a row; -1: none */
} run_again;

run_again run_again_first(const run_options *o);
/* Decides after an attempt that ended in `lost`. true: another attempt follows, from the newest checkpoint.
 * Errors (*why): that of the attempt, or HP_EPLAN where no node is left. */
bool run_again_may(hp_arena *arena, run_options *o, run_again *a, const cli_lost *lost, hp_error *why);
void run_again_end(run_again *a);

#endif
