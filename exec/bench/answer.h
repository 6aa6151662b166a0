/* answer.h - inside of bench: the lines that rank 0 prints. */
#ifndef HP_ANSWER_H
#define HP_ANSWER_H

#include "exec/bench/turn.h"

#include <jansson.h>

/* This rank's results for one series at one size. sample[turns * n] per place and mode; n = 1 or the
 * iterations per turn. */
typedef struct hp_bench_row {
    double wrong[HP_BENCH_PLACES];
    double *sample[HP_BENCH_PLACES][HP_BENCH_MODES];
} hp_bench_row;

/* Prints an object and releases it. Errors: HP_EIO. */
hp_status hp_bench_print(json_t *o, hp_error *err);

/* Prints the hosts and processes that take part. Collective: over all ranks. Errors: HP_EIO,
 * the communicator's. */
hp_status hp_bench_print_start(const hp_yard_waiter *w, hp_error *err);
hp_status hp_bench_print_progress(const hp_yard_waiter *w, int64_t done, int64_t of, hp_error *err);
/* Prints a row's times in each mode. Collective: over all ranks. Errors: as hp_yard_wait; HP_EIO. */
hp_status hp_bench_print_row(const hp_bench_room *room, const hp_bench_run *s, int64_t count,
                             const hp_bench_row *row, hp_error *err);

#endif
