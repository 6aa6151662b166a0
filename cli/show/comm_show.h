/* comm_show.h - the log of a run's messages and collectives, predicted beside measured. */
#ifndef HP_COMM_SHOW_H
#define HP_COMM_SHOW_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

/* Prints what compare --comm says of a run in `path`. Errors: HP_EDATA (no run, no plan), HP_EIO. */
hp_status comm_show(hp_arena *arena, const char *path, bool json, hp_error *err);

#endif
