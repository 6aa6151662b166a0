/* run_version.c - `hplan-exec --version`: one JSON object, which `hplan doctor` reads. Does not call
 * MPI_Init, so that it works on any node. */
#include "exec/run/run_version.h"

#include "exec/comm/comm.h"
#include "exec/device/cpu/cpu_onednn.h"
#include "exec/device/device_plugin.h"
#include "base/version.h"

#include <jansson.h>

/* NULL: no GPU. */
static json_t *gpu_facts(const hp_plugin *plugin) {
    hp_gpu_facts f;
    hp_error none;
    if (plugin->facts(&f, &none) != HP_OK) return NULL;
    return json_pack("{s:s, s:i, s:I, s:f, s:f}", "name", f.name, "count", (int)f.count, "memory_bytes",
                     (json_int_t)f.memory_bytes, "flops_per_s", f.flops_per_s, "bytes_per_s", f.bytes_per_s);
}

static json_t *text_or_null(const char *text) {
    return text ? json_string(text) : json_null();
}

static void set_member(json_t *o, const char *device, const char *suffix, const char *text) {
    char key[64];
    snprintf(key, sizeof key, "%s%s", device, suffix);
    json_object_set_new(o, key, text_or_null(text));
}

/* Adds what a plug-in finds on this host, or what is missing, and the plug-in's path. */
static void add_plugin(json_t *o, const hp_device_info *d) {
    const hp_plugin *plugin = NULL;
    char text[512], path[4096];
    hp_error why = {.code = HP_OK, .text = ""};
    const bool loaded = hp_plugin_load(d, &plugin, &why) == HP_OK;
    set_member(o, d->name, "", loaded ? plugin->describe(text, sizeof text) : NULL);
    set_member(o, d->name, "_missing", loaded ? NULL : why.text);
    set_member(o, d->name, "_part", hp_plugin_path(d, path, sizeof path));
    json_t *gpu = loaded ? gpu_facts(plugin) : NULL;
    if (gpu) json_object_set_new(o, "gpu", gpu);
}

void hp_exec_print_version(FILE *f, struct argp_state *state) {
    (void)state;
    char mpi[256], onednn[32];
    json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "hplan-exec", hp_version(), "commit", hp_commit(), "mpi",
                          hp_comm_mpi_version(mpi, sizeof mpi), "onednn", hp_onednn_version(onednn));
    HP_ASSERT(o);
    json_object_set_new(o, "gpu", json_null());
    for (int i = 0; i < HP_DEVICES; i++)
        if (hp_devices[i].plugin) add_plugin(o, &hp_devices[i]);
    json_dumpf(o, f, JSON_COMPACT);
    fputc('\n', f);
    json_decref(o);
}
