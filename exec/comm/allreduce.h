/* allreduce.h - the two all-reduce algorithms as pure arithmetic: what a member sends, receives and adds at
 * each step.
 *
 * Own algorithms, because the order of the additions is then part of the plan: every member ends with the
 * same bits, run after run. The data is cut into lanes that go through the steps independently of each other;
 * a lane waits for its step's send and receive before it takes the next one. */
#ifndef HP_ALLREDUCE_H
#define HP_ALLREDUCE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hp_allreduce_algorithm {
    HP_ALLREDUCE_DOUBLING, /* recursive doubling: ceil(log2 p) steps of everything; short messages */
    HP_ALLREDUCE_RING      /* reduce-scatter then all-gather, 2(p-1) steps of 1/p (Patarasu & Yuan 2009) */
} hp_allreduce_algorithm;

typedef struct hp_allreduce {
    hp_allreduce_algorithm algorithm;
    int rank, size; /* within the group */
    int64_t count;  /* elements of the whole */
    int64_t slice;  /* most elements of one message */
    int32_t lanes;
    int32_t steps; /* per lane */
} hp_allreduce;

/* One lane's step. A peer of -1 or a count of 0: nothing to send or receive. Offsets and counts in elements.
 */
typedef struct hp_allreduce_step {
    int send_to, recv_from;
    int64_t send_offset, send_count;
    int64_t recv_offset, recv_count;
    bool add; /* add what came to the data at recv_offset; else it replaces that */
} hp_allreduce_step;

hp_allreduce hp_allreduce_plan(int rank, int size, int64_t count, int elem_bytes);
hp_allreduce_step hp_allreduce_at(const hp_allreduce *a, int lane, int step);

#endif
