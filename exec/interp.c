/* interp.c - the loop of program.h: one compute queue on a device, every other queue non-blocking beside it.
 */
#include "exec/interp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

typedef struct interp_queue { /* tasks of one queue, in order */
    int32_t n, next;
    int32_t *task;
} interp_queue;

typedef struct interp_flight { /* a started message or collective */
    int32_t task;
    int handle;
    int64_t t0_ns;
} interp_flight;

struct hp_interp {
    hp_interp_config c;
    int32_t *n_dep, *waits;     /* per task: dependencies in all, and not yet done in this step */
    int32_t *succ_first, *succ; /* CSR: who waits for a task */
    interp_queue *queue;
    int32_t n_flight, left;
    interp_flight *flight;
    int64_t *extent; /* per task: end of the highest buffer among its operands */
    int64_t peak_bytes;
    int32_t iter;
    int64_t idle_since_ns; /* 0: not idle */
    double limit_s;
};

/* --- construction --- */

static void *zeroed(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    HP_ASSERT(p);
    return p;
}

static void link_successors(hp_interp *in) {
    const hp_role *r = in->c.role;
    in->n_dep = zeroed((size_t)r->n_task, sizeof *in->n_dep);
    in->waits = zeroed((size_t)r->n_task, sizeof *in->waits);
    in->succ_first = zeroed((size_t)r->n_task + 1, sizeof *in->succ_first);
    in->succ = zeroed((size_t)r->n_dep, sizeof *in->succ);
    for (int t = 0; t < r->n_task; t++) {
        in->n_dep[t] = r->dep_first[t + 1] - r->dep_first[t];
        for (int d = r->dep_first[t]; d < r->dep_first[t + 1]; d++) in->succ_first[r->dep[d] + 1]++;
    }
    for (int t = 0; t < r->n_task; t++) in->succ_first[t + 1] += in->succ_first[t];
    int32_t *fill = zeroed((size_t)r->n_task, sizeof *fill);
    for (int t = 0; t < r->n_task; t++)
        for (int d = r->dep_first[t]; d < r->dep_first[t + 1]; d++) {
            const int32_t before = r->dep[d];
            in->succ[in->succ_first[before] + fill[before]++] = t;
        }
    free(fill);
}

static void fill_queues(hp_interp *in) {
    const hp_role *r = in->c.role;
    in->queue = zeroed((size_t)r->n_queue, sizeof *in->queue);
    for (int t = 0; t < r->n_task; t++) in->queue[r->task[t].queue].n++;
    for (int q = 0; q < r->n_queue; q++) {
        in->queue[q].task = zeroed((size_t)in->queue[q].n, sizeof(int32_t));
        in->queue[q].n = 0;
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
    in->extent = zeroed((size_t)r->n_task, sizeof *in->extent);
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

hp_interp *hp_interp_new(const hp_interp_config *config) {
    hp_interp *in = zeroed(1, sizeof *in);
    in->c = *config;
    link_successors(in);
    fill_queues(in);
    measure_extents(in);
    in->flight = zeroed((size_t)in->c.role->n_task, sizeof *in->flight);
    return in;
}

void hp_interp_free(hp_interp *in) {
    if (!in) return;
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

/* --- one step --- */

static unsigned char *buffer_at(const hp_interp *in, int32_t buffer) {
    return buffer < 0 ? NULL : in->c.arena + in->c.role->buffer[buffer].offset;
}

static int32_t operand(const hp_interp *in, const hp_task *t, int n) {
    return n < t->n_operand ? in->c.role->operand[t->operand + n] : -1;
}

static void finish(hp_interp *in, int32_t task, int64_t t0_ns, int64_t t1_ns) {
    for (int s = in->succ_first[task]; s < in->succ_first[task + 1]; s++) in->waits[in->succ[s]]--;
    if (in->extent[task] > in->peak_bytes) in->peak_bytes = in->extent[task];
    if (in->c.ring)
        hp_ring_span(in->c.ring, (hp_span){.task = task, .iter = in->iter, .t0_ns = t0_ns, .t1_ns = t1_ns});
    in->left--;
    in->idle_since_ns = 0;
}

/* The rank of the world that plays `role` for this rank's replica. */
static int rank_of(const hp_interp *in, int32_t role) {
    return in->c.replica * in->c.program->n_role + role;
}

static hp_status start(hp_interp *in, int32_t task, hp_error *err) {
    const hp_task *t = &in->c.role->task[task];
    const hp_queue *q = &in->c.role->queue[t->queue];
    const int64_t elem = hp_dtype_bytes((hp_dtype)t->dtype);
    const bool collective = q->kind == HP_QUEUE_COLL;
    const hp_comm_op op = {.kind = collective                 ? HP_COMM_ALLREDUCE
                                   : q->kind == HP_QUEUE_SEND ? HP_COMM_SEND
                                                              : HP_COMM_RECV,
                           .peer = collective ? -1 : rank_of(in, q->peer),
                           .group = collective ? q->peer : -1,
                           .tag = collective ? 0 : q->channel, /* the two ends of a channel match in order */
                           .dtype = t->dtype,
                           .count = t->count,
                           .data = buffer_at(in, operand(in, t, 0)) + (collective ? t->offset * elem : 0)};
    interp_flight *f = &in->flight[in->n_flight];
    *f = (interp_flight){.task = task, .handle = -1, .t0_ns = hp_clock_now_ns(in->c.clock)};
    HP_TRY(in->c.comm->ops->start(in->c.comm, &op, &f->handle, err));
    in->n_flight++;
    return HP_OK;
}

static hp_status land(hp_interp *in, bool *any, hp_error *err) {
    for (int f = 0; f < in->n_flight;) {
        bool done = false;
        HP_TRY(in->c.comm->ops->test(in->c.comm, in->flight[f].handle, &done, err));
        if (!done) {
            f++;
            continue;
        }
        finish(in, in->flight[f].task, in->flight[f].t0_ns, hp_clock_now_ns(in->c.clock));
        in->flight[f] = in->flight[--in->n_flight];
        *any = true;
    }
    return HP_OK;
}

static hp_status take_off(hp_interp *in, bool *any, hp_error *err) {
    for (int q = 1; q < in->c.role->n_queue; q++) {
        interp_queue *queue = &in->queue[q];
        while (queue->next < queue->n && in->waits[queue->task[queue->next]] == 0) {
            HP_TRY(start(in, queue->task[queue->next++], err));
            *any = true;
        }
    }
    return HP_OK;
}

/* Everything messages can do now. */
static hp_status progress(hp_interp *in, hp_error *err) {
    for (bool any = true; any;) {
        any = false;
        HP_TRY(take_off(in, &any, err));
        HP_TRY(land(in, &any, err));
    }
    return HP_OK;
}

/* Rows `part` of a buffer. */
static unsigned char *rows_at(const hp_interp *in, int32_t id, const hp_box *part) {
    if (id < 0) return NULL;
    const hp_buffer *b = &in->c.role->buffer[id];
    const int64_t row = (int64_t)hp_box_len(&b->box, HP_AXIS_W) * hp_box_len(&b->box, HP_AXIS_C);
    return buffer_at(in, id) +
           (part->lo[HP_AXIS_H] - b->box.lo[HP_AXIS_H]) * row * hp_dtype_bytes((hp_dtype)b->dtype);
}

static hp_status load(hp_interp *in, const hp_task *t, hp_error *err) {
    const int32_t x = operand(in, t, 0), labels = operand(in, t, 1);
    const hp_buffer *b = in->c.role->buffer;
    const hp_box box = x < 0 ? (hp_box){{0}, {0}} : hp_task_rows(t, &b[x].box);
    return in->c.load(in->c.loader, in->iter, t->micro, rows_at(in, x, &box),
                      x < 0 ? HP_F32 : (hp_dtype)b[x].dtype, x < 0 ? NULL : &box, buffer_at(in, labels),
                      labels < 0 ? NULL : &b[labels].box, err);
}

static hp_status store(hp_interp *in, const hp_task *t, hp_error *err) {
    const int32_t x = operand(in, t, 0);
    const hp_buffer *b = &in->c.role->buffer[x];
    const hp_box box = hp_task_rows(t, &b->box);
    if (!in->c.store) return HP_OK;
    return in->c.store(in->c.sink, in->iter, t->micro, rows_at(in, x, &box), &box, (hp_dtype)b->dtype, err);
}

static hp_status run(hp_interp *in, int32_t task, const hp_step *step, hp_error *err) {
    const hp_task *t = &in->c.role->task[task];
    hp_watch_note(in->c.watch, task, in->iter);
    const int64_t t0_ns = hp_clock_now_ns(in->c.clock);
    if (t->op == HP_TASK_LOAD)
        HP_TRY(load(in, t, err));
    else if (t->op == HP_TASK_STORE)
        HP_TRY(store(in, t, err));
    else
        HP_TRY(in->c.ops->run(in->c.device, task, step, err));
    finish(in, task, t0_ns, hp_clock_now_ns(in->c.clock));
    const bool seen = in->c.observe && (t->op == HP_TASK_FWD || t->op == HP_TASK_LOAD);
    return seen ? in->c.observe(in->c.observer, task, err) : HP_OK;
}

/* --- waiting --- */

/* What the rank waits for: the oldest operation under way, else the head of the compute queue. */
static int32_t awaited(const hp_interp *in) {
    int32_t task = in->n_flight ? in->flight[0].task : in->queue[0].task[in->queue[0].next];
    for (int f = 1; f < in->n_flight; f++)
        if (in->flight[f].task < task) task = in->flight[f].task;
    return task;
}

/* "step 3" or "evaluation batch 3" of an iteration. */
static const char *iteration(int32_t iter, char out[40]) {
    if (iter >= 0)
        snprintf(out, 40, "step %d", iter + 1);
    else
        snprintf(out, 40, "evaluation batch %d", -iter);
    return out;
}

static hp_status stalled(hp_interp *in, hp_error *err) {
    int32_t its_task = -1, its_iter = 0;
    const int blame = hp_watch_silent(in->c.watch, &its_task, &its_iter);
    const int n_role = in->c.program->n_role, rank = in->c.comm->rank;
    const int32_t task = awaited(in);
    const hp_queue *q = &in->c.role->queue[in->c.role->task[task].queue];
    char label[128], theirs[128] = "its start", peer[64] = "its group", when[40], its_when[40];
    hp_task_label(in->c.program, in->c.graph, in->c.role, task, label, sizeof label);
    if (q->kind == HP_QUEUE_SEND || q->kind == HP_QUEUE_RECV)
        snprintf(peer, sizeof peer, "rank %d", rank_of(in, q->peer));
    if (blame < 0)
        return hp_fail(err, HP_ESTALL, "stalled: rank %d waited %.0f s in %s for `%s` with %s", rank,
                       in->limit_s, iteration(in->iter, when), label, peer);
    const hp_role *role = &in->c.program->role[blame % n_role];
    if (its_task >= 0 && its_task < role->n_task)
        hp_task_label(in->c.program, in->c.graph, role, its_task, theirs, sizeof theirs);
    return hp_fail(err, HP_ESTALL,
                   "stalled: rank %d gives no sign of life in `%s` of %s; rank %d waited %.0f s in %s for "
                   "`%s` with %s; is "
                   "the process of rank %d stopped?",
                   blame, theirs, iteration(its_iter, its_when), rank, in->limit_s, iteration(in->iter, when),
                   label, peer, blame);
}

static hp_status wait(hp_interp *in, hp_error *err) {
    const int64_t now_ns = hp_clock_now_ns(in->c.clock);
    hp_watch_beat(in->c.watch);
    if (in->idle_since_ns == 0) in->idle_since_ns = now_ns;
    if ((double)(now_ns - in->idle_since_ns) > in->limit_s * 1e9) return stalled(in, err);
    if (in->c.yield) sched_yield();
    return HP_OK;
}

static hp_status ended(const hp_interp *in, int signal, hp_error *err) {
    char when[40];
    return hp_fail(err, (hp_status)(128 + signal), "ended by signal %d in %s", signal,
                   iteration(in->iter, when));
}

static void reset(hp_interp *in, int32_t iter, double limit_s) {
    const hp_role *r = in->c.role;
    memcpy(in->waits, in->n_dep, sizeof *in->waits * (size_t)r->n_task);
    for (int q = 0; q < r->n_queue; q++) in->queue[q].next = 0;
    in->left = r->n_task;
    in->n_flight = 0;
    in->iter = iter;
    in->idle_since_ns = 0;
    in->limit_s = limit_s;
    memset(buffer_at(in, HP_BUF_METRIC), 0, HP_METRICS * sizeof(double));
}

hp_status hp_interp_step(hp_interp *in, const hp_step *step, int32_t iter, double limit_s, hp_error *err) {
    reset(in, iter, limit_s);
    interp_queue *compute = &in->queue[0];
    while (in->left > 0) {
        if (in->c.stop && *in->c.stop) return ended(in, (int)*in->c.stop, err);
        HP_TRY(progress(in, err));
        if (compute->next < compute->n && in->waits[compute->task[compute->next]] == 0)
            HP_TRY(run(in, compute->task[compute->next++], step, err));
        else if (in->left > 0)
            HP_TRY(wait(in, err));
    }
    return HP_OK;
}

int64_t hp_interp_peak_bytes(const hp_interp *in) {
    return in->peak_bytes;
}

const double *hp_interp_metric(const hp_interp *in) {
    return (const double *)(const void *)buffer_at(in, HP_BUF_METRIC);
}
