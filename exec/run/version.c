/* version.c - `hplan-exec --version`: one JSON object, which `hplan doctor` reads. Does not call MPI_Init, so
 * that it works on any node. */
#include "exec/run/version.h"

#include "exec/comm/comm.h"
#include "exec/device/cpu/onednn.h"
#include "exec/device/plugin.h"
#include "plan/base/version.h"

#include <jansson.h>

/* NULL: the GPU plug-in or CUDA is not installed; *err says why. */
static const char *cuda_version(char *out, size_t n, hp_error *err) {
    const hp_plugin *plugin;
    return hp_plugin_cuda(&plugin, err) == HP_OK ? plugin->describe(out, n) : NULL;
}

/* NULL: no GPU. */
static json_t *gpu_facts(void) {
    const hp_plugin *plugin;
    hp_gpu_facts f;
    hp_error none;
    if (hp_plugin_cuda(&plugin, &none) != HP_OK || plugin->facts(&f, &none) != HP_OK) return NULL;
    return json_pack("{s:s, s:i, s:I, s:f, s:f}", "name", f.name, "count", (int)f.count, "memory_bytes",
                     (json_int_t)f.memory_bytes, "flops_per_s", f.flops_per_s, "bytes_per_s", f.bytes_per_s);
}

void hp_exec_print_version(FILE *f, struct argp_state *state) {
    (void)state;
    char mpi[256], onednn[32], text[512], path[4096];
    hp_error why = {.code = HP_OK, .text = ""};
    const char *cuda = cuda_version(text, sizeof text, &why);
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s?, s:s?, s:o?}", "hplan-exec", hp_version(),
                          "commit", hp_commit(), "mpi", hp_comm_mpi_version(mpi, sizeof mpi), "onednn",
                          hp_onednn_version(onednn), "cuda", cuda, "cuda_missing", cuda ? NULL : why.text,
                          "cuda_part", hp_plugin_path(path, sizeof path), "gpu", gpu_facts());
    HP_ASSERT(o);
    json_dumpf(o, f, JSON_COMPACT);
    fputc('\n', f);
    json_decref(o);
}
