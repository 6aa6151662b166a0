/* comm_log.h - how long a run's messages and collectives took, by operation, size, group, back end and
 * algorithm. It uses the spans and counters that every run has, so the log does not change the run. */
#ifndef HP_COMM_LOG_H
#define HP_COMM_LOG_H

#include "traces/query.h"

typedef struct hp_comm_row {
    const char *what; /* "halo", "stage", "allreduce", ... */
    int32_t op;       /* hp_task_op; messages: the receiving end's */
    int32_t members;  /* size of the group; messages: 2 */
    int32_t group;    /* index in the program; messages: -1 */
    int32_t backend, algorithm, dtype;
    int64_t bytes;          /* per call: size of the whole data */
    double calls;           /* per step, over all groups of this kind */
    double time_s;          /* median, from the last member's start to the end */
    double wait_s;          /* mean, from the first member's start to the last one's */
    double bus_bytes_per_s; /* as nccl-tests defines it; messages: bytes / time */
    double sent_bytes;      /* per step, by all ranks: bytes handed to sends or copies, padding included;
                             * for a library's collectives, what an ideal algorithm sends; NaN: not
                             * counted (a simulation) */
    double ideal_bytes;     /* per step, by all ranks, if nothing is sent twice */
    bool is_ideal;          /* sent_bytes was not counted */
    int32_t late_rank;      /* the rank that started last most often; -1: nobody waited */
    double late_share;      /* how often */
} hp_comm_row;

/* Are two rows about the same kind of message or collective? */
bool hp_comm_same_kind(const hp_comm_row *a, const hp_comm_row *b);

/* Rows sorted by their time per step, longest first. `sent`: samples of the counter sent_bytes, over `steps`
 * steps. `p`: the trace's program. Everything lives in `arena`. */
void hp_comm_log(hp_arena *arena, const hp_trace *t, const hp_program *p, const hp_trace_value *sent,
                 int64_t n_sent, double steps, hp_comm_row **row, int *n);

#endif
