/* wait.c - waits for an operation between steps; see wait.h. */
#include "exec/yardstick/wait.h"

#include "base/clock.h"

#include <sched.h>

static hp_status stalled(const hp_yard_waiter *w, const hp_suspect *suspect, hp_error *err) {
    if (suspect->rank < 0)
        return hp_fail(err, HP_ESTALL, "stalled: rank %d waited %.0f s for the other ranks to end a step",
                       w->comm->rank, w->limit_s);
    return hp_fail(
        err, HP_ESTALL,
        "stalled: rank %d gives no sign of life since step %d: %s; rank %d waited %.0f s for the other "
        "ranks to end a step",
        suspect->rank, suspect->iter + 1, hp_suspect_words(suspect), w->comm->rank, w->limit_s);
}

/* Without a watch, nothing is known about what other ranks do. */
static hp_waited judge(const hp_yard_waiter *w, double waited_s, hp_suspect *suspect) {
    if (w->watch) return hp_watch_wait(w->watch, waited_s, w->limit_s, suspect);
    return waited_s > w->limit_s ? HP_WAITED_STALLED : HP_WAITED_WAIT;
}

hp_status hp_yard_wait(const hp_yard_waiter *w, const hp_comm_op *op, hp_error *err) {
    int handle = -1;
    HP_TRY(w->comm->ops->start(w->comm, op, &handle, err));
    double start_s = hp_now_s();
    for (bool done = false;;) {
        hp_suspect suspect = {.rank = -1};
        if (w->stop && *w->stop)
            return hp_fail(err, (hp_status)(128 + (int)*w->stop), "ended by signal %d", (int)*w->stop);
        HP_TRY(w->comm->ops->test(w->comm, handle, &done, err));
        if (done) return HP_OK;
        const hp_waited v = judge(w, hp_now_s() - start_s, &suspect);
        if (v == HP_WAITED_STALLED) return stalled(w, &suspect, err);
        if (v == HP_WAITED_AGAIN) start_s = hp_now_s();
        sched_yield();
    }
}

hp_status hp_yard_line_up(const hp_yard_waiter *w, double *value, int n, hp_error *err) {
    for (int i = 0; i < n && w->comm->rank > 0; i++) value[i] = 0;
    const hp_comm_op op = {
        .kind = HP_COMM_COLLECTIVE, .group = HP_COMM_WORLD, .dtype = HP_F64, .count = n, .data = value};
    return hp_yard_wait(w, &op, err);
}
