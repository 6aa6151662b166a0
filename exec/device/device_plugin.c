/* device_plugin.c - finds and loads the library of a device that is not linked into this program. */
#include "exec/device/device_plugin.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of this program, without a trailing slash. */
static void own_folder(char *out, size_t n) {
    const ssize_t length = readlink("/proc/self/exe", out, n - 1);
    out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash) *slash = '\0';
}

/* "CUDA" for "cuda", as in build options and environment variables. */
static const char *upper_name(const hp_device_info *d, char out[32]) {
    size_t i = 0;
    for (; d->name[i] && i < 31; i++) out[i] = (char)toupper((unsigned char)d->name[i]);
    out[i] = '\0';
    return out;
}

static bool find_library(const hp_device_info *d, char *path, size_t n) {
    static const char *const places[] = {"", "../lib/hplan/"};
    char folder[3072], upper[32], variable[48];
    snprintf(variable, sizeof variable, "HPLAN_%s", upper_name(d, upper));
    const char *named = getenv(variable);
    if (named) {
        snprintf(path, n, "%s", named);
        return true;
    }
    own_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, n, "%s/%slibhplan-%s.so", folder, places[i], d->name);
        if (access(path, R_OK) == 0) return true;
    }
    return false;
}

const char *hp_plugin_path(const hp_device_info *device, char *out, size_t n) {
    return device->plugin && find_library(device, out, n) ? out : NULL;
}

static hp_status check_version(const hp_plugin *p, const char *symbol, const char *path, hp_error *err) {
    if (!p) return hp_fail(err, HP_EUNAVAIL, "%s is no part of hplan: it lacks %s", path, symbol);
    if (p->version != HP_PLUGIN_VERSION)
        return hp_fail(err, HP_EUNAVAIL, "%s is of another version of hplan (%d, wanted %d)", path,
                       (int)p->version, (int)HP_PLUGIN_VERSION);
    return HP_OK;
}

static hp_status not_installed(const hp_device_info *d, hp_error *err) {
    char upper[32];
    return hp_fail(err, HP_EUNAVAIL,
                   "this hplan-exec was installed without its GPU part, libhplan-%s.so: run with --device "
                   "%s, or build with -DHP_WITH_%s=ON",
                   d->name, hp_devices[HP_DEVICE_CPU].name, upper_name(d, upper));
}

hp_status hp_plugin_load(const hp_device_info *device, const hp_plugin **plugin, hp_error *err) {
    char path[4096], symbol[64], upper[32];
    *plugin = NULL;
    if (!device->plugin)
        return hp_fail(err, HP_EUNAVAIL, "device %s is part of hplan-exec, it is no plug-in", device->name);
    if (!find_library(device, path, sizeof path)) return not_installed(device, err);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* loaded once; later calls only count references */
    if (!library)
        return hp_fail(err, HP_EUNAVAIL, "device %s: %s; is %s installed here?", device->name, dlerror(),
                       upper_name(device, upper));
    snprintf(symbol, sizeof symbol, HP_PLUGIN_SYMBOL "%s", device->name);
    const hp_plugin *p = dlsym(library, symbol);
    HP_TRY(check_version(p, symbol, path, err));
    *plugin = p;
    return HP_OK;
}
