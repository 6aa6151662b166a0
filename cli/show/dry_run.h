/* dry_run.h - what `hplan run` would start, as a command for a shell. */
#ifndef HP_DRY_RUN_H
#define HP_DRY_RUN_H

#include "cli/launch/launch.h"
#include "plan/store/store.h"

/* Prints the command with the environment of its ranks; one JSON object with `json`. Errors: those of
 * cli_launch_run before it starts anything. */
hp_status dry_run_show(const hp_plan *plan, const cli_launch *l, const char *trace, bool json, hp_error *err);

#endif
