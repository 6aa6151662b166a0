/* race.h - the best candidates of a plan run for real, in rounds in which each left runs once; the fastest becomes the
 * plan. The statistics are those of traces/check/pairs.h. */
#ifndef HP_RACE_H
#define HP_RACE_H

#include "cli/cli.h"
#include "cli/launch/workspace.h"
#include "sim/search/predict.h"
#include "traces/check/pairs.h"

enum { RACE_TOP = 4, RACE_SECONDS = 60, RACE_MOST = 64 };

typedef struct race_options {
    const char *path;           /* plan.db, rewritten */
    const char *keep;           /* folder for the run.db of each candidate; NULL */
    const char *launcher;       /* NULL: the usual one */
    const char *hostfile;       /* NULL */
    int64_t top, steps, rounds; /* steps of a round, 0: by time; rounds at most, 0: by time */
    double seconds;
    uint64_t seed; /* of the order within rounds */
} race_options;

/* Why a candidate runs no more. */
typedef enum race_out { RACE_IN, RACE_SLOWER /* proven */, RACE_RESTED /* halved */, RACE_FAILED } race_out;

typedef struct race_entry {
    int number; /* predicted rank, from 1 */
    hp_candidate *candidate;
    hp_plan plan;
    hp_prediction prediction;
    workspace work; /* the race's folder with this one's database */
    race_out out;
    const char *why;                    /* failed: its error, cleaned */
    double expected_s, start_s, wall_s; /* of a step; of starting the ranks; of its last round */
    double change;                      /* step against the winner's, paired */
    hp_measured measured;
} race_entry;

typedef struct race {
    int n, n_round, room, winner; /* winner: index into entry; -1: none ran */
    race_entry *entry;
    double *step_s; /* (n_round, n), NaN: did not run */
    int *order;     /* (n_round, n): the entries in the order they ran, then -1 */
    bool stopped;   /* by the user */
    bool settled;   /* one is left, or those left are equal: not the end of time */
    double elapsed_s;
    int n_candidate; /* of the plan, all, as they are ranked now */
    hp_candidate *candidate;
    int *before; /* of each: its index before the race */
} race;

/* Which candidates to run: `n` indices, at most `top`, by rank. The first half is the best by expected time; then comes
 * the best of each other family (plan/strategy/family.h) that may be the fastest as its interval begins before number 1's
 * ends, since candidates of one family share the model's errors; then the next best. Only candidates of the same devices and
 * batch as `first`, the plan's own. */
void race_pick(const hp_candidate *c, int n_candidate, int first, int top, int *pick, int *n);

/* One round of one candidate: about `target_s` of steps, or `o->steps`, after one that is not counted. Sets *step_s,
 * and out and why where this candidate alone cannot run. Errors: of cli_launch_run, where all would fail. */
hp_status race_round(hp_arena *arena, const race_options *o, race_entry *e, double target_s, double *step_s,
                     hp_error *err);

/* Runs the race and rewrites the plan: the winner's program and prediction, its measured candidates in front. After a
 * signal with what was measured (race.stopped). Errors: HP_EPLAN (the machine is another, one candidate, none of them
 * runs), HP_EDATA, HP_ECREATE, HP_EIO. */
hp_status race_run(hp_arena *arena, const race_options *o, race *r, hp_error *err);

/* Is the plan's machine this one? Errors: HP_EPLAN. `what` asks: "tune". */
hp_status race_check_machine(const hp_machine *m, const char *what, hp_error *err);

/* What was measured beside what was predicted, and what follows from it. */
void race_print(const race *r);
json_t *race_json(const race *r);

#endif
