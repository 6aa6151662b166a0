/* comm_log.h - what a run's messages and collectives took, by operation, size, group, back end and algorithm. It is read from
 * the spans and counters that every run has, so that asking for it does not change the run. */
#ifndef HP_COMM_LOG_H
#define HP_COMM_LOG_H

#include "traces/query.h"

typedef struct hp_comm_row {
    const char *what; /* "halo", "stage", "allreduce", ... */
    int32_t op;       /* hp_task_op; messages: that of the receiving end */
    int32_t members;  /* of the group; messages: 2 */
    int32_t group;    /* of the program; messages: -1 */
    int32_t backend, algorithm, dtype;
    int64_t bytes;          /* of one: the whole data */
    double calls;           /* per step, over all groups of this kind */
    double time_s;          /* median, from the last member's beginning to the end */
    double wait_s;          /* mean, from the first member's beginning to the last one's */
    double bus_bytes_per_s; /* as nccl-tests has it; messages: bytes / time */
    double
        sent_bytes; /* per step, by all ranks: as handed to sends or copies, padding included; of a library's
                         * collectives what an ideal one sends; NaN: not counted (a simulation) */
    double ideal_bytes; /* per step, by all ranks, if nobody sends twice */
    bool is_ideal;      /* sent_bytes is no count */
    int32_t late_rank;  /* the one that began last most often; -1: nobody waited */
    double late_share;  /* how often */
} hp_comm_row;

/* Do two rows tell of the same kind of message or collective? */
bool hp_comm_same_kind(const hp_comm_row *a, const hp_comm_row *b);

/* Rows by the time that they take in a step, the longest first. `sent`: the samples of counter sent_bytes, of
 * `steps` steps. The trace's program
 * is `p`; everything lives in `arena`. */
void hp_comm_log(hp_arena *arena, const hp_trace *t, const hp_program *p, const hp_trace_value *sent,
                 int64_t n_sent, double steps, hp_comm_row **row, int *n);

#endif
