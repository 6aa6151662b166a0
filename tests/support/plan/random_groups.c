/* random_groups.c - programs without tasks. */
#include "tests/support/plan/random_groups.h"

int group_roll(group_dice *d, int low, int high) { /* inclusive */
    return low + (int)hp_rng_below(d->seed, 78, d->n++, (uint64_t)(high - low + 1));
}

int group_add(hp_program *p, int all_replicas) {
    p->group[p->n_group] = (hp_group){.first = p->n_member, .all_replicas = all_replicas};
    return p->n_group++;
}

void join_group(hp_program *p, int role) {
    p->member[p->n_member++] = role;
    p->group[p->n_group - 1].n++;
}

hp_program *random_groups(hp_arena *arena, group_dice *d, int size, int n_group) {
    hp_program *p = HP_NEW(arena, hp_program, 1);
    do p->dp = group_roll(d, 1, size);
    while (size % p->dp);
    p->n_role = size / p->dp;
    p->role = HP_NEW(arena, hp_role, p->n_role); /* without queues */
    p->group = HP_NEW(arena, hp_group, n_group + 1);
    p->member = HP_NEW(arena, int32_t, (n_group + 1) * p->n_role);
    group_add(p, 1);
    for (int r = 0; r < p->n_role; r++) join_group(p, r);
    for (int g = 0; g < n_group; g++) {
        const int few = group_roll(d, 1, 3), must = group_roll(d, 0, p->n_role - 1);
        group_add(p, group_roll(d, 0, 1));
        for (int r = 0; r < p->n_role; r++)
            if (r == must || group_roll(d, 1, few) == 1) join_group(p, r);
    }
    return p;
}

static void add_queue(hp_program *p, int group, int backend) {
    for (int r = 0; r < p->n_role; r++)
        if (hp_group_has_role(p, group, r))
            p->role[r].queue[p->role[r].n_queue++] =
                (hp_queue){.kind = HP_QUEUE_COLL, .peer = group, .backend = backend};
}

void group_queues(hp_arena *arena, group_dice *d, hp_program *p, uint32_t backends) {
    p->role = HP_NEW(arena, hp_role, p->n_role);
    for (int r = 0; r < p->n_role; r++) {
        p->role[r].queue = HP_NEW(arena, hp_queue, p->n_group + 1);
        p->role[r].queue[p->role[r].n_queue++] = (hp_queue){.kind = HP_QUEUE_COMPUTE, .peer = -1};
    }
    for (int g = 0; g < p->n_group && backends; g++) {
        int backend = group_roll(d, 0, HP_BACKENDS - 1);
        while (!(backends >> backend & 1)) backend = (backend + 1) % HP_BACKENDS;
        add_queue(p, g, backend);
    }
}

int group_backend(const hp_program *p, int group) {
    for (int r = 0; r < p->n_role; r++)
        for (int q = 1; q < p->role[r].n_queue; q++)
            if (p->role[r].queue[q].peer == group) return p->role[r].queue[q].backend;
    return -1;
}
