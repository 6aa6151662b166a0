/* race.h - runs the best candidates of a plan in rounds, in which each remaining one runs once; the fastest
 * becomes the plan. The statistics are those of traces/check/pairs.h. */
#ifndef HP_RACE_H
#define HP_RACE_H

#include "cli/cli.h"
#include "cli/launch/workspace.h"
#include "sim/search/predict.h"
#include "traces/check/pairs.h"

enum { RACE_TOP = 4, RACE_SECONDS = 60, RACE_MOST = 64 };

typedef struct race_options {
    const char *path;           /* plan.db, rewritten */
    const char *keep;           /* directory for the run.db of each candidate; NULL */
    const char *launcher;       /* NULL: the usual one */
    const char *hostfile;       /* NULL */
    int64_t top, steps, rounds; /* steps per round and number of rounds; 0: by time */
    double seconds;
    uint64_t seed; /* seed of the order within rounds */
} race_options;

/* Why a candidate no longer runs. */
typedef enum race_out { RACE_IN, RACE_SLOWER /* proven */, RACE_RESTED /* halved */, RACE_FAILED } race_out;

typedef struct race_entry {
    int number; /* predicted rank, from 1 */
    hp_candidate *candidate;
    hp_plan plan;
    hp_prediction prediction;
    workspace work; /* the race's directory with this candidate's database */
    race_out out;
    const char *why;                    /* failed: its error, cleaned */
    double expected_s, start_s, wall_s; /* seconds of a step; of starting the ranks; of its last round */
    double change;                      /* paired difference of its step from the winner's */
    hp_measured measured;
} race_entry;

typedef struct race {
    int n, n_round, room, winner; /* winner: index into entry; -1: none ran */
    race_entry *entry;
    double *step_s; /* (n_round, n); NaN: did not run */
    int *order;     /* (n_round, n): entries in the order they ran, then -1 */
    bool stopped;   /* by the user */
    bool settled;   /* one is left, or the remaining ones are equal; false: time ran out */
    double elapsed_s;
    int n_candidate; /* all candidates of the plan, in their current order */
    hp_candidate *candidate;
    int *before; /* per candidate: its index before the race */
} race;

/* Chooses candidates to run: `n` indices, at most `top`, by rank. The first half is the best by expected
 * time. Then comes the best of each other family (plan/strategy/family.h) whose interval begins before number
 * 1's ends, because candidates of one family share the model's errors. The next best fill the rest. Only
 * candidates with the devices and batch of `first`, the plan's own. */
void race_pick(const hp_candidate *c, int n_candidate, int first, int top, int *pick, int *n);

/* Reads the plan, chooses who runs, and writes a plan for each into the directory *w. Errors: race_run's. */
hp_status race_open(hp_arena *arena, const race_options *o, race *r, workspace *w, hp_error *err);
/* Reranks the candidates and writes the winner's plan, and the runs if they are kept. */
hp_status race_store(hp_arena *arena, const race_options *o, race *r, hp_error *err);

/* Runs one round of one candidate: about `target_s` of steps, or `o->steps`, after an uncounted one. Sets
 * *step_s, and out and why if only this candidate cannot run. Errors: those of cli_launch_run that would
 * affect all candidates. */
hp_status race_round(hp_arena *arena, const race_options *o, race_entry *e, double target_s, double *step_s,
                     hp_error *err);

/* Runs the race and rewrites the plan: the winner's program and prediction, with measured candidates in
 * front. After a signal, uses what was measured (race.stopped). Errors: HP_EPLAN (another machine, only one
 * candidate, or none runs), HP_EDATA, HP_ECREATE, HP_EIO. */
hp_status race_run(hp_arena *arena, const race_options *o, race *r, hp_error *err);

/* Checks that the plan's machine is this one. `what` names the command: "tune". Errors: HP_EPLAN. */
hp_status race_check_machine(const hp_machine *m, const char *what, hp_error *err);

/* Prints measurements beside predictions, and the conclusion. */
void race_print(const race *r);
json_t *race_json(const race *r);

#endif
