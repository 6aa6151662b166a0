/* wait.h - waits for an operation between steps, as the interpreter waits within them: with a heart beat, a
 * deadline, and attention to signals. */
#ifndef HP_WAIT_H
#define HP_WAIT_H

#include "exec/comm/comm.h"
#include "exec/interp/watchdog.h"

#include <signal.h>

typedef struct hp_yard_waiter {
    hp_comm *comm;
    hp_watch *watch;                   /* NULL: none */
    const volatile sig_atomic_t *stop; /* a signal's number after it came; may be NULL */
    double limit_s;                    /* longest wait */
} hp_yard_waiter;

/* Errors: HP_ESTALL naming the silent rank, 128+n after a signal, the communicator's. */
hp_status hp_yard_wait(const hp_yard_waiter *w, const hp_comm_op *op, hp_error *err);

/* Waits for all ranks and sends them rank 0's n values. Collective: over all ranks. */
hp_status hp_yard_line_up(const hp_yard_waiter *w, double *value, int n, hp_error *err);

#endif
