/* dry_run.h - what `hplan run` would start, as a command for a shell. */
#ifndef HP_DRY_RUN_H
#define HP_DRY_RUN_H

#include "cli/launch/launch.h"
#include "plan/store/store.h"

/* Prints it, with the environment that the ranks would get; one JSON object with `json`. Errors: cli_launch_run's before
 * it starts anything. */
hp_status dry_run_show(const hp_plan *plan, const cli_launch *l, const char *trace, bool json, hp_error *err);

#endif
