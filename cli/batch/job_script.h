/* job_script.h - a plan as a job of a batch system: a shell script that runs it with checkpoints, saves before its time is
 * over, and goes into the queue again. */
#ifndef HP_JOB_SCRIPT_H
#define HP_JOB_SCRIPT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOB_WORDS = 16 };

typedef struct job_script {
    const char *kind;                /* "slurm", "pbs", "plain" */
    const char *name;                /* of the job: letters, digits, . _ - */
    const char *plan;                /* plan.db, as seen from where the job is submitted */
    const char *checkpoint;          /* folder, seen from there, shared by all nodes */
    const char *every;               /* of checkpoints; NULL: as run has it */
    const char *time;                /* "4:00:00"; NULL: the queue's own */
    const char *partition, *account; /* NULL: the usual ones */
    const char *module[JOB_WORDS],
        *option[JOB_WORDS]; /* environment modules; further options of `hplan run` */
    int n_module, n_option;
    int nodes, ranks, per_node; /* ranks on a node at most */
    int gpus_per_node;          /* 0: none */
    int threads;                /* of a rank */
    int cores;                  /* of a rank: at least its threads */
    int notice_s;               /* before the time is over, to save */
} job_script;

/* "4:00:00", "30:00", "90" (minutes) or "2-12" (days-hours), as Slurm's --time takes them, in seconds. Errors: HP_EUSAGE. */
hp_status job_seconds(const char *time, int64_t *seconds, hp_error *err);

/* The script, for `sbatch` or `qsub`, or to be run as it is. Errors: HP_EUSAGE: an unknown kind. */
hp_status job_script_write(hp_arena *arena, const job_script *j, const char **text, hp_error *err);

#endif
