/* run_fit.h - fits a stored plan to this machine (--fit-here), or to the nodes that are left (--elastic). */
#ifndef HP_RUN_FIT_H
#define HP_RUN_FIT_H

#include "cli/commands/run_here.h"
#include "sim/search/predict.h"

typedef struct run_fit {
    bool here;        /* the machine at hand takes the place of the plan's */
    bool elastic;     /* nodes that are not given are left out of the plan's machine */
    bool keep_device; /* the user named it: no other */
    int lost;         /* devices that are not to be used any more */
} run_fit;

/* Shrinks a plan that does not fit (sim/shrink/shrink.h); reports that and its cost on stderr. *fitted: *plan
 * is another one, and *p its prediction. Errors: HP_EPLAN with what limits it; HP_EDATA, HP_EUNAVAIL. */
hp_status run_fit_plan(hp_arena *arena, hp_db *db, const run_fit *f, const run_here *here, hp_plan *plan,
                       hp_prediction *p, bool *fitted, hp_error *err);

#endif
