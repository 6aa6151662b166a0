/* table.h - cost tables: how long a task takes, the source of the figure, and its uncertainty.
 *
 * A table is a text file: "hplan-cost 2", "machine NAME", "date YYYY-MM-DD", then one row per line, sorted:
 *     KIND CLASS KEY | source residual samples where it comes from | x:y x:y ...
 * compute     a device class and hp_work.key; x is hp_work.size, y seconds
 * fit         a device class and a family ("fwd.conv f32"): t = launch + flops/R + bytes/B of measured rows
 * efficiency  a device class and a family: fractions of the data sheet's peak rate in the family's type, and
 *             of its bandwidth
 * share       a device class and a family: share of the node's compute, or of its device, that the operation
 *             takes
 * tile        a device class and a type, or "dense" and a type: how a library tiles a matrix product, and its
 *             rates
 * attend      a device class, "attention" or "causal", and a type: the same for fused attention
 * block       a device class: most bytes per second that one thread block of a GPU moves
 * link        a link class: fractions of the data sheet's latency and bandwidth; rate of the link on which
 *             rows of this class were measured (0: the machine's), for conversion to another machine's
 * path        a link class and a back end ("mpi", "nccl", "shm"; "ipc": MPI's messages between GPUs of a
 *             node): its overhead over the link if nothing was measured
 * regime      a link class and "LIBRARY near|far eager|direct|pipelined": a message between GPUs by that MPI
 *             library
 * stage       a link class and "LIBRARY OPERATION": a collective that the library stages through host memory
 * p2p         a link class and the back end ("": MPI's messages between processors); x bytes, y seconds
 * yardstick   a device or link class and "NAME rN" with N ranks computing at a time on the node
 * jitter      a device class: variation of a task's time around its mean
 * error       a device class and what was predicted ("step"): prediction error against separate measurements
 * collective  a link class (for some GPUs a device class) and "OP BACKEND.ALGORITHM rRANKS nPER_NODE";
 *             without ALGORITHM: the library's own choice; without both: published for no particular back
 *             end. x: bytes of the whole data, y: seconds. The whole data is the data of an all-reduce,
 *             broadcast or reduce; the sum of all parts, if there are parts; what one rank sends in an
 *             all-to-all
 *
 * "processor TEXT", "driver TEXT" and "status TEXT" may follow the date: they name the measured processor. A
 * table of GPUs has status `one GPU` or `cluster`; figures of a GPU that hplan did not measure have `never
 * run`. table_text.c gives the grammar. Every constant has a source. */
#ifndef HP_TABLE_H
#define HP_TABLE_H

#include "plan/collectives/collective.h"
#include "machines/machine.h"
#include "plan/program/program.h"
#include "plan/program/work.h"
#include "traces/trace_ring.h"

typedef enum hp_source {
    HP_SOURCE_MEASURED,
    HP_SOURCE_PAPER,
    HP_SOURCE_DATASHEET,
    HP_SOURCE_GUESS
} hp_source;
extern const char *const hp_source_names[];

#define HP_INTERVAL_Z 1.6448536269514722 /* 0.95 quantile of the standard normal distribution */

typedef struct hp_cost {
    double seconds;
    double low, high; /* 90 % interval given by the row's residual */
    hp_source source;
} hp_cost;

typedef struct hp_cost_table hp_cost_table;

/* Slowdown of each class of operation relative to the quiet machine; 1: as fast. */
typedef struct hp_speed {
    double slowdown[HP_SPEED_CLASSES];
} hp_speed;

/* Loads FILE.cost. NULL: for the local machine, the calibrated default ($XDG_CACHE_HOME/hplan/local.cost; for
 * its GPUs local-<device>.cost) if it exists. Missing rows come from the shipped table of known devices, then
 * from the machine's data sheet. Lives in `arena`. Errors: HP_EDATA, HP_EIO. */
hp_status hp_cost_load(hp_arena *arena, const char *file, const hp_machine *m, hp_cost_table **t,
                       hp_error *err);
/* The table's origin as text: "local.cost of 2026-11-21", "shipped", "data sheet". */
const char *hp_cost_origin(const hp_cost_table *t);
/* The measured processor as its system names it; "" if the table does not say. */
const char *hp_cost_processor(const hp_cost_table *t);
/* The class whose efficiencies stand in if no table has rows of the machine's device class; NULL: none. */
const char *hp_cost_stand_in(const hp_cost_table *t, const hp_machine *m);
/* Where calibrate writes the table of a local machine ("local") by default. */
const char *hp_cost_machine_path(const char *machine, char *out, size_t n);

/* The speed for which costs are given. Rows hold times on the quiet machine; costs are those at the table's
 * speed, by default the usual one of its calibration (see hp_cost_at). */
const hp_speed *hp_cost_speed(const hp_cost_table *t);
hp_speed hp_speed_quiet(void);
/* The same table at another speed; shares its rows. Lives in `arena`. */
hp_cost_table *hp_cost_at(hp_arena *arena, const hp_cost_table *t, const hp_speed *speed);

/* Cost of one compute task alone on its device. Uses measured rows of the key (piecewise linear in the size),
 * otherwise a fitted model of the key's operator, otherwise the machine's roofline. */
hp_cost hp_cost_compute(const hp_cost_table *t, const hp_machine *m, const hp_work *w);
/* Seconds that a thread block of a kernel ("fwd.bn") takes per element that it reads or writes on the
 * machine's GPUs; 0: unknown. */
double hp_cost_block_seconds(const hp_cost_table *t, const hp_machine *m, const char *kernel, int blocks);
/* Share of the shared resource that the task uses while it runs. On CPUs, that is the node's compute (cores
 * and memory bandwidth together). If several ranks share a device (AccDP), it is the device, except during
 * the launch, when the device is idle. Tasks whose shares sum to more than 1 slow each other down
 * (max-min). */
double hp_cost_share(const hp_cost_table *t, const hp_machine *m, const hp_work *w);

/* The back end that carries data between devices: 1 + hp_backend. ANY: no particular one, the link as the
 * machine describes it. */
typedef enum hp_wire {
    HP_WIRE_ANY = HP_COMM_AUTO,
    HP_WIRE_OWN = 1 + HP_BACKEND_OWN,
    HP_WIRE_MPI = 1 + HP_BACKEND_MPI,
    HP_WIRE_NCCL = 1 + HP_BACKEND_NCCL,
    HP_WIRE_SHM = 1 + HP_BACKEND_SHM
} hp_wire;
static inline bool hp_wire_between_gpus(const hp_machine *m, int32_t device_kind) {
    return !m->device.is_cpu && hp_device_on_gpu(&hp_devices[device_kind]);
}
/* The wire of a back end's messages between devices that run a program of this kind. Between processors,
 * MPI's messages are those of the link. */
static inline hp_wire hp_wire_of(const hp_machine *m, int32_t device_kind, int32_t backend) {
    const bool shared = m->device.is_cpu && backend == (int32_t)HP_BACKEND_SHM;
    return shared || hp_wire_between_gpus(m, device_kind) ? (hp_wire)(1 + backend) : HP_WIRE_ANY;
}
/* The wire of collectives; processors, too, have several back ends. */
static inline hp_wire hp_wire_of_collective(const hp_machine *m, int32_t device_kind, int32_t backend) {
    return m->device.is_cpu || hp_wire_between_gpus(m, device_kind) ? (hp_wire)(1 + backend) : HP_WIRE_ANY;
}

/* Cost of one message, alone on its links. */
hp_cost hp_cost_p2p(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node, double bytes);

typedef struct hp_collective_call {
    hp_wire by;
    hp_algorithm algorithm; /* the plan's algorithm; LIBRARY: the back end's own choice */
    hp_collective what;
    int32_t ranks, per_node; /* on each node */
} hp_collective_call;
/* Cost of one collective on this many bytes of the whole data, alone on its links. */
hp_cost hp_cost_collective(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                           double bytes);

#endif
