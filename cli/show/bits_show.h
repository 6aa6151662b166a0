/* bits_show.h - compare --bits: whether two runs of a plan have the same bits, or where they differ first. */
#ifndef HP_BITS_SHOW_H
#define HP_BITS_SHOW_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

/* Compares the hashes of two runs. Returns HP_DIFF, without a message, where they differ. Errors: HP_EDATA
 * (other plans, no hashes), HP_EIO. */
hp_status bits_show(hp_arena *arena, const char *path_a, const char *path_b, bool json, hp_error *err);

#endif
