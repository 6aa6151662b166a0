/* plugin.c - finds and loads the GPU's part. */
#include "exec/device/plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const PLACES[] = {"libhplan-cuda.so", "../lib/hplan/libhplan-cuda.so"};

/* The folder of this program, without the slash. */
static void own_folder(char *out, size_t n) {
    const ssize_t length = readlink("/proc/self/exe", out, n - 1);
    out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash) *slash = '\0';
}

static bool find(char *path, size_t n) {
    char folder[3072];
    const char *named = getenv("HPLAN_CUDA");
    if (named) {
        snprintf(path, n, "%s", named);
        return true;
    }
    own_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        snprintf(path, n, "%s/%s", folder, PLACES[i]);
        if (access(path, R_OK) == 0) return true;
    }
    return false;
}

const char *hp_plugin_path(char *out, size_t n) {
    return find(out, n) ? out : NULL;
}

static hp_status check(const hp_plugin *p, const char *path, hp_error *err) {
    if (!p) return hp_fail(err, HP_EUNAVAIL, "%s is no part of hplan: it lacks hp_plugin_of_cuda", path);
    if (p->version != HP_PLUGIN_VERSION)
        return hp_fail(err, HP_EUNAVAIL, "%s is of another version of hplan (%d, wanted %d)", path,
                       (int)p->version, (int)HP_PLUGIN_VERSION);
    return HP_OK;
}

hp_status hp_plugin_cuda(const hp_plugin **plugin, hp_error *err) {
    static const hp_plugin *loaded;
    char path[4096];
    *plugin = loaded;
    if (loaded) return HP_OK;
    if (!find(path, sizeof path))
        return hp_fail(
            err, HP_EUNAVAIL,
            "this hplan-exec was installed without its GPU part, libhplan-cuda.so: run with --device "
            "cpu, or build with -DHP_WITH_CUDA=ON");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return hp_fail(err, HP_EUNAVAIL, "device cuda: %s; is CUDA installed here?", dlerror());
    const hp_plugin *p = dlsym(library, "hp_plugin_of_cuda");
    HP_TRY(check(p, path, err));
    *plugin = loaded = p;
    return HP_OK;
}
