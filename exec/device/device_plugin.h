/* device_plugin.h - devices that hplan-exec finds at run time: each is a shared library beside the program,
 * so that the program starts even where that library's dependencies are not installed. */
#ifndef HP_DEVICE_PLUGIN_H
#define HP_DEVICE_PLUGIN_H

#include "exec/comm/comm.h"
#include "exec/device/device.h"

enum { HP_PLUGIN_VERSION = 3 };

/* The GPU of this process and the number of GPUs on the node. Rates are those of a data sheet, as far as the
 * driver tells clocks and widths; 0: unknown. */
typedef struct hp_gpu_facts {
    char name[128]; /* "NVIDIA H200" */
    int32_t count;
    int32_t major, minor; /* compute capability */
    int32_t processors;
    int64_t memory_bytes;
    double flops_per_s, bytes_per_s; /* float32 outside tensor cores; memory */
} hp_gpu_facts;

typedef struct hp_plugin {
    int32_t version; /* HP_PLUGIN_VERSION of the program that it was built with */
    /* What it finds, for example "CUDA 13.0, cuDNN 9.19.0, NCCL 2.28.9; NVIDIA H200". Never an error. */
    const char *(*describe)(char *out, size_t n);
    /* Errors: HP_EUNAVAIL (no GPU). */
    hp_status (*facts)(hp_gpu_facts *facts, hp_error *err);
    const hp_device_ops *device, *deployed;
    /* NCCL for data in `memory`, on top of another communicator, which it takes over. Collective: over all
     * ranks. Errors: HP_EUNAVAIL. */
    hp_status (*nccl)(hp_comm *inner, const hp_memory *memory, hp_comm **comm, hp_error *err);
} hp_plugin;

/* Loads a device's library: the environment's HPLAN_<NAME>, else libhplan-<name>.so beside the program, else
 * in ../lib/hplan from there. It stays loaded. Errors: HP_EUNAVAIL, naming what is missing. */
hp_status hp_plugin_load(const hp_device_info *device, const hp_plugin **plugin, hp_error *err);
/* Where the library is searched, whether or not it exists; NULL: nowhere. */
const char *hp_plugin_path(const hp_device_info *device, char *out, size_t n);

/* Prefix of the symbol that the library exports, an hp_plugin: hp_plugin_of_<name>. */
#define HP_PLUGIN_SYMBOL "hp_plugin_of_"

#endif
