/* version.c - `hplan-exec --version`: one JSON object that `hplan doctor` reads. No MPI_Init: it answers on
 * any node. */
#include "exec/version.h"

#include "exec/comm.h"
#include "exec/onednn.h"
#include "exec/plugin.h"
#include "plan/base/version.h"

#include <jansson.h>

/* NULL: the GPU's part, or CUDA, is not installed. */
static const char *cuda_version(char *out, size_t n) {
    const hp_plugin *plugin;
    hp_error none;
    return hp_plugin_cuda(&plugin, &none) == HP_OK ? plugin->describe(out, n) : NULL;
}

void hp_exec_print_version(FILE *f, struct argp_state *state) {
    (void)state;
    char mpi[256], onednn[32], cuda[512];
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s?}", "hplan-exec", hp_version(), "commit", hp_commit(),
                          "mpi", hp_comm_mpi_version(mpi, sizeof mpi), "onednn", hp_onednn_version(onednn),
                          "cuda", cuda_version(cuda, sizeof cuda));
    HP_ASSERT(o);
    json_dumpf(o, f, JSON_COMPACT);
    fputc('\n', f);
    json_decref(o);
}
