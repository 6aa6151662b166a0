/* version.c - `hplan-exec --version`: one JSON object that `hplan doctor` reads. No MPI_Init: it answers on
 * any node. */
#include "exec/version.h"

#include "exec/comm.h"
#include "exec/onednn.h"
#include "plan/base/version.h"

#include <jansson.h>

void hp_exec_print_version(FILE *f, struct argp_state *state) {
    (void)state;
    char mpi[256], onednn[32];
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s, s:n}", "hplan-exec", hp_version(), "commit", hp_commit(), "mpi",
                  hp_comm_mpi_version(mpi, sizeof mpi), "onednn", hp_onednn_version(onednn), "cuda");
    HP_ASSERT(o);
    json_dumpf(o, f, JSON_COMPACT);
    fputc('\n', f);
    json_decref(o);
}
