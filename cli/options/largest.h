/* largest.h - the largest size for which something holds, in few questions: doubling, then halving. */
#ifndef HP_LARGEST_H
#define HP_LARGEST_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef hp_status largest_test(void *self, int64_t n, bool *yes, hp_error *err);

/* The n in 1 .. most with yes for n and no for n + 1 (or n = most); 0: no for 1. Some sizes divide better
 * than others, so no need not be final: the next multiples of 2, 4, .. 64 above n are tried, too, and it goes
 * on from any of them. Calls `test` O(log most) times. */
hp_status largest_find(largest_test *test, void *self, int64_t most, int64_t *n, hp_error *err);

#endif
