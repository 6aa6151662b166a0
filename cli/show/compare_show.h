/* compare_show.h - what `compare --bits` and `compare --comm` print. */
#ifndef HP_COMPARE_SHOW_H
#define HP_COMPARE_SHOW_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

/* Compares the hashes of two runs: do they have the same bits, or where do they differ first? Returns
 * HP_DIFF, without a message, where they differ. Errors: HP_EDATA (other plans, no hashes), HP_EIO. */
hp_status bits_show(hp_arena *arena, const char *path_a, const char *path_b, bool json, hp_error *err);

/* Prints the log of a run's messages and collectives, predicted beside measured. Errors: HP_EDATA (no run, no
 * plan), HP_EIO. */
hp_status comm_show(hp_arena *arena, const char *path, bool json, hp_error *err);

#endif
