/* collective.h - collectives as small programs: who sends which block to whom, and what is added in which
 * order. The lowering chooses an algorithm for every collective of a plan; the executor runs its steps over
 * messages between pairs of ranks, the simulator prices the same steps.
 *
 * The data is cut into equal blocks (the end of the data may cut the last ones short). In every step a member
 * sends at most one block and receives at most one; its step ends when both have arrived. So the order of the
 * additions is part of the plan: all members end with the same bits, in every run. */
#ifndef HP_COLLECTIVE_H
#define HP_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

/* One row of hp_collectives each; the order is that of plan.db. All are all-reduces so far. */
typedef enum hp_algorithm {
    HP_ALGORITHM_LIBRARY, /* the back end's own (NCCL): opaque, measured as a whole */
    HP_ALGORITHM_DOUBLING,
    HP_ALGORITHM_RING,
    HP_ALGORITHMS
} hp_algorithm;

typedef struct hp_block_step {
    int32_t send_to, send_block; /* member; -1: sends nothing */
    int32_t recv_from, recv_block;
    bool add; /* what arrives is added to the member's own block; else it replaces that */
} hp_block_step;

/* The steps on the longest path, for the simulator: a closed form of what `step` says. */
typedef struct hp_collective_part {
    int32_t rounds;
    double sent; /* share of the whole data that a member sends in these */
} hp_collective_part;

typedef struct hp_collective_load {
    hp_collective_part inside; /* steps whose messages all stay on their node */
    hp_collective_part across; /* steps of which a message leaves its node */
    double added;              /* share of the whole data that a member adds */
    int32_t crossing;          /* messages that leave a node at once, at most */
} hp_collective_load;

typedef struct hp_collective_ops {
    const char *name; /* "ring" */
    int32_t (*blocks)(int32_t size);
    int32_t (*steps)(int32_t size); /* the same for all members; some may idle in a step */
    hp_block_step (*step)(int32_t size, int32_t member, int32_t step);
    hp_collective_load (*load)(int32_t size, int32_t per_node); /* members fill node after node */
} hp_collective_ops;

/* By hp_algorithm; NULL functions for LIBRARY, which has a name alone. */
extern const hp_collective_ops *const hp_collectives[HP_ALGORITHMS];

/* The algorithm of an all-reduce of so many bytes, where no library has its own. */
hp_algorithm hp_allreduce_choose(int64_t bytes);

/* --- what a member does with its elements: collective.c --- */

/* Each block is cut into lanes, which go through the steps independently of each other: a lane waits for its
 * step's send and receive before it takes the next one, the others go on. */
typedef struct hp_collective_plan {
    const hp_collective_ops *ops;
    int32_t member, size;
    int64_t count; /* elements of the whole */
    int64_t block; /* elements of a block; the last may have fewer */
    int64_t slice; /* elements of a lane's part of a block, at most */
    int32_t lanes, steps;
} hp_collective_plan;

/* One lane's step, offsets and counts in elements. A count of 0: nothing to send or receive. */
typedef struct hp_collective_step {
    int32_t send_to, recv_from;
    int64_t send_offset, send_count;
    int64_t recv_offset, recv_count;
    bool add;
} hp_collective_step;

hp_collective_plan hp_collective_plan_of(hp_algorithm algorithm, int32_t member, int32_t size, int64_t count,
                                         int elem_bytes);
hp_collective_step hp_collective_at(const hp_collective_plan *p, int32_t lane, int32_t step);

#endif
