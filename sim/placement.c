/* placement.c - how many members of a group share a node. */
#include "sim/placement.h"

#include "plan/base/arena.h"

/* Members come by replica, then by role: those of one replica fill nodes in order, and a few replicas may
 * share them. */
int hp_group_per_node(const hp_program *p, const hp_machine *m, int group, int replica) {
    const int ranks = hp_group_size(p, group);
    int most = 0;
    hp_arena *scratch = hp_arena_new();
    int32_t *here = HP_NEW(scratch, int32_t, m->nodes);
    for (int k = 0; k < ranks; k++) {
        const int n = ++here[hp_rank_node(p, m, hp_group_rank(p, group, replica, k))];
        if (n > most) most = n;
    }
    hp_arena_free(scratch);
    return most;
}
