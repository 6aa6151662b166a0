/* device.c - the list of devices; a new one is a row here. */
#include "exec/device.h"

#include <string.h>

static const struct {
    const char *option;
    const hp_device_ops *ops, *deployed;
} devices[] = {
    {"cpu", &hp_device_onednn, &hp_device_infer_cpu},
    {"ref", &hp_device_ref, &hp_device_infer_ref},
};

const hp_device_ops *hp_device_find(const char *name, bool deployed) {
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(devices[i].option, name) == 0) return deployed ? devices[i].deployed : devices[i].ops;
    return NULL;
}
