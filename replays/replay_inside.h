/* replay_inside.h - the building blocks of replays: compute, exchanges and sums. Each is a task
 * that waits for others. */
#ifndef HP_REPLAY_INSIDE_H
#define HP_REPLAY_INSIDE_H

#include "plan/program/compose.h"
#include "replays/replay.h"

typedef struct replay_maker {
    const hp_program *program;
    hp_role *role;
    const hp_replay_way *way;
    int32_t queue[HP_COLLECTIVES]; /* queues of the collectives that a replay uses */
    int32_t tag;                   /* tag of the next collective */
} replay_maker;

typedef struct replay_work {
    double flops, bytes;
} replay_work;

/* Add a task that waits for the given tasks; -1: none. Each returns the new task's index. */
int replay_compute(replay_maker *m, replay_work work, int after_a, int after_b);
/* Exchanges `elems` float32 elements in total from buffer `from` to `into`. */
int replay_exchange(replay_maker *m, int from, int into, int64_t elems, int after);
int replay_sum(replay_maker *m, int64_t elems, int after);

/* Each kind's step, and the maximum number of its tasks. */
void replay_dlrm(replay_maker *m, const hp_replay *r);
int replay_dlrm_tasks(const hp_replay *r);
void replay_dlrm_volumes(const hp_replay *r, int32_t ranks, hp_replay_volume out[HP_REPLAY_VOLUMES]);
void replay_moe(replay_maker *m, const hp_replay *r);
int replay_moe_tasks(const hp_replay *r);
void replay_moe_volumes(const hp_replay *r, int32_t ranks, hp_replay_volume out[HP_REPLAY_VOLUMES]);

#endif
