/* null.c - the device that computes nothing: every task is complete as soon as it is run.
 *
 * What a step then takes is the executor's own cost: dependencies, queues, messages, collectives, data, spans
 * (tests/bench/bench_null.sh). Programs, memory and precisions are the cpu's. Buffers hold zeros, or what
 * messages and loads have put there; nothing is counted, so losses are 0.
 *
 * It is also the smallest device. To add another, copy this folder, give it a row in machines/device/devices.def
 * and a line in exec/exec.cmake, and replace what the comments say. exec/device/ref is the next one to read. */
#include "exec/device/device.h"
#include "base/alloc.h"

#include <stdlib.h>

/* What a device keeps from one task to the next: the config, which the caller's copy need not outlive, and
 * per task its kernel and operands (hp_bound of exec/device/device_bind.h: buffers as addresses, shapes as numbers).
 * One that runs deployed graphs too has a second hp_device_ops; this one runs both. */
struct hp_device {
    hp_device_config config;
};

/* Once per program, and the only place that may be slow: a kernel for each task that is not the executor's
 * own (HP_QUEUE_COMPUTE, but no load or store), or HP_EUNAVAIL with the name of the layer that has none.
 * Frees what it has made where it fails. */
static hp_status null_open(const hp_device_config *config, hp_device **device, hp_error *err) {
    (void)err; /* nothing can be missing */
    hp_device *d = hp_zeroed(1, sizeof *d);
    d->config = *config;
    *device = d;
    return HP_OK;
}

/* The hot path: the task's kernel, on its operands, complete on return. Allocates nothing. */
static hp_status null_run(hp_device *d, int task, const hp_step *step, hp_error *err) {
    (void)step; /* learning rate, seed of dropout: what differs from step to step */
    (void)err;
    HP_ASSERT(task >= 0 && task < d->config.role->n_task);
    return HP_OK;
}

static void null_close(hp_device *d) {
    free(d);
}

/* What is not named is absent: begin and enqueue are for memory with streams (exec/base/exec_memory.h), tuning is for
 * kernels that are chosen by timing them. */
const hp_device_ops hp_device_null = {
    .name = "null",
    .dtype = HP_F32,
    .open = null_open,
    .run = null_run,
    .close = null_close,
    .memory = &hp_memory_host,
};
