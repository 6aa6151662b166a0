/* race_shisha.h - balances the stages of a pipeline while it runs (Shisha). The trace of each configuration
 * shows the slowest stage; one of its units moves to the lightest stage, and the best configuration is
 * kept. */
#ifndef HP_RACE_SHISHA_H
#define HP_RACE_SHISHA_H

#include "cli/cli.h"
#include "plan/store/store.h"

enum { SHISHA_MOST = 256 };

typedef struct shisha_options {
    const char *path;                /* plan.db, rewritten if a better cut was found */
    const char *launcher, *hostfile; /* NULL: the usual ones */
    const char *quota;               /* quotas of the ranks' processors, as in `run --quota`; NULL: none */
    int alpha;                       /* tries without gain before it stops */
    int steps;                       /* counted steps per configuration, after one warm-up step */
    double seconds;                  /* total time limit */
} shisha_options;

/* A configuration that ran. */
typedef struct shisha_try {
    char cut[256];
    double step_s, predicted_s;    /* median; before it ran */
    double stage_s[HP_MAX_STAGES]; /* median compute time per step of each stage's slowest rank */
    double spent_s;                /* with starting the ranks */
    bool repeated;                 /* the configuration ran before and was not run again */
} shisha_try;

typedef enum shisha_end { SHISHA_ALPHA, SHISHA_CIRCLE, SHISHA_TIME, SHISHA_STUCK, SHISHA_FULL } shisha_end;

typedef struct shisha {
    int stages, n, best;
    shisha_try tried[SHISHA_MOST];
    shisha_end end; /* why it stopped */
    bool wrote;     /* the plan was changed */
    double spent_s; /* convergence cost: seconds in all configurations */
} shisha;

/* Errors: HP_EPLAN (no pipeline whose ranks each have a stage, another machine, memory), those of
 * cli_launch_run. */
hp_status shisha_run(hp_arena *arena, const shisha_options *o, shisha *s, hp_error *err);

void shisha_print(const shisha *s);
json_t *shisha_json(const shisha *s);

#endif
