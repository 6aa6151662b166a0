/* launch.h - starts hplan-exec through mpirun, srun or directly, and guarantees its end: when cli_launch_run
 * returns, no process of its group is left. */
#ifndef HP_LAUNCH_H
#define HP_LAUNCH_H

#include "base/status.h"

#include <stdbool.h>

enum { LAUNCH_OPTIONS = 64 };

/* What a run has lost. */
typedef struct cli_lost {
    int rank; /* rank that died; -1: unknown */
    char
        node[256]; /* its node as named in the hostfile, or a node whose daemon is unreachable; "": unknown */
} cli_lost;

typedef struct cli_launch {
    const char *plan;    /* plan.db; NULL: the options say everything */
    const char *scratch; /* directory of the ring files */
    int ranks, threads;
    bool on_gpus;         /* MPI may read their memory and then chooses its own transport within a node */
    const char *launcher; /* "mpirun", "srun", "none"; NULL: none for one rank, srun inside a Slurm
                           * allocation, otherwise mpirun */
    const char *hostfile; /* NULL */
    bool in_order;        /* the hostfile has a line for each rank, with its node */
    int per_node;         /* ranks per node, filled in order; 0: as many as it has slots */
    const char *option[LAUNCH_OPTIONS]; /* for hplan-exec, "--name=value" */
    int n_option;
    double deadline_s; /* > 0: deadline of the ranks' waits, as passed to them */
    char needs[160];   /* its memory needs as text; "": unknown */
    bool saves;        /* SIGUSR1 or SIGTERM to hplan makes a checkpoint, after which the run ends */
    /* Called with every line of rank 0's stdout, without its newline; NULL: output is ignored. An error ends
     * the run. */
    hp_status (*line)(void *self, const char *line, hp_error *err);
    void *self;
    cli_lost *lost; /* receives what was lost if the result is HP_EDEAD; NULL: not needed */
} cli_launch;

/* Executes the plan to its end. Forwards SIGINT and SIGTERM, escalating to SIGKILL. With `saves`, the first
 * SIGTERM, and SIGUSR1, become a SIGUSR1 to the ranks, which may take as long as they need; returns
 * HP_EREQUEUE once they have saved. Errors: what hplan-exec reported, with its exit code; HP_EDEAD naming the
 * rank that died, or the unreachable node; HP_ESTALL naming a process that was stopped for longer than ranks
 * would wait; HP_EUNAVAIL (no mpirun, no hplan-exec); 128+n after a signal to hplan. */
hp_status cli_launch_run(const cli_launch *l, hp_error *err);

#endif
