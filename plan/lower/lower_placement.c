/* lower_placement.c - how many members of a group share a node. */
#include "plan/lower/lower_placement.h"

#include "base/arena.h"

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

/* Members of a replica's group per node, if all nodes have equally many and members fill node after node;
 * else 0. */
static int fill_of(const hp_program *p, const hp_machine *m, int group, int replica) {
    const int ranks = hp_group_size(p, group);
    int per = 0, last = -1;
    for (int k = 0; k < ranks; k++) {
        const int node = hp_rank_node(p, m, hp_group_rank(p, group, replica, k));
        if (node != last && !per && k > 0) per = k;
        const bool begins = k == 0 || (per && k % per == 0);
        if (begins ? node <= last : node != last) return 0;
        last = node;
    }
    return per && ranks % per == 0 ? per : ranks;
}

int hp_group_fill(const hp_program *p, const hp_machine *m, int group) {
    const int replicas = p->group[group].all_replicas ? 1 : p->dp;
    const int per = fill_of(p, m, group, 0);
    for (int r = 1; r < replicas && per; r++)
        if (fill_of(p, m, group, r) != per) return 0;
    return per;
}
