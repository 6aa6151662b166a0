/* race_shisha.h - stages of a pipeline balanced while it runs (Shisha): the trace of each configuration says which stage is
 * slowest, a unit of it goes to the stage that is lightest, and the best is kept. */
#ifndef HP_RACE_SHISHA_H
#define HP_RACE_SHISHA_H

#include "cli/cli.h"
#include "plan/store/store.h"

enum { SHISHA_MOST = 256 };

typedef struct shisha_options {
    const char *path;                /* plan.db, rewritten where a better cut was found */
    const char *launcher, *hostfile; /* NULL: the usual ones */
    const char *quota;               /* of ranks' processors, as `run --quota`; NULL */
    int alpha;                       /* tries without gain after which it stops */
    int steps;                       /* counted, of each configuration; one more warms up */
    double seconds;                  /* time for all of it */
} shisha_options;

/* A configuration that ran. */
typedef struct shisha_try {
    char cut[256];
    double step_s, predicted_s;    /* median; before it ran */
    double stage_s[HP_MAX_STAGES]; /* compute tasks of a step, of the slowest rank of each stage: medians */
    double spent_s;                /* with starting the ranks */
    bool repeated;                 /* it had run before: not again */
} shisha_try;

typedef enum shisha_end { SHISHA_ALPHA, SHISHA_CIRCLE, SHISHA_TIME, SHISHA_STUCK, SHISHA_FULL } shisha_end;

typedef struct shisha {
    int stages, n, best;
    shisha_try tried[SHISHA_MOST];
    shisha_end end; /* why it stopped */
    bool wrote;     /* the plan is another now */
    double spent_s; /* convergence cost: in all configurations */
} shisha;

/* Errors: HP_EPLAN (no pipeline whose ranks have a stage each, another machine, memory), those of cli_launch_run. */
hp_status shisha_run(hp_arena *arena, const shisha_options *o, shisha *s, hp_error *err);

/* The stage that a unit goes to: the lightest, the nearest of those. */
int shisha_lightest(const double *stage_s, int stages, int slowest);

void shisha_print(const shisha *s);
json_t *shisha_json(const shisha *s);

#endif
