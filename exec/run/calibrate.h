/* calibrate.h - scales for an int8 run on synthetic images, found on the spot. */
#ifndef HP_EXEC_CALIBRATE_H
#define HP_EXEC_CALIBRATE_H

#include "exec/comm/comm.h"
#include "exec/data/weights/constants.h"
#include "plan/store/store.h"

/* Runs the float program of the plan's network on its device, here, on a few images of random pixels (at most
 * 256 x 256 where the network works at another size; linear layers that only fit the plan's are
 * drawn: nothing behind them is quantised), and quantises the tensors of `c` by the
 * ranges it sees. c: constants of the plan's graph, of a float source. Collective: no; the outcome depends on
 * plan and weights, and in its last bits on the processor. Errors: what the device reports; HP_EDATA (the
 * network works at a large size only). */
hp_status hp_calibrate_small(const hp_plan *plan, hp_constants *c, hp_error *err);

/* Everybody takes rank 0's quantisation, bit for bit. Collective: over all ranks. */
hp_status hp_qparams_share(hp_constants *c, hp_comm *comm, hp_error *err);

#endif
