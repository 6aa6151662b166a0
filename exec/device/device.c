/* device.c - the list of devices; a new one is a row here. */
#include "exec/device/device.h"
#include "exec/device/plugin.h"

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

hp_status hp_device_named(const char *name, bool deployed, const hp_device_ops **ops, hp_error *err) {
    const hp_plugin *plugin;
    *ops = hp_device_find(name, deployed);
    if (*ops) return HP_OK;
    if (strcmp(name, "cuda") != 0)
        return hp_fail(err, HP_EUNAVAIL, "hplan-exec has no device `%s`: run with --device cpu, cuda or ref",
                       name);
    HP_TRY(hp_plugin_cuda(&plugin, err));
    *ops = deployed ? plugin->deployed : plugin->device;
    return HP_OK;
}

hp_status hp_device_share(const char *name, const hp_program *p, hp_error *err) {
    const hp_plugin *plugin;
    if (strcmp(name, "cuda") != 0) return HP_OK;
    HP_TRY(hp_plugin_cuda(&plugin, err));
    plugin->share(p->n_role, p->clients);
    return HP_OK;
}
