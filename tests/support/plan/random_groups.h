/* random_groups.h - programs without tasks: random roles, replicas and groups of roles. */
#ifndef HP_TESTS_RANDOM_GROUPS_H
#define HP_TESTS_RANDOM_GROUPS_H

#include "base/rng.h"
#include "plan/program/program.h"

typedef struct group_dice {
    uint64_t seed, n;
} group_dice;

int group_roll(group_dice *d, int low, int high);
int group_add(hp_program *p, int all_replicas);
void join_group(hp_program *p, int role);

/* On exactly `size` ranks. Group 0 is the world; n_group others, some with equal members,
 * some with one rank. */
hp_program *random_groups(hp_arena *arena, group_dice *d, int size, int n_group);
/* Adds queues to every role for the collectives of its groups, each group by one of the `backends`: bits. */
void group_queues(hp_arena *arena, group_dice *d, hp_program *p, uint32_t backends);
int group_backend(const hp_program *p, int group);

#endif
