/* run_calibrate.h - qparams for an int8 run on synthetic images, calibrated when the run starts. */
#ifndef HP_RUN_CALIBRATE_H
#define HP_RUN_CALIBRATE_H

#include "exec/comm/comm.h"
#include "exec/data/weights/constants.h"
#include "plan/store/store.h"

/* Runs the float program of the plan's network on this rank's host over a few images of random pixels (at
 * most 256 x 256 if the network works at another size; linear layers that only fit the plan's size are drawn:
 * nothing after them is quantised), and sets the qparams of `c` from the ranges it observes. c: constants of
 * the plan's graph, with a float source. Collective: no; the result depends on plan and weights, and in its
 * last bits on the processor. Errors: those of the device; HP_EDATA (the network only works at a large
 * size). */
hp_status hp_calibrate_small(const hp_plan *plan, hp_constants *c, hp_error *err);

/* Broadcasts rank 0's qparams, bit for bit. Collective: over all ranks. */
hp_status hp_qparams_broadcast(hp_constants *c, hp_comm *comm, hp_error *err);

#endif
