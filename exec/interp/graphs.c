/* graphs.c - tasks launched by one call. Launching a task takes the host longer than a small one takes a GPU,
 * so whatever is the same in every step is captured once and launched as a graph.
 *
 * The first step launches every task by itself: libraries do their one-time work then. Before the second
 * step, while nothing is under way on the device that a call could wait for, each segment of two tasks or
 * more is captured. A segment that the device cannot capture is launched task by task as before: a real error
 * occurs again there. */
#include "exec/interp/exec_inside.h"
#include "exec/interp/graph_segments.h"

#include <stdlib.h>

void interp_segments_open(hp_interp *in) {
    const size_t n = (size_t)in->c.role->n_task;
    if (!in->device.streams || !in->device.streams->capture) return;
    in->graphs.segment = interp_zeroed(n, sizeof *in->graphs.segment);
    in->graphs.captured = interp_zeroed(n, sizeof *in->graphs.captured);
    hp_graph_segments(in->c.role, in->graphs.segment);
}

void interp_segments_close(hp_interp *in) {
    for (int t = 0; in->graphs.captured && t < in->c.role->n_task; t++)
        if (in->graphs.captured[t]) in->device.streams->capture->free(in->c.memory, in->graphs.captured[t]);
    free(in->graphs.segment);
    free(in->graphs.captured);
}

static hp_status enqueue_tasks(hp_interp *in, const int32_t *task, int32_t n, hp_error *err) {
    for (int i = 0; i < n; i++) {
        const hp_order order = {.done = in->device.event[task[i]]};
        HP_TRY(in->c.ops->enqueue(in->c.device, task[i], &order, err));
    }
    return HP_OK;
}

static void capture_segment(hp_interp *in, const int32_t *task, int32_t n) {
    const hp_capture_ops *c = in->device.streams->capture;
    hp_captured *captured = NULL;
    hp_error none;
    if (c->begin(in->c.memory, &none) != HP_OK) return;
    const hp_status enqueued = enqueue_tasks(in, task, n, &none);
    if (c->end(in->c.memory, &captured, &none) != HP_OK) return;
    if (enqueued == HP_OK)
        in->graphs.captured[task[0]] = captured;
    else
        c->free(in->c.memory, captured);
}

void interp_segments_begin(hp_interp *in) {
    const hp_wired_queue *compute = &in->wired.queue[0];
    if (!in->graphs.segment || in->graphs.n_steps != 1) return;
    for (int i = 0; i < compute->n; i++)
        if (in->graphs.segment[compute->task[i]] > 1)
            capture_segment(in, &compute->task[i], in->graphs.segment[compute->task[i]]);
}

hp_status interp_segment_launch(hp_interp *in, int32_t *n, hp_error *err) {
    const int32_t *task = &in->wired.queue[0].task[in->ready.head[0]];
    const int64_t t0_ns = hp_clock_now_ns(in->c.clock);
    *n = 0;
    if (!in->graphs.captured || !in->graphs.captured[task[0]]) return HP_OK;
    hp_order order = interp_order(in, task[0]);
    order.done = NULL; /* its event is one of those kept */
    HP_TRY(in->device.streams->capture->launch(in->c.memory, in->graphs.captured[task[0]], &order, err));
    *n = in->graphs.segment[task[0]];
    for (int i = 0; i < *n; i++) {
        hp_ready_start(&in->ready, 0);
        interp_under_way(in, task[i], t0_ns);
    }
    return HP_OK;
}
