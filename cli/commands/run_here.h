/* run_here.h - asked before a run starts: are the nodes, devices and memory of its plan here? */
#ifndef HP_RUN_HERE_H
#define HP_RUN_HERE_H

#include "plan/store/store.h"

typedef struct run_here {
    const char *path;     /* of the plan, for messages */
    const char *hostfile; /* the nodes that are given; NULL: Slurm's, else this one */
    bool saves;           /* checkpoints: a copy of what each rank saves */
    bool eval;            /* the evaluation program runs too */
    bool force;           /* run although the machine is another; never without the memory */
    const char *smaller;  /* what would need less; NULL: to plan for this machine */
} run_here;

/* Errors: HP_EPLAN with what the plan needs, what is here, and the command that plans for this machine; HP_EDATA
 * (hostfile); HP_EUNAVAIL. */
hp_status run_here_check(hp_arena *arena, const hp_plan *plan, const run_here *r, hp_error *err);

#endif
