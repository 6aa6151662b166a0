/* job_script.h - a plan as a batch job: a shell script that runs it with checkpoints, saves before its time
 * limit, and requeues itself. */
#ifndef HP_JOB_SCRIPT_H
#define HP_JOB_SCRIPT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOB_WORDS = 16 };

typedef struct job_script {
    const char *kind;                /* "slurm", "pbs", "plain" */
    const char *name;                /* name of the job: letters, digits, . _ - */
    const char *plan;                /* plan.db, relative to the submission directory */
    const char *checkpoint;          /* directory, relative to the submission directory, shared by all
                                      * nodes */
    const char *every;               /* checkpoint interval; NULL: the default of `run` */
    const char *time;                /* "4:00:00"; NULL: the queue's default */
    const char *partition, *account; /* NULL: the usual ones */
    const char *module[JOB_WORDS],
        *option[JOB_WORDS]; /* environment modules; further options of `hplan run` */
    int n_module, n_option;
    int nodes, ranks, per_node; /* most ranks per node */
    int gpus_per_node;          /* 0: none */
    int threads;                /* threads per rank */
    int cores;                  /* cores per rank, at least its threads */
    int notice_s;               /* seconds before the time limit at which it saves */
} job_script;

/* Parses "4:00:00", "30:00", "90" (minutes) or "2-12" (days-hours), as in Slurm's --time, into seconds.
 * Errors: HP_EUSAGE. */
hp_status job_seconds(const char *time, int64_t *seconds, hp_error *err);

/* Writes the script for `sbatch` or `qsub`, or for running directly. Errors: HP_EUSAGE: an unknown kind. */
hp_status job_script_write(hp_arena *arena, const job_script *j, const char **text, hp_error *err);

#endif
