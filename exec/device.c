/* device.c - the list of devices; a new one is a row here. */
#include "exec/device.h"

#include <string.h>

static const struct {
    const char *option;
    const hp_device_ops *ops;
} devices[] = {
    {"cpu", &hp_device_onednn},
    {"ref", &hp_device_ref},
};

const hp_device_ops *hp_device_find(const char *name) {
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(devices[i].option, name) == 0) return devices[i].ops;
    return NULL;
}
