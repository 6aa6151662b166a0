/* exec_inside.h - what the files of the executor's loop share: loop.c (the steps of a rank), exec_messages.c
 * (transfers), exec_device.c (events of a device with streams), graphs.c (tasks launched by one call),
 * exec_data.c (images in, results out), exec_stall.c (the report when nothing moves). */
#ifndef HP_EXEC_INSIDE_H
#define HP_EXEC_INSIDE_H

#include "exec/interp/exec_interp.h"
#include "plan/program/ready.h"

typedef struct interp_queue {
    bool ordered;    /* a device's events order its work: a task may start before its dependencies are done */
    int64_t last_ns; /* when the task before was done */
} interp_queue;

typedef struct interp_flight { /* a transfer or a task on a device that has started and is not done */
    int32_t task;
    int handle; /* -1: of the compute queue, or its communicator has done its part */
    int64_t t0_ns;
} interp_flight;

typedef struct interp_device {    /* with streams: a task is done once its event is */
    const hp_stream_ops *streams; /* NULL: all work is complete on return */
    hp_event **event;             /* per task of an ordered queue: recorded after it */
    hp_event *zero;               /* recorded at the begin of a step, at zero_ns */
    int64_t zero_ns;
    int64_t *done_ns;  /* per task: when its event was reached; 0: not yet in this step */
    hp_event **after;  /* room for the events one task waits for */
    hp_event *fetched; /* recorded after a store's copy */
} interp_device;

typedef struct interp_graphs { /* tasks that a device launches together (graphs.c) */
    int32_t n_steps;           /* done so far */
    int32_t *segment;          /* per task: graph_segments.h; NULL: every task is launched by itself */
    hp_captured **captured;    /* per task that a segment begins with; NULL: none is kept */
} interp_graphs;

typedef struct interp_loads {
    void **host;            /* per load and store task: page-locked room, or NULL */
    struct hp_ahead *ahead; /* fills those of loads for the next step; NULL */
    int32_t left;           /* tasks of this step that are not yet done */
} interp_loads;

struct hp_interp {
    hp_interp_config c;
    hp_arena *tables; /* what is built once */
    hp_wired_role wired;
    hp_ready ready;
    interp_queue *queue; /* per role.queue */
    int32_t n_flight, left;
    int32_t n_computing; /* tasks of the compute queue among those in flight */
    interp_flight *flight;
    int64_t *sent;   /* per task: bytes handed out for it so far */
    int64_t *extent; /* per task: end of the highest buffer among its operands */
    int64_t peak_bytes;
    int32_t iter;
    int64_t idle_since_ns; /* 0: not idle */
    double limit_s;
    double metric[HP_METRICS];
    interp_device device;
    interp_graphs graphs;
    interp_loads loads;
};

/* --- loop.c --- */

static inline const hp_task *interp_task(const hp_interp *in, int32_t task) {
    return &in->c.role->task[task];
}
static inline int32_t interp_operand(const hp_interp *in, const hp_task *t, int n) {
    return n < t->n_operand ? in->c.role->operand[t->operand + n] : -1;
}
static inline unsigned char *interp_buffer(const hp_interp *in, int32_t buffer) {
    return buffer < 0 ? NULL : in->c.arena + in->c.role->buffer[buffer].offset;
}
/* The task has started: tasks whose queue can wait for its event need not wait for its end. */
void interp_started(hp_interp *in, int32_t task);
/* A task of the compute queue was enqueued on the device at t0_ns, and is not done yet. */
void interp_under_way(hp_interp *in, int32_t task, int64_t t0_ns);
/* The task is done: what depends on it may start. */
void interp_complete(hp_interp *in, int32_t task, int64_t t0_ns, int64_t t1_ns);
void *interp_zeroed(size_t n, size_t size);

/* --- exec_messages.c --- */

/* The rank of the world that plays `role` for this rank's replica. */
int interp_rank_of(const hp_interp *in, int32_t role);
/* Starts and finishes transfers, and finishes tasks on the device, until nothing more can be done now. */
hp_status interp_progress(hp_interp *in, hp_error *err);

/* --- exec_device.c: nothing where all work is complete on return --- */

hp_status interp_device_open(hp_interp *in, hp_error *err);
void interp_device_close(hp_interp *in);
hp_status interp_device_begin(hp_interp *in, const hp_step *step, hp_error *err);
/* What a task of an ordered queue is ordered by. Valid until the next call. */
hp_order interp_order(hp_interp *in, int32_t task);
/* Has the device reached a task's event? *t0_ns, *t1_ns: the task's time on the common clock. */
hp_status interp_event(hp_interp *in, int32_t task, bool *done, int64_t *t0_ns, int64_t *t1_ns,
                       hp_error *err);

/* --- graphs.c: nothing where a device captures no graphs --- */

void interp_segments_open(hp_interp *in);
void interp_segments_close(hp_interp *in);
/* Before the second step: captures what the device can. */
void interp_segments_begin(hp_interp *in);
/* Launches the captured tasks at the head of the compute queue, *n of them; 0: the first one has to be
 * launched by itself. */
hp_status interp_segment_launch(hp_interp *in, int32_t *n, hp_error *err);

/* --- exec_data.c --- */

hp_status interp_data_open(hp_interp *in, hp_error *err);
void interp_data_close(hp_interp *in);
hp_status interp_load(hp_interp *in, int32_t task, hp_error *err);
/* A load is done. After the last of a step all rooms are free: the next step's images may be read, in the
 * order in which they will be wanted. */
void interp_loaded(hp_interp *in);
hp_status interp_store(hp_interp *in, int32_t task, hp_error *err);
hp_status interp_zero_gradients(hp_interp *in, hp_error *err);
hp_status interp_zero_carried(hp_interp *in, hp_error *err);
/* All sums begin with 0, but what this rank asks for. */
hp_status interp_start_metric(hp_interp *in, const hp_step *step, hp_error *err);
hp_status interp_read_metric(hp_interp *in, hp_error *err);

/* --- exec_stall.c --- */

/* "step 3" or "evaluation batch 3" of an iteration. */
const char *interp_when(int32_t iter, char out[40]);
/* Fails: this rank has waited too long, for that one. */
hp_status interp_stalled(const hp_interp *in, const hp_suspect *suspect, hp_error *err);

#endif
