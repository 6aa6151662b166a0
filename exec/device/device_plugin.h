/* device_plugin.h - devices that hplan-exec finds at run time or does without: a shared library beside the program, so
 * that the program itself starts where what such a device links is not installed. */
#ifndef HP_DEVICE_PLUGIN_H
#define HP_DEVICE_PLUGIN_H

#include "exec/comm/comm.h"
#include "exec/device/device.h"

enum { HP_PLUGIN_VERSION = 3 };

/* The GPU of this process and how many there are on the node; rates of its data sheet as far as the driver
 * tells clocks and widths, 0: it does not. */
typedef struct hp_gpu_facts {
    char name[128]; /* "NVIDIA H200" */
    int32_t count;
    int32_t major, minor; /* compute capability */
    int32_t processors;
    int64_t memory_bytes;
    double flops_per_s, bytes_per_s; /* float32 outside of tensor cores; memory */
} hp_gpu_facts;

typedef struct hp_plugin {
    int32_t version; /* HP_PLUGIN_VERSION of the program it was built with */
    /* "CUDA 13.0, cuDNN 9.19.0, NCCL 2.28.9; NVIDIA H200"; what it finds, never an error. */
    const char *(*describe)(char *out, size_t n);
    /* Errors: HP_EUNAVAIL (no GPU). */
    hp_status (*facts)(hp_gpu_facts *facts, hp_error *err);
    const hp_device_ops *device, *deployed;
    /* NCCL beside another communicator, which it takes over, for what lies in `memory`. Collective: over all
     * ranks. Errors: HP_EUNAVAIL. */
    hp_status (*nccl)(hp_comm *inner, const hp_memory *memory, hp_comm **comm, hp_error *err);
} hp_plugin;

/* A device's library: what the environment's HPLAN_<NAME> says, else libhplan-<name>.so beside the program, else
 * in ../lib/hplan from there. Stays loaded. Errors: HP_EUNAVAIL, what is missing. */
hp_status hp_plugin_load(const hp_device_info *device, const hp_plugin **plugin, hp_error *err);
/* Where it is looked for, which need not be there; NULL: nowhere. */
const char *hp_plugin_path(const hp_device_info *device, char *out, size_t n);

/* What the library exports, an hp_plugin: hp_plugin_of_<name>. */
#define HP_PLUGIN_SYMBOL "hp_plugin_of_"

#endif
