/* exec_ahead.h - reads the next step's data while this step computes. A thread fills rooms in the order in
 * which they were asked for. It serves one caller's thread and shares only the rooms with it. */
#ifndef HP_EXEC_AHEAD_H
#define HP_EXEC_AHEAD_H

#include "base/status.h"

#include <stdint.h>

typedef struct hp_ahead hp_ahead;

/* Fills room `item` with what step `iter` reads. */
typedef hp_status hp_ahead_fill(void *self, int32_t item, int32_t iter, hp_error *err);

/* Starts a thread that fills rooms 0 .. n-1. Errors: HP_EUNAVAIL, no thread. */
hp_status hp_ahead_start(int32_t n, hp_ahead_fill *fill, void *self, hp_ahead **ahead, hp_error *err);
/* Lets a fill under way end; what is asked for and not begun is forgotten. NULL is fine. */
void hp_ahead_stop(hp_ahead *a);

/* The room is free: it may be filled for step `iter`. */
void hp_ahead_ask(hp_ahead *a, int32_t item, int32_t iter);
/* Waits until the room holds what step `iter` reads, which need not have been asked for: then it is now.
 * Returns what the fill did. */
hp_status hp_ahead_wait(hp_ahead *a, int32_t item, int32_t iter, hp_error *err);

#endif
