/* exec_interp.h - the program on real devices: the rules of sim/engine/sim.h, in real time.
 *
 * The compute queue runs in order on the device. Messages and collectives start, in their queues' order, as
 * soon as their dependencies are done; they make progress only between compute tasks and while the compute
 * queue waits.
 *
 * Tasks are enqueued on a device with streams ahead of time: where both ends of a dependency are ordered by
 * its events, the second may start as soon as the first has started. Whatever else waits for a task waits
 * until its event is reached. From the second step on, runs of tasks that wait for nothing but each other are
 * launched by one call, where the device can capture them (graph_segments.h). */
#ifndef HP_EXEC_INTERP_H
#define HP_EXEC_INTERP_H

#include "exec/interp/exec_clock.h"
#include "exec/comm/comm.h"
#include "exec/device/device.h"
#include "exec/interp/watchdog.h"
#include "traces/trace_ring.h"

#include <signal.h>

typedef struct hp_interp_config {
    const hp_program *program;
    const hp_graph *graph;
    const hp_role *role;
    int32_t replica;
    const hp_memory *memory; /* the memory of the device */
    unsigned char *arena;    /* role->arena_bytes, in its memory */
    const hp_device_ops *ops;
    hp_device *device; /* the device for this program and role */
    /* Fills the operands of a load task (either may be NULL) with their boxes of micro-batch `micro` of
     * iteration `iter`. */
    hp_status (*load)(void *loader, int32_t iter, int32_t micro, void *x, hp_dtype x_dtype,
                      const hp_box *x_box, void *labels, const hp_box *label_box, hp_error *err);
    void *loader;
    /* Stores a box of the network's output, dense elements of `dtype`; NULL: it is not wanted. */
    hp_status (*store)(void *sink, int32_t iter, int32_t micro, const void *data, const hp_box *box,
                       hp_dtype dtype, hp_error *err);
    void *sink;
    /* Called after a compute task, of deployed programs, for calibration; NULL. */
    hp_status (*observe)(void *observer, int32_t task, hp_error *err);
    void *observer;
    hp_comm *comm; /* joined to the program */
    const hp_clock *clock;
    hp_ring *ring; /* NULL: no spans */
    hp_watch *watch;
    const volatile sig_atomic_t *stop; /* a signal's number once one came; NULL */
    bool yield;                        /* ranks share cores: give the core away while waiting */
    int64_t n_steps; /* there will be, numbered one after the other: with a device's memory the next one's
                        images are read meanwhile, by a thread that calls `load`. At most 1: none is */
} hp_interp_config;

typedef struct hp_interp hp_interp;

/* Copies the config. Errors: of a device with streams. */
hp_status hp_interp_new(const hp_interp_config *config, hp_interp **in, hp_error *err);
void hp_interp_free(hp_interp *in);

/* One step of the program: all its tasks, recorded as iteration `iter`. The metric buffer is zeroed first and
 * holds the step's sums after. `limit_s`: longest wait without any task done. Collective: over all ranks.
 * Errors: HP_ESTALL naming the operation and the rank to blame, 128+n after a signal, and what the device,
 * the loader and the communicator report. */
hp_status hp_interp_step(hp_interp *in, const hp_step *step, int32_t iter, double limit_s, hp_error *err);

/* Repeats the step that was just done, to inspect what its tasks write: calls `observe` after every compute
 * task and records nothing. Needs a device whose calls return when the work is complete, that is, without
 * streams. Collective and errors: as hp_interp_step. */
hp_status hp_interp_again(hp_interp *in, const hp_step *step, int32_t iter, double limit_s,
                          hp_status (*observe)(void *observer, int32_t task, hp_error *err), void *observer,
                          hp_error *err);

/* End of the highest buffer that a task has used so far, persistent ones included: equals role->arena_bytes.
 */
int64_t hp_interp_peak_bytes(const hp_interp *in);

/* Per task of the role: bytes that this rank handed to sends, or to copies of its peers, in all steps so
 * far. */
const int64_t *hp_interp_sent_bytes(const hp_interp *in);

/* The metric buffer as it was at the end of the step: HP_METRICS sums. */
const double *hp_interp_metric(const hp_interp *in);

#endif
