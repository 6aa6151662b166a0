/* device.c - maps a row of machines/device/devices.def to the device's operations. */
#include "exec/device/device.h"
#include "exec/device/device_plugin.h"

const hp_device_ops *hp_device_built_in(const hp_device_info *device, bool deployed) {
    static const hp_device_ops *const ops[HP_DEVICES][2] = {
#define BUILT_IN(trains, infers) &trains, &infers
#define PLUGIN                   NULL, NULL
#define DEVICE(id, name, dtype, trains, infers, heads, backends, own, where, memory, loaded)                 \
    [HP_DEVICE_##id] = {loaded},
#include "machines/device/devices.def"
    };
    return ops[device->kind][deployed];
}

hp_status hp_device_load(const hp_device_info *device, bool deployed, const hp_device_ops **ops,
                         hp_error *err) {
    const hp_plugin *plugin;
    *ops = hp_device_built_in(device, deployed);
    if (*ops) return HP_OK;
    HP_TRY(hp_plugin_load(device, &plugin, err));
    *ops = deployed ? plugin->deployed : plugin->device;
    return HP_OK;
}
