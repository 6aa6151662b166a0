/* exec_data.c - images in, results and sums out, wherever the buffers lie. */
#include "exec/interp/exec_ahead.h"
#include "exec/interp/exec_inside.h"

#include <stdlib.h>
#include <string.h>

/* Where rows `part` of a buffer lie within it. */
static int64_t rows_at(const hp_buffer *b, const hp_box *part) {
    const int64_t row = (int64_t)hp_box_len(&b->box, HP_AXIS_W) * hp_box_len(&b->box, HP_AXIS_C);
    return (part->lo[HP_AXIS_H] - b->box.lo[HP_AXIS_H]) * row * hp_dtype_bytes((hp_dtype)b->dtype);
}

static int64_t part_bytes(const hp_buffer *b, const hp_box *part) {
    return hp_box_elems(part) * hp_dtype_bytes((hp_dtype)b->dtype);
}

typedef struct loaded { /* the operands of a load task; -1: absent */
    int32_t x, labels;
    hp_box box;
    int64_t x_bytes, label_bytes;
} loaded;

static loaded loaded_by(const hp_interp *in, const hp_task *t) {
    const hp_buffer *b = in->c.role->buffer;
    loaded l = {.x = interp_operand(in, t, 0), .labels = interp_operand(in, t, 1)};
    if (l.x >= 0) {
        l.box = hp_task_box(t, &b[l.x].box);
        l.x_bytes = part_bytes(&b[l.x], &l.box);
    }
    if (l.labels >= 0) l.label_bytes = b[l.labels].bytes;
    return l;
}

static int64_t line_up(int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* Page-locked room that a task needs; 0: none. */
static int64_t room_of(const hp_interp *in, const hp_task *t) {
    const hp_role *r = in->c.role;
    if (t->op == HP_TASK_LOAD) {
        const loaded l = loaded_by(in, t);
        return line_up(l.x_bytes) + l.label_bytes;
    }
    if (t->op != HP_TASK_STORE || !in->c.store) return 0;
    const hp_buffer *b = &r->buffer[interp_operand(in, t, 0)];
    const hp_box box = hp_task_box(t, &b->box);
    return part_bytes(b, &box);
}

static hp_status load_into_host(void *self, int32_t task, int32_t iter, hp_error *err);

hp_status interp_data_open(hp_interp *in, hp_error *err) {
    const hp_role *r = in->c.role;
    if (!in->device.streams) return HP_OK;
    in->loads.host = interp_zeroed((size_t)r->n_task, sizeof *in->loads.host);
    HP_TRY(in->device.streams->event_new(in->c.memory, &in->device.fetched, err));
    for (int t = 0; t < r->n_task; t++) {
        const int64_t bytes = room_of(in, &r->task[t]);
        if (bytes > 0) HP_TRY(in->device.streams->host_new(in->c.memory, bytes, &in->loads.host[t], err));
    }
    return in->c.n_steps > 1 ? hp_ahead_start(r->n_task, load_into_host, in, &in->loads.ahead, err) : HP_OK;
}

void interp_data_close(hp_interp *in) {
    hp_ahead_stop(in->loads.ahead);
    for (int t = 0; in->loads.host && t < in->c.role->n_task; t++)
        if (in->loads.host[t]) in->device.streams->host_free(in->c.memory, in->loads.host[t]);
    if (in->device.fetched) in->device.streams->event_free(in->c.memory, in->device.fetched);
    free(in->loads.host);
}

static hp_status load_rows(const hp_interp *in, int32_t iter, const hp_task *t, const loaded *l, void *x,
                           void *labels, hp_error *err) {
    const hp_buffer *b = in->c.role->buffer;
    hp_watch_reads(in->c.watch, true);
    const hp_status s =
        in->c.load(in->c.loader, iter, t->micro, x, l->x < 0 ? HP_F32 : (hp_dtype)b[l->x].dtype,
                   l->x < 0 ? NULL : &l->box, labels, l->labels < 0 ? NULL : &b[l->labels].box, err);
    hp_watch_reads(in->c.watch, false);
    return s;
}

static hp_status load_here(hp_interp *in, const hp_task *t, const loaded *l, hp_error *err) {
    unsigned char *x =
        l->x < 0 ? NULL : interp_buffer(in, l->x) + rows_at(&in->c.role->buffer[l->x], &l->box);
    return load_rows(in, in->iter, t, l, x, interp_buffer(in, l->labels), err);
}

/* A task's page-locked room, also from the thread that reads ahead. */
static hp_status load_into_host(void *self, int32_t task, int32_t iter, hp_error *err) {
    const hp_interp *in = self;
    const loaded l = loaded_by(in, interp_task(in, task));
    unsigned char *host = in->loads.host[task], *labels = host + line_up(l.x_bytes);
    return load_rows(in, iter, interp_task(in, task), &l, l.x < 0 ? NULL : host, l.labels < 0 ? NULL : labels,
                     err);
}

/* The room is there for this step: the one before, which is over, was the last to read it. */
static hp_status load_there(hp_interp *in, int32_t task, const loaded *l, hp_error *err) {
    unsigned char *host = in->loads.host[task], *labels = host + line_up(l->x_bytes);
    hp_order order = interp_order(in, task), x_order = order;
    HP_TRY(in->loads.ahead ? hp_ahead_wait(in->loads.ahead, task, in->iter, err)
                           : load_into_host(in, task, in->iter, err));
    if (l->labels >= 0) x_order.done = NULL;
    if (l->x >= 0)
        HP_TRY(in->device.streams->copy(in->c.memory, HP_STREAM_COMPUTE,
                                        interp_buffer(in, l->x) + rows_at(&in->c.role->buffer[l->x], &l->box),
                                        host, l->x_bytes, &x_order, err));
    if (l->labels < 0) return HP_OK;
    return in->device.streams->copy(in->c.memory, HP_STREAM_COMPUTE, interp_buffer(in, l->labels), labels,
                                    l->label_bytes, &order, err);
}

hp_status interp_load(hp_interp *in, int32_t task, hp_error *err) {
    const loaded l = loaded_by(in, interp_task(in, task));
    return in->device.streams ? load_there(in, task, &l, err) : load_here(in, interp_task(in, task), &l, err);
}

/* Evaluation counts its batches down from -1. */
void interp_loaded(hp_interp *in) {
    const hp_wired_queue *compute = &in->wired.queue[0];
    if (!in->loads.ahead || --in->loads.left > 0 || in->graphs.n_steps + 1 >= in->c.n_steps) return;
    for (int i = 0; i < compute->n; i++)
        if (interp_task(in, compute->task[i])->op == HP_TASK_LOAD)
            hp_ahead_ask(in->loads.ahead, compute->task[i], in->iter + (in->iter < 0 ? -1 : 1));
}

/* What a store puts out, as the host sees it. It is there, so the copy waits for nothing: the compute stream
 * may hold tasks that wait for messages, which the host has to carry. */
static hp_status fetch(hp_interp *in, int32_t task, const unsigned char *at, int64_t bytes, hp_error *err) {
    const hp_order order = {.done = in->device.fetched};
    bool done = false;
    HP_TRY(
        in->device.streams->copy(in->c.memory, HP_STREAM_COPY, in->loads.host[task], at, bytes, &order, err));
    while (!done) HP_TRY(in->device.streams->query(in->c.memory, in->device.fetched, &done, err));
    return HP_OK;
}

hp_status interp_store(hp_interp *in, int32_t task, hp_error *err) {
    const hp_task *t = interp_task(in, task);
    const int32_t x = interp_operand(in, t, 0);
    const hp_buffer *b = &in->c.role->buffer[x];
    const hp_box box = hp_task_box(t, &b->box);
    const unsigned char *at = interp_buffer(in, x) + rows_at(b, &box);
    if (!in->c.store) return HP_OK;
    if (in->device.streams) HP_TRY(fetch(in, task, at, part_bytes(b, &box), err));
    return in->c.store(in->c.sink, in->iter, t->micro, in->device.streams ? in->loads.host[task] : at, &box,
                       (hp_dtype)b->dtype, err);
}

/* Between parameters lie gaps, which sums over ranks and the look for overflows go over: they stay 0. */
hp_status interp_zero_gradients(hp_interp *in, hp_error *err) {
    const int64_t bytes = in->c.role->buffer[HP_BUF_GRADS].bytes;
    if (bytes == 0) return HP_OK;
    return in->c.memory->ops->zero(in->c.memory, interp_buffer(in, HP_BUF_GRADS), bytes, err);
}

/* What codecs keep from step to step begins with nothing. */
hp_status interp_zero_carried(hp_interp *in, hp_error *err) {
    const hp_role *r = in->c.role;
    for (int b = HP_BUF_FIXED; b < r->n_buffer; b++)
        if (r->buffer[b].kind == HP_BUF_CARRY)
            HP_TRY(in->c.memory->ops->zero(in->c.memory, interp_buffer(in, b), r->buffer[b].bytes, err));
    return HP_OK;
}

hp_status interp_start_metric(hp_interp *in, const hp_step *step, hp_error *err) {
    unsigned char *metric = interp_buffer(in, HP_BUF_METRIC);
    HP_TRY(in->c.memory->ops->zero(in->c.memory, metric, sizeof in->metric, err));
    if (step->ask == 0) return HP_OK;
    return in->c.memory->ops->put(in->c.memory, metric + HP_METRIC_ASKED * sizeof step->ask, &step->ask,
                                  sizeof step->ask, err);
}

hp_status interp_read_metric(hp_interp *in, hp_error *err) {
    return in->c.memory->ops->get(in->c.memory, in->metric, interp_buffer(in, HP_BUF_METRIC),
                                  sizeof in->metric, err);
}
