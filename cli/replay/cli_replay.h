/* cli_replay.h - `hplan bench replay`: runs the communication of networks that hplan does not build
 * (replays/), with single back ends and mixes of them, in rounds in which each runs once. */
#ifndef HP_CLI_REPLAY_H
#define HP_CLI_REPLAY_H

#include "cli/race/race.h"
#include "replays/replay.h"
#include "traces/comm_log.h"

/* argv[0] is "hplan bench replay"; returns the exit code. */
int bench_replay(int argc, char **argv);

typedef struct replay_request {
    hp_replay replay;
    int64_t ranks, rounds;
    double seconds;      /* seconds of steps per round and series */
    const char *machine; /* machine that runs it; NULL: the local one */
    const char *as;      /* machine whose devices determine the compute time; NULL: the same */
    const char *device, *cost, *hostfile, *launcher;
    const char *comm; /* back ends and mixes of them, separated by commas; NULL: all */
} replay_request;

/* One way to carry the traffic. */
typedef struct replay_series {
    const char *comm; /* as in the strategy's key */
    bool mix;         /* several back ends */
    race_entry entry;
    hp_comm_row *row; /* its messages, counted; none if it did not run */
    int n_row;
} replay_series;

typedef struct replay_result {
    int n, n_round;
    replay_series *series;
    double *step_s; /* (n_round, n); NaN: did not run */
    int single;     /* index of the fastest single back end; -1: none ran */
} replay_result;

/* Lists the ways: the requested ones, otherwise every back end of the device and every pair. Errors:
 * HP_EUSAGE. */
hp_status replay_list(hp_arena *arena, const replay_request *r, const hp_device_info *device,
                      replay_result *out, hp_error *err);
/* Builds, predicts and writes a plan of series i into the directory of `w`. Errors: HP_EPLAN (too little
 * memory), HP_EUSAGE, HP_EIO. */
hp_status replay_plan(hp_arena *arena, const replay_request *r, const workspace *w, int i, replay_series *s,
                      hp_error *err);
/* Runs all rounds, then each series once more to count what is sent. Errors: those of race_round. */
hp_status replay_measure(hp_arena *arena, const replay_request *r, replay_result *out, hp_error *err);

void replay_print(const replay_request *r, const replay_result *x);
json_t *replay_json(const replay_request *r, const replay_result *x);

#endif
