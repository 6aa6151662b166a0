/* samples.h - internal to calibrate: the samples of tasks, messages and all-reduces in one recorded run. */
#ifndef HP_SAMPLES_H
#define HP_SAMPLES_H

#include "costmodels/rows.h"
#include "plan/store/store.h"
#include "traces/query.h"

/* A task, message or all-reduce of one run: its median over the iterations. */
typedef struct hp_sample_row {
    hp_row_kind kind; /* compute, p2p, allreduce */
    char class[32], key[80];
    double size, flops, bytes, seconds;
    int32_t ranks;      /* of the run; on GPUs: number sharing one */
    bool benchmark;     /* from a program that only exchanges messages */
    int32_t node_ranks; /* ranks that computed concurrently on the node, or on the GPU */
    bool tiles;         /* of a run over tiles: has copies, statistics and other tasks that a single rank does
                           not have */
} hp_sample_row;

typedef struct hp_sample_list {
    hp_arena *arena;
    hp_sample_row *row;
    int n, capacity;
} hp_sample_list;

/* Adds the compute tasks of the run. */
void hp_samples_compute(hp_sample_list *l, const hp_machine *m, const hp_plan *plan, const hp_trace *t);
/* Adds messages and all-reduces that no computing member delayed. */
void hp_samples_comm(hp_sample_list *l, const hp_machine *m, const hp_plan *plan, const hp_trace *t);

#endif
