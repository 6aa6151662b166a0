/* inside.h - what the files of the executor's loop share: interp.c (the loop), interp/messages.c
 * (queues of communicators), interp/device.c (work under way on a device), interp/graphs.c (tasks given by
 * one call), interp/data.c (images in, results out), interp/stall.c (what to say when nothing moves). */
#ifndef HP_INTERP_INSIDE_H
#define HP_INTERP_INSIDE_H

#include "exec/interp/interp.h"
#include "plan/program/ready.h"

typedef struct interp_queue {
    bool ordered; /* a device's events order its work: a task may be given before its dependencies are done */
    int64_t last_ns; /* when the task before was done */
} interp_queue;

typedef struct interp_flight { /* a started message or collective, or a task that a device was given */
    int32_t task;
    int handle; /* -1: of the compute queue, or its communicator has done its part */
    int64_t t0_ns;
} interp_flight;

struct hp_interp {
    hp_interp_config c;
    hp_arena *tables; /* what is built once */
    hp_wired_role wired;
    hp_ready ready;
    interp_queue *queue; /* per role.queue */
    int32_t n_flight, left;
    int32_t n_computing; /* of those in flight, tasks of the compute queue */
    interp_flight *flight;
    int64_t *extent; /* per task: end of the highest buffer among its operands */
    int64_t peak_bytes;
    int32_t iter;
    int64_t idle_since_ns; /* 0: not idle */
    double limit_s;
    double metric[HP_METRICS];
    /* With streams: */
    const hp_stream_ops *streams; /* NULL: all work is complete on return */
    hp_event **event;             /* per task of an ordered queue: behind it */
    hp_event *zero;               /* marked at the begin of a step, at zero_ns */
    int64_t zero_ns;
    int64_t *done_ns;       /* per task: when its event happened; 0: not yet in this step */
    hp_event **after;       /* room for the events one task waits for */
    int32_t n_steps;        /* done so far */
    int32_t *segment;       /* per task: segments.h; NULL: every task is given by itself */
    hp_captured **captured; /* per task that a segment begins with; NULL: none is kept */
    void **host;            /* per load and store task: page-locked room, or NULL */
    struct hp_ahead *ahead; /* fills those of loads for the next step; NULL */
    int32_t n_loads;        /* of this step, not yet done */
    hp_event *fetched;      /* behind a store's copy */
};

/* --- interp.c --- */

static inline const hp_task *interp_task(const hp_interp *in, int32_t task) {
    return &in->c.role->task[task];
}
static inline int32_t interp_operand(const hp_interp *in, const hp_task *t, int n) {
    return n < t->n_operand ? in->c.role->operand[t->operand + n] : -1;
}
static inline unsigned char *interp_buffer(const hp_interp *in, int32_t buffer) {
    return buffer < 0 ? NULL : in->c.arena + in->c.role->buffer[buffer].offset;
}
/* The task was given: those whose queue can wait for its event need not wait for more. */
void interp_given(hp_interp *in, int32_t task);
/* A task of the compute queue was given to the device at t0_ns, and is not done yet. */
void interp_flies(hp_interp *in, int32_t task, int64_t t0_ns);
/* The task is done. */
void interp_done(hp_interp *in, int32_t task, int64_t t0_ns, int64_t t1_ns);
void *interp_zeroed(size_t n, size_t size);

/* --- interp/messages.c --- */

/* The rank of the world that plays `role` for this rank's replica. */
int interp_rank_of(const hp_interp *in, int32_t role);
/* Everything messages and the device can do now. */
hp_status interp_progress(hp_interp *in, hp_error *err);

/* --- interp/device.c: nothing where all work is complete on return --- */

hp_status interp_device_open(hp_interp *in, hp_error *err);
void interp_device_close(hp_interp *in);
hp_status interp_device_begin(hp_interp *in, const hp_step *step, hp_error *err);
/* What a task of an ordered queue is ordered by. Valid until the next call. */
hp_order interp_order(hp_interp *in, int32_t task);
/* Has the event behind a task happened? When, on the common clock: *t0_ns, *t1_ns. */
hp_status interp_event(hp_interp *in, int32_t task, bool *done, int64_t *t0_ns, int64_t *t1_ns,
                       hp_error *err);

/* --- interp/graphs.c: nothing where a device keeps no work --- */

void interp_segments_open(hp_interp *in);
void interp_segments_close(hp_interp *in);
/* Before the second step: has the device keep what it can. */
void interp_segments_begin(hp_interp *in);
/* Gives the tasks at the head of the compute queue that were kept together, *n; 0: the first is to be given
 * by itself. */
hp_status interp_segment_give(hp_interp *in, int32_t *n, hp_error *err);

/* --- interp/data.c --- */

hp_status interp_data_open(hp_interp *in, hp_error *err);
void interp_data_close(hp_interp *in);
hp_status interp_load(hp_interp *in, int32_t task, hp_error *err);
/* A load is done. After the last of a step all rooms are free: the next step's images may be read, in the
 * order in which they will be wanted. */
void interp_loaded(hp_interp *in);
hp_status interp_store(hp_interp *in, int32_t task, hp_error *err);
hp_status interp_zero_gradients(hp_interp *in, hp_error *err);
hp_status interp_zero_metric(hp_interp *in, hp_error *err);
hp_status interp_take_metric(hp_interp *in, hp_error *err);

/* --- interp/stall.c --- */

/* "step 3" or "evaluation batch 3" of an iteration. */
const char *interp_when(int32_t iter, char out[40]);
hp_status interp_stalled(hp_interp *in, hp_error *err);

#endif
