/* null.c - the device that computes nothing: every task is complete as soon as it is run.
 *
 * A step then takes only the executor's own time: dependencies, queues, messages, collectives, data, spans
 * (tests/bench/bench_null.sh). Programs, memory and precisions are the cpu's. Buffers hold zeros, or what
 * messages and loads put there; nothing is counted, so losses are 0.
 *
 * It is also the smallest device. To add another, copy this folder, give it a row in
 * machines/device/devices.def and a line in exec/exec.cmake, and replace what the comments say. Read
 * exec/device/ref next. */
#include "exec/device/device.h"
#include "base/alloc.h"

#include <stdlib.h>

/* A device's state: the config, copied because the caller's may go away, and per task its kernel and operands
 * (hp_bound of exec/device/device_bind.h: buffers as addresses, shapes as numbers). A device that also runs
 * deployed graphs has a second hp_device_ops; this one runs both. */
struct hp_device {
    hp_device_config config;
};

/* Called once per program; only this may be slow. Creates a kernel for each task that is not the executor's
 * own (HP_QUEUE_COMPUTE, except load and store), or fails with HP_EUNAVAIL and the name of the layer without
 * one. Frees everything on failure. */
static hp_status null_open(const hp_device_config *config, hp_device **device, hp_error *err) {
    (void)err; /* nothing can be missing */
    hp_device *d = hp_zeroed(1, sizeof *d);
    d->config = *config;
    *device = d;
    return HP_OK;
}

/* The hot path: runs the task's kernel on its operands, complete on return. Allocates nothing. */
static hp_status null_run(hp_device *d, int task, const hp_step *step, hp_error *err) {
    (void)step; /* values that differ between steps: learning rate, seed of dropout */
    (void)err;
    HP_ASSERT(task >= 0 && task < d->config.role->n_task);
    return HP_OK;
}

static void null_close(hp_device *d) {
    free(d);
}

/* Unset members are absent: begin and enqueue are for memory with streams (exec/base/exec_memory.h), tuning
 * is for kernels chosen by timing them. */
const hp_device_ops hp_device_null = {
    .name = "null",
    .dtype = HP_F32,
    .open = null_open,
    .run = null_run,
    .close = null_close,
    .memory = &hp_memory_host,
};
