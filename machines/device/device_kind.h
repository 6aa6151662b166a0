/* device_kind.h - the devices that a plan may be made for, from machines/device/devices.def: the facts that
 * the strategy's rules, the planner and the executor's choice of a device need. plan/memory/memory_device.h
 * has a device's memory needs, exec/device/device.h its operations. */
#ifndef HP_DEVICE_KIND_H
#define HP_DEVICE_KIND_H

#include "base/status.h"
#include "networks/graph/dtype.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum hp_device_kind {
#define DEVICE(id, name, dtype, trains, infers, heads, backends, own, where, memory, loaded) HP_DEVICE_##id,
#include "machines/device/devices.def"
    HP_DEVICES
} hp_device_kind;

/* Back ends for messages and collectives, in the order of plan.db. */
typedef enum hp_backend {
    HP_BACKEND_OWN, /* MPI messages between pairs; collectives as the steps of plan/collectives */
    HP_BACKEND_MPI, /* MPI messages; the library's own collectives */
    HP_BACKEND_NCCL,
    HP_BACKEND_SHM, /* ranks of a node read each other's memory; collectives as steps over such messages */
    HP_BACKENDS
} hp_backend;
extern const char *const hp_backend_names[]; /* "own", "mpi", "nccl", "shm", NULL */

/* Do the back end's collectives run the steps of plan/collectives? If not, they are a library's own. */
static inline bool hp_backend_steps(int32_t backend) {
    return backend == (int32_t)HP_BACKEND_OWN || backend == (int32_t)HP_BACKEND_SHM;
}

/* Most channels per head for which exec/cuda/train has kernels: a head's queries, keys and sums lie in
 * registers and shared memory. */
enum { HP_GPU_HEAD_CHANNELS = 256 };

typedef enum hp_device_place { HP_PLACE_HOST, HP_PLACE_GPU } hp_device_place;

typedef struct hp_device_info {
    const char *name; /* name for --device */
    hp_device_kind kind;
    hp_dtype dtype;          /* element type of its programs */
    uint32_t trains, infers; /* precisions: 1 << hp_prec */
    int32_t head_channels;   /* most channels per attention head; 0: any number */
    uint32_t backends;       /* 1 << hp_backend */
    hp_backend own_backend;  /* the back end meant by comm=auto */
    hp_device_place place;
    const char *machine; /* name of the local machine: "local" for the host, "local-<name>" for GPUs */
    bool plugin;         /* its operations are in a separate shared library */
} hp_device_info;

extern const hp_device_info hp_devices[HP_DEVICES];

/* Finds a device by name. Errors: HP_EUSAGE, listing the valid names. */
hp_status hp_device_find(const char *name, const hp_device_info **device, hp_error *err);

/* Names for help and messages: "cpu|ref|...", of all devices and of those on the host. */
extern const char hp_device_bar_names[], hp_device_bar_names_on_host[]; /* after a bar */
#define HP_DEVICE_NAMES         (&hp_device_bar_names[1])
#define HP_DEVICE_NAMES_ON_HOST (&hp_device_bar_names_on_host[1])

/* "local, local-...": the local machines. */
extern const char hp_device_machines[];
/* The device of a local machine; NULL: the machine is not local. */
const hp_device_info *hp_device_of_machine(const char *machine);
/* The default device of a machine: the local device of that name, otherwise the first in the table for that
 * kind. */
const hp_device_info *hp_device_by_default(const char *machine, bool is_cpu);

/* NULL stands for a device that has everything; its memory and costs are the CPU's. */
static inline hp_device_kind hp_device_kind_of(const hp_device_info *d) {
    return d ? d->kind : HP_DEVICE_CPU;
}

static inline bool hp_device_on_gpu(const hp_device_info *d) {
    return d->place == HP_PLACE_GPU;
}

/* Does it train, or infer, in this precision (hp_prec)? NULL: a device that supports all, for tests and
 * proofs. */
bool hp_device_computes(const hp_device_info *d, int32_t prec, bool infer);

/* Does the back end carry messages of this device? NULL: a device that supports all. */
bool hp_device_has_backend(const hp_device_info *d, hp_backend backend);

#endif
