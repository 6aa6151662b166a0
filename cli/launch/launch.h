/* launch.h - starts hplan-exec through mpirun, srun or directly, and guarantees its end: no process of its
 * group is left when cli_launch_run returns. */
#ifndef HP_LAUNCH_H
#define HP_LAUNCH_H

#include "base/status.h"

#include <stdbool.h>

enum { LAUNCH_OPTIONS = 64 };

/* Whom a run has lost. */
typedef struct cli_lost {
    int rank; /* that died; -1: none is known */
    char node
        [256]; /* its node as the hostfile calls it, or one whose daemon is out of reach; "": none is known */
} cli_lost;

typedef struct cli_launch {
    const char *plan;    /* plan.db; NULL: the options say everything */
    const char *scratch; /* folder of the ring files */
    int ranks, threads;
    bool on_gpus;         /* then MPI chooses its own way on a node: it may read their memory */
    const char *launcher; /* "mpirun", "srun", "none"; NULL: none for one rank, srun inside a Slurm
                             allocation, otherwise mpirun */
    const char *hostfile; /* NULL */
    bool in_order;        /* of the hostfile: it has a line for each rank, with its node */
    int per_node; /* ranks on each of its nodes, which are filled in order; 0: as many as it has slots */
    const char *option[LAUNCH_OPTIONS]; /* for hplan-exec, "--name=value" */
    int n_option;
    double deadline_s; /* > 0: of the ranks' waits, as they were given it */
    char needs[160];   /* what memory it takes, in words; "": unknown */
    bool saves;        /* a checkpoint is made when hplan is sent SIGUSR1 or SIGTERM: the run ends after it */
    /* Called with every line of rank 0's stdout, without its newline; NULL: nobody reads them. An error ends the run. */
    hp_status (*line)(void *self, const char *line, hp_error *err);
    void *self;
    cli_lost *lost; /* who was lost, where HP_EDEAD comes back; NULL: nobody asks */
} cli_launch;

/* Executes the plan to its end. Forwards SIGINT and SIGTERM, escalating to SIGKILL. With `saves` the first SIGTERM, and SIGUSR1, become
 * a SIGUSR1 to the ranks, which may take as long as they need; HP_EREQUEUE when they have saved. Errors: what hplan-exec
 * reported, with its exit code; HP_EDEAD naming the rank that died, or the node that is
 * out of reach; HP_ESTALL naming a process that
 * has been stopped for longer than ranks would wait; HP_EUNAVAIL (no mpirun, no hplan-exec);
 * 128+n after a signal to hplan. */
hp_status cli_launch_run(const cli_launch *l, hp_error *err);

#endif
