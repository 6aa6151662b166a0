/* run_here.h - asked before a run starts: are the nodes, devices and memory of its plan here? */
#ifndef HP_RUN_HERE_H
#define HP_RUN_HERE_H

#include "cli/launch/hostfile.h"
#include "machines/here.h"
#include "plan/store/store.h"

typedef struct run_here {
    const char *path;     /* path of the plan, for messages */
    const char *hostfile; /* the nodes that are given; NULL: Slurm's, else this one */
    bool saves;           /* checkpoints: a copy of what each rank saves */
    bool eval;            /* the evaluation program runs too */
    bool force;           /* run although the machine is another; never without the memory */
    const char *smaller;  /* what would need less; NULL: to plan for this machine */
} run_here;

/* What is here for a plan's device: this node, times the nodes that are given. */
typedef struct run_offer {
    given_nodes given;
    int devices; /* devices of this node: cores, or GPUs */
    bool gpus;   /* the plan asks for GPUs of some machine that is named */
    hp_here here;
} run_offer;
/* Errors: HP_EDATA (hostfile); HP_EUNAVAIL. */
hp_status run_offer_read(const hp_plan *plan, const char *hostfile, run_offer *o, hp_error *err);

/* How many nodes the plan's ranks lie on. */
int run_here_nodes(hp_arena *arena, const hp_plan *plan, const run_here *r);

/* Bytes that this node lacks for the plan, its processes and copies for checkpoints included. 0: it has
 * enough, or the plan runs on GPUs. */
int64_t run_here_lacks(hp_arena *arena, const hp_plan *plan, const run_here *r, const run_offer *o);

/* Errors: HP_EPLAN with what the plan needs, what this node has, and the command that plans for this machine;
 * HP_EDATA (hostfile); HP_EUNAVAIL. */
hp_status run_here_check(hp_arena *arena, const hp_plan *plan, const run_here *r, hp_error *err);

#endif
