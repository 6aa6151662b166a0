/* cost_samples.h - internal to calibrate: the samples of tasks, messages and collectives in one recorded
 * run. */
#ifndef HP_COST_SAMPLES_H
#define HP_COST_SAMPLES_H

#include "costmodels/calibrate.h"
#include "costmodels/drift.h"
#include "costmodels/cost_rows.h"
#include "plan/store/store.h"
#include "traces/query.h"

/* A recorded run. */
typedef struct hp_sample_run {
    char job[96];      /* description of the run */
    int64_t time_s;    /* when, seconds since 1970 */
    int32_t computing; /* ranks computing at a time on the node */
    hp_reading *reading;
    int n_reading;
} hp_sample_run;

/* A task, message or collective of one run, at the mean speed of the run. */
typedef struct hp_sample_row {
    int32_t run;      /* index into hp_sample_list.run */
    hp_row_kind kind; /* compute, p2p, collective */
    char class[32], key[80];
    double size, flops, bytes, seconds;
    double clock_s;     /* clock time, if `seconds` were converted to the quiet machine; 0: the same */
    double variance;    /* variance of a task over iterations, divided by seconds^2; NaN: fewer than 3 */
    int32_t ranks;      /* ranks of the run; on GPUs: number sharing one */
    int32_t node_ranks; /* ranks that computed concurrently on the node, or on the GPU */
    bool benchmark;     /* from a program that only exchanges messages */
    bool tiles;         /* from a run over tiles: has copies, statistics and other tasks that a single rank
                         * lacks */
} hp_sample_row;

struct hp_sample_list {
    hp_arena *arena;
    hp_sample_row *row;
    int n, capacity;
    hp_sample_run *run;
    int n_run, run_capacity;
    hp_held *held; /* runs that feed no row */
    int n_held, held_capacity;
};

/* Adds the compute tasks of the run, the last one of the list. */
void hp_samples_compute(hp_sample_list *l, const hp_machine *m, const hp_plan *plan, const hp_trace *t,
                        const hp_drift *d);
/* Adds messages and collectives that no computing member delayed. */
void hp_samples_comm(hp_sample_list *l, const hp_machine *m, const hp_plan *plan, const hp_trace *t,
                     const hp_drift *d);

/* Ranks computing at a time on shared hardware: a node's cores, or one GPU. */
int hp_samples_computing(const hp_machine *m, const hp_program *p);

#endif
