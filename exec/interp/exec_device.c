/* exec_device.c - work under way on a device: the events that order it, and when it was done on the common
 * clock. */
#include "exec/interp/exec_inside.h"

#include <stdlib.h>

static int most_deps(const hp_role *r) {
    int most = 0;
    for (int t = 0; t < r->n_task; t++) {
        const int n = r->dep_first[t + 1] - r->dep_first[t];
        if (n > most) most = n;
    }
    return most;
}

hp_status interp_device_open(hp_interp *in, hp_error *err) {
    const hp_role *r = in->c.role;
    if (!in->device.streams) return HP_OK;
    in->device.event = interp_zeroed((size_t)r->n_task, sizeof *in->device.event);
    in->device.done_ns = interp_zeroed((size_t)r->n_task, sizeof *in->device.done_ns);
    in->device.after = interp_zeroed((size_t)most_deps(r), sizeof *in->device.after);
    HP_TRY(in->device.streams->event_new(in->c.memory, &in->device.zero, err));
    for (int t = 0; t < r->n_task; t++)
        if (in->queue[r->task[t].queue].ordered && !hp_task_on_host(r->task[t].op))
            HP_TRY(in->device.streams->event_new(in->c.memory, &in->device.event[t], err));
    return HP_OK;
}

void interp_device_close(hp_interp *in) {
    for (int t = 0; in->device.event && t < in->c.role->n_task; t++)
        if (in->device.event[t]) in->device.streams->event_free(in->c.memory, in->device.event[t]);
    if (in->device.zero) in->device.streams->event_free(in->c.memory, in->device.zero);
    free(in->device.event);
    free(in->device.done_ns);
    free(in->device.after);
}

hp_status interp_device_begin(hp_interp *in, const hp_step *step, hp_error *err) {
    if (!in->device.streams) return HP_OK;
    for (int t = 0; t < in->c.role->n_task; t++) in->device.done_ns[t] = 0;
    interp_segments_begin(in);
    HP_TRY(in->c.ops->begin(in->c.device, step, err));
    HP_TRY(in->device.streams->record(in->c.memory, in->device.zero, err));
    in->device.zero_ns = hp_clock_now_ns(in->c.clock);
    for (int q = 0; q < in->c.role->n_queue; q++) in->queue[q].last_ns = in->device.zero_ns;
    return HP_OK;
}

/* What is known to be done needs no event, and the compute queue's tasks follow each other on their stream.
 */
static bool needs_event(const hp_interp *in, int32_t before, int32_t task) {
    return in->device.event[before] && in->device.done_ns[before] == 0 &&
           (interp_task(in, before)->queue != 0 || interp_task(in, task)->queue != 0);
}

hp_order interp_order(hp_interp *in, int32_t task) {
    const hp_role *r = in->c.role;
    int n = 0;
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++)
        if (needs_event(in, r->dep[d], task)) in->device.after[n++] = in->device.event[r->dep[d]];
    return (hp_order){.n = n, .after = in->device.after, .done = in->device.event[task]};
}

/* A task begins once it is enqueued, the one before it in its queue is done, and so are its dependencies. */
static int64_t began_ns(const hp_interp *in, int32_t task, int64_t enqueued_ns) {
    const hp_role *r = in->c.role;
    int64_t t0_ns = enqueued_ns;
    if (in->queue[r->task[task].queue].last_ns > t0_ns) t0_ns = in->queue[r->task[task].queue].last_ns;
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++)
        if (in->device.done_ns[r->dep[d]] > t0_ns) t0_ns = in->device.done_ns[r->dep[d]];
    return t0_ns;
}

/* A query may report an event before one that it follows. */
static bool follows_all(const hp_interp *in, int32_t task) {
    const hp_role *r = in->c.role;
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++)
        if (in->device.event[r->dep[d]] && in->device.done_ns[r->dep[d]] == 0) return false;
    return true;
}

hp_status interp_event(hp_interp *in, int32_t task, bool *done, int64_t *t0_ns, int64_t *t1_ns,
                       hp_error *err) {
    double s = 0;
    HP_TRY(in->device.streams->query(in->c.memory, in->device.event[task], done, err));
    *done = *done && follows_all(in, task);
    if (!*done) return HP_OK;
    HP_TRY(in->device.streams->elapsed(in->c.memory, in->device.zero, in->device.event[task], &s, err));
    *t1_ns = in->device.zero_ns + (int64_t)(s * 1e9);
    const int64_t now_ns = hp_clock_now_ns(in->c.clock);
    if (*t1_ns > now_ns) *t1_ns = now_ns; /* the host saw the zero later than it was */
    *t0_ns = began_ns(in, task, *t0_ns);
    if (*t1_ns < *t0_ns) *t1_ns = *t0_ns; /* the two clocks' grains */
    in->device.done_ns[task] = *t1_ns;
    in->queue[interp_task(in, task)->queue].last_ns = *t1_ns;
    return HP_OK;
}
