/* loop.c - the program on a device: one compute queue, every other queue non-blocking beside it.
 *
 * The steps are those of sim/engine/interp.c under the same names: a rank makes progress (starts transfers
 * that are ready, finishes those that ended), starts the next compute task, and completes tasks, which
 * releases what depends on them. There time moves on to the next event; here the rank waits. */
#include "exec/interp/exec_inside.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* --- construction --- */

void *interp_zeroed(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    HP_ASSERT(p);
    return p;
}

static bool ordered(const hp_interp *in, const hp_queue *q) {
    if (!in->device.streams) return false;
    if (q->kind == HP_QUEUE_COMPUTE) return true;
    return in->c.comm->ops->ordered && in->c.comm->ops->ordered(in->c.comm, q->backend);
}

static void index_program(hp_interp *in) {
    const hp_role *r = in->c.role;
    in->tables = hp_arena_new();
    hp_wire_role(in->tables, r, &in->wired);
    hp_ready_init(in->tables, &in->wired, &in->ready);
    in->queue = HP_NEW(in->tables, interp_queue, r->n_queue);
    for (int q = 0; q < r->n_queue; q++) in->queue[q].ordered = ordered(in, &r->queue[q]);
    in->flight = HP_NEW(in->tables, interp_flight, r->n_task);
    in->extent = HP_NEW(in->tables, int64_t, r->n_task);
    in->sent = HP_NEW(in->tables, int64_t, r->n_task);
}

static int64_t buffer_end(const hp_buffer *b) {
    return b->bytes > 0 ? b->offset + b->bytes : 0;
}

static void measure_extents(hp_interp *in) {
    const hp_role *r = in->c.role;
    for (int t = 0; t < r->n_task; t++) {
        int32_t uses[HP_MAX_USES];
        for (int n = hp_task_uses(r, t, uses); n-- > 0;)
            if (buffer_end(&r->buffer[uses[n]]) > in->extent[t])
                in->extent[t] = buffer_end(&r->buffer[uses[n]]);
    }
    for (int b = 0; b < HP_BUF_FIXED && b < r->n_buffer;
         b++) /* set before the first step, used all the time */
        if (buffer_end(&r->buffer[b]) > in->peak_bytes) in->peak_bytes = buffer_end(&r->buffer[b]);
}

hp_status hp_interp_new(const hp_interp_config *config, hp_interp **interp, hp_error *err) {
    hp_interp *in = interp_zeroed(1, sizeof *in);
    in->c = *config;
    in->device.streams = config->memory->ops->streams;
    index_program(in);
    measure_extents(in);
    hp_status s = interp_device_open(in, err);
    if (s == HP_OK) s = interp_data_open(in, err);
    if (s == HP_OK) s = interp_zero_gradients(in, err);
    if (s == HP_OK) s = interp_zero_carried(in, err);
    interp_segments_open(in);
    *interp = s == HP_OK ? in : NULL;
    if (s != HP_OK) hp_interp_free(in);
    return s;
}

void hp_interp_free(hp_interp *in) {
    if (!in) return;
    interp_data_close(in);
    interp_segments_close(in);
    interp_device_close(in);
    hp_arena_free(in->tables);
    free(in);
}

/* --- dependencies --- */

static const interp_queue *queue_of(const hp_interp *in, int32_t task) {
    return &in->queue[interp_task(in, task)->queue];
}

/* May `task` start once a task that it depends on has started? What a store reads must be there. */
static bool follows_events(const hp_interp *in, int32_t before, int32_t task) {
    return queue_of(in, before)->ordered && queue_of(in, task)->ordered &&
           !hp_task_on_host(interp_task(in, before)->op) && !hp_task_on_host(interp_task(in, task)->op);
}

static void release(hp_interp *in, int32_t task, bool by_event) {
    const hp_wired_role *w = &in->wired;
    for (int s = w->succ_first[task]; s < w->succ_first[task + 1]; s++)
        if (follows_events(in, task, w->succ[s]) == by_event) hp_ready_meet(&in->ready, w->succ[s]);
}

void interp_started(hp_interp *in, int32_t task) {
    release(in, task, true);
    in->idle_since_ns = 0;
}

void interp_under_way(hp_interp *in, int32_t task, int64_t t0_ns) {
    HP_ASSERT(in->ready.wait[task] == 0);
    in->flight[in->n_flight++] = (interp_flight){.task = task, .handle = -1, .t0_ns = t0_ns};
    in->n_computing++;
    interp_started(in, task);
}

void interp_complete(hp_interp *in, int32_t task, int64_t t0_ns, int64_t t1_ns) {
    release(in, task, false);
    if (in->extent[task] > in->peak_bytes) in->peak_bytes = in->extent[task];
    if (in->c.ring)
        hp_ring_span(in->c.ring, (hp_span){.task = task, .iter = in->iter, .t0_ns = t0_ns, .t1_ns = t1_ns});
    in->left--;
    in->idle_since_ns = 0;
    if (interp_task(in, task)->op == HP_TASK_LOAD) interp_loaded(in);
}

/* --- one step --- */

static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Burns this thread's CPU time, as computing would: ranks that share a core take turns. */
static void keep_busy(const hp_interp *in, int64_t ns) {
    const int64_t end_ns = cpu_ns() + ns;
    while (cpu_ns() < end_ns && !(in->c.stop && *in->c.stop)) hp_watch_beat(in->c.watch);
}

static hp_status do_on_host(hp_interp *in, int32_t task, hp_error *err) {
    const hp_task *t = interp_task(in, task);
    if (t->op == HP_TASK_STORE) return interp_store(in, task, err);
    keep_busy(in, t->dummy.ns);
    return HP_OK;
}

static hp_status compute_here(hp_interp *in, int32_t task, const hp_step *step, hp_error *err) {
    const int op = interp_task(in, task)->op;
    const int64_t t0_ns = hp_clock_now_ns(in->c.clock);
    if (op == HP_TASK_LOAD)
        HP_TRY(interp_load(in, task, err));
    else if (hp_task_on_host(op))
        HP_TRY(do_on_host(in, task, err));
    else
        HP_TRY(in->c.ops->run(in->c.device, task, step, err));
    interp_complete(in, task, t0_ns, hp_clock_now_ns(in->c.clock));
    return in->c.observe ? in->c.observe(in->c.observer, task, err) : HP_OK;
}

static hp_status enqueue(hp_interp *in, int32_t task, hp_error *err) {
    const int op = interp_task(in, task)->op;
    const int64_t t0_ns = hp_clock_now_ns(in->c.clock);
    if (hp_task_on_host(op)) {
        HP_TRY(do_on_host(in, task, err));
        interp_started(in, task);
        interp_complete(in, task, t0_ns, in->device.done_ns[task] = hp_clock_now_ns(in->c.clock));
        return HP_OK;
    }
    if (op == HP_TASK_LOAD) {
        HP_TRY(interp_load(in, task, err));
    } else {
        const hp_order order = interp_order(in, task);
        HP_TRY(in->c.ops->enqueue(in->c.device, task, &order, err));
    }
    interp_under_way(in, task, t0_ns);
    return HP_OK;
}

/* Host tasks, too, wait for all compute tasks before them. */
static bool may_compute(const hp_interp *in) {
    const int task = hp_ready_task(&in->ready, 0);
    return task >= 0 && (!hp_task_on_host(interp_task(in, task)->op) || in->n_computing == 0);
}

static hp_status start_compute(hp_interp *in, const hp_step *step, hp_error *err) {
    const int32_t task = hp_ready_head(&in->ready, 0);
    int32_t n = 0;
    hp_watch_note(in->c.watch, task, in->iter);
    HP_TRY(interp_segment_launch(in, &n, err));
    if (n > 0) return HP_OK;
    hp_ready_start(&in->ready, 0);
    return in->queue[0].ordered ? enqueue(in, task, err) : compute_here(in, task, step, err);
}

static hp_status wait(hp_interp *in, hp_error *err) {
    const int64_t now_ns = hp_clock_now_ns(in->c.clock);
    hp_suspect suspect;
    if (in->idle_since_ns == 0) in->idle_since_ns = now_ns;
    const double waited_s = 1e-9 * (double)(now_ns - in->idle_since_ns);
    switch (hp_watch_wait(in->c.watch, waited_s, in->limit_s, &suspect)) {
    case HP_WAITED_WAIT:
        break;
    case HP_WAITED_AGAIN:
        in->idle_since_ns = 0;
        break;
    case HP_WAITED_STALLED:
        return interp_stalled(in, &suspect, err);
    }
    if (in->c.yield) sched_yield();
    return HP_OK;
}

static hp_status ended(const hp_interp *in, int signal, hp_error *err) {
    char when[40];
    return hp_fail(err, (hp_status)(128 + signal), "ended by signal %d in %s", signal,
                   interp_when(in->iter, when));
}

static hp_status begin_step(hp_interp *in, const hp_step *step, int32_t iter, double limit_s, hp_error *err) {
    const hp_role *r = in->c.role;
    hp_ready_reset(&in->ready);
    in->left = r->n_task;
    in->n_flight = in->n_computing = in->loads.left = 0;
    for (int t = 0; t < r->n_task; t++) in->loads.left += r->task[t].op == HP_TASK_LOAD;
    in->iter = iter;
    in->idle_since_ns = 0;
    in->limit_s = limit_s;
    HP_TRY(interp_start_metric(in, step, err));
    return interp_device_begin(in, step, err);
}

hp_status hp_interp_step(hp_interp *in, const hp_step *step, int32_t iter, double limit_s, hp_error *err) {
    HP_TRY(begin_step(in, step, iter, limit_s, err));
    while (in->left > 0) {
        if (in->c.stop && *in->c.stop) return ended(in, (int)*in->c.stop, err);
        HP_TRY(interp_progress(in, err));
        if (may_compute(in))
            HP_TRY(start_compute(in, step, err));
        else if (in->left > 0)
            HP_TRY(wait(in, err));
    }
    in->graphs.n_steps++;
    return interp_read_metric(in, err);
}

hp_status hp_interp_again(hp_interp *in, const hp_step *step, int32_t iter, double limit_s,
                          hp_status (*observe)(void *observer, int32_t task, hp_error *err), void *observer,
                          hp_error *err) {
    const hp_interp_config c = in->c;
    HP_ASSERT(!in->device.streams);
    in->c.observe = observe;
    in->c.observer = observer;
    in->c.ring = NULL;
    const hp_status s = hp_interp_step(in, step, iter, limit_s, err);
    in->c = c;
    in->graphs.n_steps--;
    return s;
}

const int64_t *hp_interp_sent_bytes(const hp_interp *in) {
    return in->sent;
}

int64_t hp_interp_peak_bytes(const hp_interp *in) {
    return in->peak_bytes;
}

const double *hp_interp_metric(const hp_interp *in) {
    return in->metric;
}
