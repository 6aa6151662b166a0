/* exec_messages.c - messages and collectives: started in their queues' order as soon as they may be, polled
 * until they are done. */
#include "exec/interp/exec_inside.h"

int interp_rank_of(const hp_interp *in, int32_t role) {
    return in->c.replica * in->c.program->n_role + role;
}

static hp_comm_op message_of(const hp_interp *in, const hp_task *t, const hp_queue *q) {
    return (hp_comm_op){.kind = q->kind == HP_QUEUE_SEND ? HP_COMM_SEND : HP_COMM_RECV,
                        .peer = interp_rank_of(in, q->peer),
                        .group = -1,
                        .tag = q->channel, /* the two ends of a channel match in order */
                        .data = interp_buffer(in, interp_operand(in, t, 0))};
}

static hp_comm_op collective_of(const hp_interp *in, const hp_task *t, const hp_queue *q) {
    const hp_program *p = in->c.program;
    const hp_call call = hp_task_call(p, t);
    const int64_t offset = t->collective.first * hp_dtype_bytes((hp_dtype)t->dtype);
    const int32_t source = t->n_operand > 1 ? interp_operand(in, t, 1) : -1;
    return (hp_comm_op){.kind = HP_COMM_COLLECTIVE,
                        .peer = -1,
                        .group = q->peer,
                        .data = interp_buffer(in, interp_operand(in, t, 0)) + offset,
                        .what = hp_task_collective(t),
                        .algorithm = t->algorithm,
                        .reduction = call.reduction,
                        .root = call.root,
                        .per_node = call.per_node,
                        .part = hp_task_data(p, t).part,
                        .source = source >= 0 ? interp_buffer(in, source) : NULL,
                        .source_bytes = source >= 0 ? in->c.role->buffer[source].bytes : 0};
}

static hp_comm_op op_of(const hp_interp *in, const hp_task *t, const hp_queue *q) {
    hp_comm_op op = q->kind == HP_QUEUE_COLL ? collective_of(in, t, q) : message_of(in, t, q);
    op.backend = q->backend;
    op.device = !in->c.memory->ops->host;
    op.dtype = t->dtype;
    op.count = hp_task_range(t).count;
    op.sent = &in->sent[t - in->c.role->task];
    return op;
}

static hp_status start_transfer(hp_interp *in, int32_t task, hp_error *err) {
    const hp_task *t = interp_task(in, task);
    const bool ordered = in->queue[t->queue].ordered;
    hp_comm_op op = op_of(in, t, &in->c.role->queue[t->queue]);
    hp_order order;
    if (ordered) {
        order = interp_order(in, task);
        op.order = &order;
    }
    interp_flight *f = &in->flight[in->n_flight];
    *f = (interp_flight){.task = task, .handle = -1, .t0_ns = hp_clock_now_ns(in->c.clock)};
    HP_TRY(in->c.comm->ops->start(in->c.comm, &op, &f->handle, err));
    in->n_flight++;
    return HP_OK;
}

/* Averages of replicas are for some steps only. */
static bool passes(const hp_interp *in, int32_t task) {
    const int32_t local = in->c.program->local;
    return interp_task(in, task)->flags & HP_FLAG_AVERAGE && local > 0 && (in->iter + 1) % local != 0;
}

static void let_pass(hp_interp *in, int32_t task) {
    const int64_t now_ns = hp_clock_now_ns(in->c.clock);
    if (in->device.streams) in->device.done_ns[task] = now_ns;
    interp_started(in, task);
    interp_complete(in, task, now_ns, now_ns);
}

/* Starts everything of a queue that may start now. */
static hp_status start_queue(hp_interp *in, int queue, hp_error *err) {
    for (int task; (task = hp_ready_task(&in->ready, queue)) >= 0;) {
        if (passes(in, task)) {
            hp_ready_start(&in->ready, queue);
            let_pass(in, task);
            continue;
        }
        HP_TRY(start_transfer(in, task, err));
        hp_ready_start(&in->ready, queue);
    }
    return HP_OK;
}

/* Starts everything of one direction that may start now, as one group through the device. Tasks that the
 * program moves together have the same dependencies; tasks that follow depend on them (plan/program/lanes.h).
 * Groups are therefore the same in every run. */
static hp_status start_ordered(hp_interp *in, bool sums, bool *any, hp_error *err) {
    const int first = in->n_flight;
    for (int q = 1; q < in->c.role->n_queue; q++) {
        if (!in->queue[q].ordered || (in->c.role->queue[q].kind == HP_QUEUE_COLL) != sums) continue;
        HP_TRY(start_queue(in, q, err));
    }
    if (in->n_flight == first) return HP_OK;
    *any = true;
    HP_TRY(in->c.comm->ops->end(in->c.comm, err));
    for (int f = first; f < in->n_flight; f++) interp_started(in, in->flight[f].task);
    return HP_OK;
}

/* A transfer ordered by events is done when its event is reached; its communicator may report an error
 * earlier. */
static hp_status poll_transfer(hp_interp *in, interp_flight *f, bool *done, int64_t *t0_ns, int64_t *t1_ns,
                               hp_error *err) {
    const bool ordered = in->queue[interp_task(in, f->task)->queue].ordered;
    *done = f->handle < 0;
    if (!*done) HP_TRY(in->c.comm->ops->test(in->c.comm, f->handle, done, err));
    *t0_ns = f->t0_ns;
    if (*done) f->handle = -1; /* the communicator's part is over */
    if (*done && ordered) return interp_event(in, f->task, done, t0_ns, t1_ns, err);
    if (*done) *t1_ns = hp_clock_now_ns(in->c.clock);
    return HP_OK;
}

/* Tasks of the compute queue are done in its order, and there may be thousands under way. */
static hp_status finish_transfers(hp_interp *in, bool *any, hp_error *err) {
    int kept = 0;
    bool computing = false;
    for (int f = 0; f < in->n_flight; f++) {
        bool done = false;
        int64_t t0_ns, t1_ns;
        interp_flight flight = in->flight[f];
        const bool compute = interp_task(in, flight.task)->queue == 0;
        if (!compute || !computing) HP_TRY(poll_transfer(in, &flight, &done, &t0_ns, &t1_ns, err));
        computing |= compute && !done;
        if (done)
            interp_complete(in, flight.task, t0_ns, t1_ns);
        else
            in->flight[kept++] = flight;
        in->n_computing -= compute && done;
        *any |= done;
    }
    in->n_flight = kept;
    return HP_OK;
}

/* --- what can be done now --- */

static hp_status start_transfers(hp_interp *in, bool *any, hp_error *err) {
    const int first = in->n_flight;
    for (int q = 1; q < in->c.role->n_queue; q++)
        if (!in->queue[q].ordered) HP_TRY(start_queue(in, q, err));
    *any |= in->n_flight > first;
    HP_TRY(start_ordered(in, false, any, err));
    return start_ordered(in, true, any, err);
}

hp_status interp_progress(hp_interp *in, hp_error *err) {
    for (bool any = true; any;) {
        any = false;
        HP_TRY(start_transfers(in, &any, err));
        HP_TRY(finish_transfers(in, &any, err));
    }
    return HP_OK;
}
