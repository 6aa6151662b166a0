/* machine.h - what programs run on: nodes of devices, links within a node, NICs shared by a node's
 * devices. */
#ifndef HP_MACHINE_H
#define HP_MACHINE_H

#include "base/arena.h"
#include "base/status.h"
#include "machines/device/device_kind.h"
#include "machines/device_class.h"
#include "machines/mix.h"

#include <stdbool.h>
#include <stdint.h>

/* Which NIC of a node each device sends through: machines/network.h. */
typedef enum hp_nic_use { HP_NICS_SHARED, HP_NICS_NEAR, HP_NICS_RAILS, HP_NIC_USES } hp_nic_use;
extern const char *const hp_nic_use_names[HP_NIC_USES];

enum { HP_MACHINE_ASSUMED = 448 };

typedef struct hp_machine {
    char name[64];
    char source[256]; /* source of the figures */
    int32_t nodes;
    int32_t devices_per_node;
    int32_t cores_per_node; /* cpu devices: cores shared by ranks if there are more ranks */
    int32_t nics_per_node;  /* per node, for all of its devices */
    int32_t nic_use;        /* hp_nic_use */
    hp_device_class device; /* class of all devices, or the first of several classes */
    hp_mix mix;             /* the other classes and the slow devices; zero: all are alike */
    hp_link_class intra;    /* between two devices of a node */
    hp_link_class inter;    /* one NIC */
    double taper;   /* oversubscription above the leaf switches, 2 for a 2:1 fat tree; 0 and 1: none */
    int32_t leaf;   /* nodes under a leaf switch; 0: not known */
    bool any_size;  /* a product: any number of its nodes can be had; else there are as many as it says */
    bool sharp;     /* its switches add up what passes them (SHARP), which NCCL uses */
    char mpi[24];   /* which library its MPI is, of those that cost tables know; "": not said */
    bool share_cpu; /* compute tasks of a node's ranks contend for its cores and memory */
    char assumed
        [HP_MACHINE_ASSUMED]; /* what a file did not say; "": nothing. Not part of the machine's text */
} hp_machine;

/* A node's GPUs as the driver describes them; rates of 0 are unknown. */
typedef struct hp_gpu {
    char name[128]; /* "NVIDIA H200" */
    int32_t count;
    int64_t memory_bytes;
    double flops_per_s, bytes_per_s;
} hp_gpu;
/* This node's GPUs as a machine, named by `device`. Its device class is the GPU's ("h200"), or a new one
 * ("nvidia-titan-v"). Errors: HP_EUNAVAIL. */
hp_status hp_machine_of_gpus(const hp_device_info *device, const hp_gpu *g, hp_machine *m, hp_error *err);

/* $XDG_CACHE_HOME/hplan/FILE: the user's cache, which holds calibrations of this machine. */
const char *hp_cache_path(const char *file, char *out, size_t n);

/* Loads "local" (this machine), "local-<device>" (its GPUs, once `hplan calibrate` has measured them), a
 * shipped name, a file, or a description: a word that contains = and names no file. */
hp_status hp_machine_load(const char *what, hp_machine *m, hp_error *err);
/* Canonical text of a machine (docs/machines.md): equal machines have equal text. */
char *hp_machine_text(hp_arena *arena, const hp_machine *m);
/* A node's devices as text: "4 x a100-80", or "2 x a100-80 + 2 x v100-16". The slow devices as text:
 * "slow=3:70%", or nothing. */
const char *hp_machine_node_text(hp_arena *arena, const hp_machine *m);
const char *hp_machine_slow_text(hp_arena *arena, const hp_machine *m);
/* Fills missing fields from the data sheet of the device. Errors: HP_EDATA, listing everything wrong. */
hp_status hp_machine_parse(const char *text, const char *where, hp_machine *m, hp_error *err);
/* Applies a what-if change: "nodes=16", "nic=2x", "a100.memory=80G", or a clause of its text. Errors:
 * HP_EUSAGE. */
hp_status hp_machine_set(hp_machine *m, const char *change, hp_error *err);
/* Comma-separated shipped names, for messages. */
const char *hp_machine_names(void);

/* Ratio of a leaf switch's NICs to its uplinks when all its nodes send at once; at least 1. */
static inline double hp_machine_taper(const hp_machine *m) {
    return m->taper > 1 ? m->taper : 1;
}

static inline int hp_machine_devices(const hp_machine *m) {
    return m->nodes * m->devices_per_node;
}

/* Are there several classes of devices? */
static inline bool hp_machine_mixed(const hp_machine *m) {
    return m->mix.n_class > 0 || m->mix.n_slow > 0;
}

/* Number of device classes; class 0 is m->device. */
static inline int hp_machine_classes(const hp_machine *m) {
    return 1 + m->mix.n_class;
}
static inline const hp_device_class *hp_machine_class(const hp_machine *m, int class) {
    return class == 0 ? &m->device : &m->mix.class[class - 1];
}

/* Class of a device, numbered node by node, and its speed as a fraction of its class's. */
int hp_machine_class_at(const hp_machine *m, int device);
double hp_machine_speed_at(const hp_machine *m, int device);

/* The same machine with all devices of that class, at full speed. */
hp_machine hp_machine_of_class(const hp_machine *m, int class);

#endif
