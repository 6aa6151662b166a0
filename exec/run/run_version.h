/* run_version.h - what `hplan-exec --version` prints. */
#ifndef HP_RUN_VERSION_H
#define HP_RUN_VERSION_H

#include <argp.h>
#include <stdio.h>

/* {"hplan-exec": ..., "commit": ..., "mpi": ..., "onednn": ..., "cuda": text or null, "gpu":
 * {"name", "count", "memory_bytes", "flops_per_s", "bytes_per_s"} or null}; an argp_program_version_hook. */
void hp_exec_print_version(FILE *f, struct argp_state *state);

#endif
