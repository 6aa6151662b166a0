/* loop.c - the loop of program.h: one compute queue on a device, every other queue non-blocking beside it.
 */
#include "exec/interp/inside.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* --- construction --- */

void *interp_zeroed(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    HP_ASSERT(p);
    return p;
}

static void link_successors(hp_interp *in) {
    const hp_role *r = in->c.role;
    in->n_dep = interp_zeroed((size_t)r->n_task, sizeof *in->n_dep);
    in->waits = interp_zeroed((size_t)r->n_task, sizeof *in->waits);
    in->succ_first = interp_zeroed((size_t)r->n_task + 1, sizeof *in->succ_first);
    in->succ = interp_zeroed((size_t)r->n_dep, sizeof *in->succ);
    for (int t = 0; t < r->n_task; t++) {
        in->n_dep[t] = r->dep_first[t + 1] - r->dep_first[t];
        for (int d = r->dep_first[t]; d < r->dep_first[t + 1]; d++) in->succ_first[r->dep[d] + 1]++;
    }
    for (int t = 0; t < r->n_task; t++) in->succ_first[t + 1] += in->succ_first[t];
    int32_t *fill = interp_zeroed((size_t)r->n_task, sizeof *fill);
    for (int t = 0; t < r->n_task; t++)
        for (int d = r->dep_first[t]; d < r->dep_first[t + 1]; d++) {
            const int32_t before = r->dep[d];
            in->succ[in->succ_first[before] + fill[before]++] = t;
        }
    free(fill);
}

static bool ordered(const hp_interp *in, const hp_queue *q) {
    if (!in->streams) return false;
    if (q->kind == HP_QUEUE_COMPUTE) return true;
    return in->c.comm->ops->ordered && in->c.comm->ops->ordered(in->c.comm, q->backend);
}

static void fill_queues(hp_interp *in) {
    const hp_role *r = in->c.role;
    in->queue = interp_zeroed((size_t)r->n_queue, sizeof *in->queue);
    for (int t = 0; t < r->n_task; t++) in->queue[r->task[t].queue].n++;
    for (int q = 0; q < r->n_queue; q++) {
        in->queue[q].task = interp_zeroed((size_t)in->queue[q].n, sizeof(int32_t));
        in->queue[q].n = 0;
        in->queue[q].ordered = ordered(in, &r->queue[q]);
    }
    for (int t = 0; t < r->n_task; t++) {
        interp_queue *q = &in->queue[r->task[t].queue];
        q->task[q->n++] = t;
    }
}

static int64_t buffer_end(const hp_buffer *b) {
    return b->bytes > 0 ? b->offset + b->bytes : 0;
}

static void measure_extents(hp_interp *in) {
    const hp_role *r = in->c.role;
    in->extent = interp_zeroed((size_t)r->n_task, sizeof *in->extent);
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
    in->streams = config->ops->memory ? config->ops->memory->streams : NULL;
    link_successors(in);
    fill_queues(in);
    measure_extents(in);
    in->flight = interp_zeroed((size_t)in->c.role->n_task, sizeof *in->flight);
    hp_status s = interp_device_open(in, err);
    if (s == HP_OK) s = interp_data_open(in, err);
    if (s == HP_OK) s = interp_zero_gradients(in, err);
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
    for (int q = 0; q < in->c.role->n_queue; q++) free(in->queue[q].task);
    free(in->n_dep);
    free(in->waits);
    free(in->succ_first);
    free(in->succ);
    free(in->queue);
    free(in->extent);
    free(in->flight);
    free(in);
}

/* --- dependencies --- */

static const interp_queue *queue_of(const hp_interp *in, int32_t task) {
    return &in->queue[interp_task(in, task)->queue];
}

/* Is it enough for `task` that a task before it was given? What a store reads must be there. */
static bool follows_events(const hp_interp *in, int32_t before, int32_t task) {
    return queue_of(in, before)->ordered && queue_of(in, task)->ordered &&
           interp_task(in, task)->op != HP_TASK_STORE;
}

static void release(hp_interp *in, int32_t task, bool by_event) {
    for (int s = in->succ_first[task]; s < in->succ_first[task + 1]; s++)
        if (follows_events(in, task, in->succ[s]) == by_event) in->waits[in->succ[s]]--;
}

void interp_given(hp_interp *in, int32_t task) {
    release(in, task, true);
    in->idle_since_ns = 0;
}

void interp_flies(hp_interp *in, int32_t task, int64_t t0_ns) {
    HP_ASSERT(in->waits[task] == 0);
    in->flight[in->n_flight++] = (interp_flight){.task = task, .handle = -1, .t0_ns = t0_ns};
    in->n_computing++;
    interp_given(in, task);
}

void interp_done(hp_interp *in, int32_t task, int64_t t0_ns, int64_t t1_ns) {
    release(in, task, false);
    if (in->extent[task] > in->peak_bytes) in->peak_bytes = in->extent[task];
    if (in->c.ring)
        hp_ring_span(in->c.ring, (hp_span){.task = task, .iter = in->iter, .t0_ns = t0_ns, .t1_ns = t1_ns});
    in->left--;
    in->idle_since_ns = 0;
    if (interp_task(in, task)->op == HP_TASK_LOAD) interp_loaded(in);
}

/* --- one step --- */

static hp_status run_here(hp_interp *in, int32_t task, const hp_step *step, hp_error *err) {
    const int op = interp_task(in, task)->op;
    const int64_t t0_ns = hp_clock_now_ns(in->c.clock);
    if (op == HP_TASK_LOAD)
        HP_TRY(interp_load(in, task, err));
    else if (op == HP_TASK_STORE)
        HP_TRY(interp_store(in, task, err));
    else
        HP_TRY(in->c.ops->run(in->c.device, task, step, err));
    interp_done(in, task, t0_ns, hp_clock_now_ns(in->c.clock));
    const bool seen = in->c.observe && (op == HP_TASK_FWD || op == HP_TASK_LOAD);
    return seen ? in->c.observe(in->c.observer, task, err) : HP_OK;
}

static hp_status enqueue(hp_interp *in, int32_t task, hp_error *err) {
    const int op = interp_task(in, task)->op;
    const int64_t t0_ns = hp_clock_now_ns(in->c.clock);
    if (op == HP_TASK_STORE) { /* by the host */
        HP_TRY(interp_store(in, task, err));
        interp_given(in, task);
        interp_done(in, task, t0_ns, in->done_ns[task] = hp_clock_now_ns(in->c.clock));
        return HP_OK;
    }
    if (op == HP_TASK_LOAD) {
        HP_TRY(interp_load(in, task, err));
    } else {
        const hp_order order = interp_order(in, task);
        HP_TRY(in->c.ops->enqueue(in->c.device, task, &order, err));
    }
    interp_flies(in, task, t0_ns);
    return HP_OK;
}

/* A store is the host's work, and yet done behind all compute tasks before it. */
static bool may_run(const hp_interp *in, const interp_queue *compute) {
    if (compute->next == compute->n) return false;
    const int32_t task = compute->task[compute->next];
    return in->waits[task] == 0 && (interp_task(in, task)->op != HP_TASK_STORE || in->n_computing == 0);
}

static hp_status run_next(hp_interp *in, const hp_step *step, hp_error *err) {
    interp_queue *compute = &in->queue[0];
    const int32_t task = compute->task[compute->next];
    int32_t n = 0;
    hp_watch_note(in->c.watch, task, in->iter);
    HP_TRY(interp_segment_give(in, &n, err));
    compute->next += n > 0 ? n : 1;
    if (n > 0) return HP_OK;
    return compute->ordered ? enqueue(in, task, err) : run_here(in, task, step, err);
}

static hp_status wait(hp_interp *in, hp_error *err) {
    const int64_t now_ns = hp_clock_now_ns(in->c.clock);
    hp_watch_beat(in->c.watch);
    if (in->idle_since_ns == 0) in->idle_since_ns = now_ns;
    if ((double)(now_ns - in->idle_since_ns) > in->limit_s * 1e9) return interp_stalled(in, err);
    if (in->c.yield) sched_yield();
    return HP_OK;
}

static hp_status ended(const hp_interp *in, int signal, hp_error *err) {
    char when[40];
    return hp_fail(err, (hp_status)(128 + signal), "ended by signal %d in %s", signal,
                   interp_when(in->iter, when));
}

static hp_status reset(hp_interp *in, const hp_step *step, int32_t iter, double limit_s, hp_error *err) {
    const hp_role *r = in->c.role;
    memcpy(in->waits, in->n_dep, sizeof *in->waits * (size_t)r->n_task);
    for (int q = 0; q < r->n_queue; q++) in->queue[q].next = 0;
    in->left = r->n_task;
    in->n_flight = in->n_computing = in->n_loads = 0;
    for (int t = 0; t < r->n_task; t++) in->n_loads += r->task[t].op == HP_TASK_LOAD;
    in->iter = iter;
    in->idle_since_ns = 0;
    in->limit_s = limit_s;
    HP_TRY(interp_zero_metric(in, err));
    return interp_device_begin(in, step, err);
}

hp_status hp_interp_step(hp_interp *in, const hp_step *step, int32_t iter, double limit_s, hp_error *err) {
    HP_TRY(reset(in, step, iter, limit_s, err));
    while (in->left > 0) {
        if (in->c.stop && *in->c.stop) return ended(in, (int)*in->c.stop, err);
        HP_TRY(interp_progress(in, err));
        if (may_run(in, &in->queue[0]))
            HP_TRY(run_next(in, step, err));
        else if (in->left > 0)
            HP_TRY(wait(in, err));
    }
    in->n_steps++;
    return interp_take_metric(in, err);
}

int64_t hp_interp_peak_bytes(const hp_interp *in) {
    return in->peak_bytes;
}

const double *hp_interp_metric(const hp_interp *in) {
    return in->metric;
}
