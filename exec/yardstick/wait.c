/* wait.c - waits for an operation between steps; see wait.h. */
#include "exec/yardstick/wait.h"

#include "plan/base/clock.h"

#include <sched.h>

static hp_status stalled(const hp_yard_waiter *w, hp_error *err) {
    int32_t task = -1, iter = -1;
    const int blame = w->watch ? hp_watch_silent(w->watch, &task, &iter) : -1;
    if (blame < 0)
        return hp_fail(err, HP_ESTALL, "stalled: rank %d waited %.0f s for the other ranks to end a step",
                       w->comm->rank, w->limit_s);
    return hp_fail(
        err, HP_ESTALL,
        "stalled: rank %d gives no sign of life since step %d; rank %d waited %.0f s for the other "
        "ranks to end a step; is the process of rank %d stopped?",
        blame, iter + 1, w->comm->rank, w->limit_s, blame);
}

hp_status hp_yard_wait(const hp_yard_waiter *w, const hp_comm_op *op, hp_error *err) {
    int handle = -1;
    HP_TRY(w->comm->ops->start(w->comm, op, &handle, err));
    const double start_s = hp_now_s();
    for (bool done = false;;) {
        if (w->stop && *w->stop)
            return hp_fail(err, (hp_status)(128 + (int)*w->stop), "ended by signal %d", (int)*w->stop);
        HP_TRY(w->comm->ops->test(w->comm, handle, &done, err));
        if (done) return HP_OK;
        if (w->watch) hp_watch_beat(w->watch);
        if (hp_now_s() - start_s > w->limit_s) return stalled(w, err);
        sched_yield();
    }
}

hp_status hp_yard_line_up(const hp_yard_waiter *w, double *value, int n, hp_error *err) {
    for (int i = 0; i < n && w->comm->rank > 0; i++) value[i] = 0;
    const hp_comm_op op = {
        .kind = HP_COMM_COLLECTIVE, .group = HP_COMM_WORLD, .dtype = HP_F64, .count = n, .data = value};
    return hp_yard_wait(w, &op, err);
}
