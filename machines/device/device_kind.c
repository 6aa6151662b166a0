/* device_kind.c - the table of devices, and queries on it. */
#include "machines/device/device_kind.h"

#include "networks/graph/precision.h"

#include <string.h>

const char *const hp_backend_names[] = {"own", "mpi", "nccl", "shm", NULL};

/* Words used in the table. */
enum {
    FP32 = 1 << HP_PREC_FP32,
    TF32 = 1 << HP_PREC_TF32,
    BF16 = 1 << HP_PREC_BF16,
    FP16 = 1 << HP_PREC_FP16,
    INT8 = 1 << HP_PREC_INT8,
    INT8_DYNAMIC = 1 << HP_PREC_INT8_DYNAMIC
};
enum {
    OWN = 1 << HP_BACKEND_OWN,
    MPI = 1 << HP_BACKEND_MPI,
    NCCL = 1 << HP_BACKEND_NCCL,
    SHM = 1 << HP_BACKEND_SHM
};
#define BUILT_IN(trains, infers) false
#define PLUGIN                   true
#define MACHINE_HOST(name)       "local"
#define MACHINE_GPU(name)        "local-" name

const hp_device_info hp_devices[HP_DEVICES] = {
#define DEVICE(id, text, type, training, inference, heads, libraries, own, where, memory, loaded)            \
    [HP_DEVICE_##id] = {.name = text,                                                                        \
                        .kind = HP_DEVICE_##id,                                                              \
                        .dtype = HP_##type,                                                                  \
                        .trains = training,                                                                  \
                        .infers = inference,                                                                 \
                        .head_channels = heads,                                                              \
                        .backends = libraries,                                                               \
                        .own_backend = HP_BACKEND_##own,                                                     \
                        .place = HP_PLACE_##where,                                                           \
                        .machine = MACHINE_##where(text),                                                    \
                        .plugin = loaded},
#include "machines/device/devices.def"
};

const char hp_device_bar_names[] =
#define DEVICE(id, name, dtype, trains, infers, heads, backends, own, where, memory, loaded) "|" name
#include "machines/device/devices.def"
    ;

#define ON_HOST(text) text
#define ON_GPU(text)
const char hp_device_bar_names_on_host[] =
#define DEVICE(id, name, dtype, trains, infers, heads, backends, own, where, memory, loaded)                 \
    ON_##where("|" name)
#include "machines/device/devices.def"
    ;

#define LISTED_HOST(name)
#define LISTED_GPU(name) ", local-" name
const char hp_device_machines[] = "local"
#define DEVICE(id, name, dtype, trains, infers, heads, backends, own, where, memory, loaded)                 \
    LISTED_##where(name)
#include "machines/device/devices.def"
    ;

const hp_device_info *hp_device_of_machine(const char *machine) {
    for (int i = 0; i < HP_DEVICES; i++)
        if (strcmp(hp_devices[i].machine, machine) == 0) return &hp_devices[i];
    return NULL;
}

const hp_device_info *hp_device_by_default(const char *machine, bool is_cpu) {
    const hp_device_info *here = hp_device_of_machine(machine);
    if (here && hp_device_on_gpu(here) != is_cpu) return here;
    for (int i = 0; i < HP_DEVICES; i++)
        if (hp_device_on_gpu(&hp_devices[i]) != is_cpu) return &hp_devices[i];
    return NULL; /* the table has both */
}

hp_status hp_device_find(const char *name, const hp_device_info **device, hp_error *err) {
    for (int i = 0; i < HP_DEVICES; i++) {
        *device = &hp_devices[i];
        if (strcmp(hp_devices[i].name, name) == 0) return HP_OK;
    }
    *device = NULL;
    return hp_fail(err, HP_EUSAGE, "no device is called '%.40s'; choose %s", name, HP_DEVICE_NAMES);
}

bool hp_device_computes(const hp_device_info *d, int32_t prec, bool infer) {
    return !d || ((infer ? d->infers : d->trains) >> prec & 1);
}

bool hp_device_has_backend(const hp_device_info *d, hp_backend backend) {
    return !d || (d->backends >> backend & 1);
}
