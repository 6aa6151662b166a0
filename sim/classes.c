/* classes.c - colour refinement: colours of ranks, communicators, nodes and devices take in each other's until no
 * class falls apart any more. Colours are 64-bit hashes; sums make them independent of order. */
#include "sim/classes.h"

#include "plan/lower/placement.h"

#include <string.h>

typedef struct refinement {
    hp_arena *arena;
    const hp_wiring *w;
    const hp_program *p;
    bool devices; /* ranks may contend on a device, not only on a node */
    int n_rank, n_node, n_device, n_comm;
    uint64_t *rank, *comm, *node, *device; /* colours */
    uint64_t *next;
    hp_classes *c;
} refinement;

/* The finaliser of splitmix64 (Steele, Lea & Flood 2014). */
static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static int first_of_replica(const refinement *x, int rank) {
    return rank - rank % x->p->n_role;
}

/* --- what a colour starts with: the role, and how far what it talks to is away --- */

static uint64_t ways(const refinement *x, int rank) {
    const hp_role *r = &x->p->role[rank % x->p->n_role];
    const int32_t *node = x->c->rank_node, *device = x->c->rank_device;
    uint64_t sum = 0;
    for (int q = 1; q < r->n_queue; q++) {
        if (r->queue[q].kind == HP_QUEUE_COLL) continue;
        const int peer = first_of_replica(x, rank) + r->queue[q].peer;
        sum += mix((uint64_t)q, (node[rank] == node[peer]) | (device[rank] == device[peer]) << 1);
    }
    return sum;
}

/* Member k of a communicator: its rank and the queue from which it calls. */
static int member_rank(const refinement *x, int group, int comm, int k, int *queue) {
    const hp_wired_group *g = &x->w->group[group];
    const int replica = comm - x->c->world_comm[group] + k / g->n;
    *queue = g->queue[k % g->n];
    return replica * x->p->n_role + g->role[k % g->n];
}

static int members(const refinement *x, int group) {
    return x->w->group[group].n * (x->p->group[group].all_replicas ? x->p->dp : 1);
}

/* How many members of its communicator run on the node and the device of each. */
static void spread(const refinement *x, int group, int comm, int32_t *on_node, int32_t *on_device) {
    const int n = members(x, group);
    const int32_t *node = x->c->rank_node, *device = x->c->rank_device;
    uint64_t most = 0;
    int queue;
    for (int k = 0; k < n; k++) {
        const int rank = member_rank(x, group, comm, k, &queue);
        on_node[node[rank]]++;
        on_device[device[rank]]++;
    }
    for (int k = 0; k < n; k++) {
        const int rank = member_rank(x, group, comm, k, &queue);
        const uint64_t here = (uint64_t)on_node[node[rank]], with = (uint64_t)on_device[device[rank]];
        if (here > most) most = here;
        x->rank[rank] += mix(mix((uint64_t)queue, here), with);
    }
    for (int k = 0; k < n; k++) {
        const int rank = member_rank(x, group, comm, k, &queue);
        on_node[node[rank]] = on_device[device[rank]] = 0;
    }
    x->comm[comm] = mix((uint64_t)group, most);
}

/* The class of a rank's device, and its speed in millionths. */
static uint64_t device_kind(const refinement *x, const hp_machine *m, int rank) {
    if (!hp_machine_mixed(m)) return 0;
    const int device = x->c->rank_device[rank];
    return mix((uint64_t)hp_machine_class_at(m, device), (uint64_t)(1e6 * hp_machine_speed_at(m, device)));
}

static void start_colours(refinement *x, const hp_machine *m, int apart) {
    int32_t *on_node = HP_NEW(x->arena, int32_t, x->n_node),
            *on_device = HP_NEW(x->arena, int32_t, x->n_device);
    for (int r = 0; r < x->n_rank; r++) {
        const uint64_t role = (uint64_t)(r % x->p->n_role);
        x->rank[r] = mix(role, r == apart) + ways(x, r) + device_kind(x, m, r);
    }
    for (int g = 0; g < x->p->n_group; g++)
        for (int c = x->c->world_comm[g]; c < x->c->world_comm[g + 1]; c++)
            spread(x, g, c, on_node, on_device);
}

/* --- a round --- */

static void colour_places(refinement *x) {
    memset(x->node, 0, sizeof *x->node * (size_t)x->n_node);
    memset(x->device, 0, sizeof *x->device * (size_t)x->n_device);
    for (int r = 0; r < x->n_rank; r++) {
        x->node[x->c->rank_node[r]] += mix(x->rank[r], 1);
        x->device[x->c->rank_device[r]] += mix(x->rank[r], 2);
    }
}

static void colour_ranks(refinement *x) {
    for (int r = 0; r < x->n_rank; r++) {
        const hp_role *role = &x->p->role[r % x->p->n_role];
        uint64_t sum = mix(x->rank[r], x->node[x->c->rank_node[r]]);
        if (x->devices) sum = mix(sum, x->device[x->c->rank_device[r]]);
        for (int q = 1; q < role->n_queue; q++)
            if (role->queue[q].kind != HP_QUEUE_COLL)
                sum += mix(x->rank[first_of_replica(x, r) + role->queue[q].peer], (uint64_t)q);
        x->next[r] = sum;
    }
}

/* A communicator's colour comes from its members' and goes to them. */
static void colour_groups(refinement *x) {
    for (int g = 0; g < x->p->n_group; g++) {
        const int n = members(x, g);
        for (int c = x->c->world_comm[g]; c < x->c->world_comm[g + 1]; c++) {
            uint64_t sum = x->comm[c];
            int queue;
            for (int k = 0; k < n; k++) sum += mix(x->rank[member_rank(x, g, c, k, &queue)], 3);
            x->comm[c] = mix(sum, 4);
            for (int k = 0; k < n; k++) {
                uint64_t *to = &x->next[member_rank(x, g, c, k, &queue)];
                *to += mix(x->comm[c], (uint64_t)queue);
            }
        }
    }
}

/* Numbers colours by first appearance; returns how many there are. */
static int number(hp_arena *arena, const uint64_t *colour, int n, int32_t *of) {
    int slots = 16, found = 0;
    while (slots < 2 * n) slots *= 2;
    int32_t *at = HP_NEW(arena, int32_t, slots); /* 1 + the first that has the colour */
    for (int i = 0; i < n; i++) {
        uint64_t s = colour[i] & (uint64_t)(slots - 1);
        while (at[s] && colour[at[s] - 1] != colour[i]) s = (s + 1) & (uint64_t)(slots - 1);
        if (!at[s]) {
            at[s] = i + 1;
            of[i] = found++;
        } else {
            of[i] = of[at[s] - 1];
        }
    }
    return found;
}

static void refine(refinement *x) {
    for (int before = 0, now = number(x->arena, x->rank, x->n_rank, x->c->of); now > before;) {
        colour_places(x);
        colour_ranks(x);
        colour_groups(x);
        uint64_t *old = x->rank;
        x->rank = x->next;
        x->next = old;
        before = now;
        now = number(x->arena, x->rank, x->n_rank, x->c->of);
    }
    colour_places(x);
}

static void tell_all_apart(refinement *x) {
    for (int i = 0; i < x->n_rank; i++) x->rank[i] = (uint64_t)i;
    for (int i = 0; i < x->n_node; i++) x->node[i] = (uint64_t)i;
    for (int i = 0; i < x->n_device; i++) x->device[i] = (uint64_t)i;
    for (int i = 0; i < x->n_comm; i++) x->comm[i] = (uint64_t)i;
}

/* --- from colours to classes --- */

static void list_ranks(refinement *x) {
    hp_classes *c = x->c;
    c->n = number(x->arena, x->rank, x->n_rank, c->of);
    int32_t **per_class[] = {&c->first, &c->size, &c->node, &c->device, &c->on_node, &c->on_device};
    for (int i = 0; i < 6; i++) *per_class[i] = HP_NEW(x->arena, int32_t, c->n);
    for (int r = x->n_rank - 1; r >= 0; r--) {
        c->first[c->of[r]] = r;
        c->size[c->of[r]]++;
    }
    for (int i = 0; i < c->n; i++) {
        c->node[i] = c->node_class[c->rank_node[c->first[i]]];
        c->device[i] = c->device_class[c->rank_device[c->first[i]]];
    }
    for (int r = 0; r < x->n_rank; r++) {
        const int of = c->of[r], like = c->first[of];
        c->on_node[of] += c->rank_node[r] == c->rank_node[like];
        c->on_device[of] += c->rank_device[r] == c->rank_device[like];
    }
}

static void list_comms(refinement *x) {
    hp_classes *c = x->c;
    c->n_comm = number(x->arena, x->comm, x->n_comm, c->comm);
    c->comm_first = HP_NEW(x->arena, int32_t, c->n_comm + 2);
    c->comm_member = HP_NEW(x->arena, int32_t, x->n_comm);
    for (int i = 0; i < x->n_comm; i++) c->comm_first[c->comm[i] + 2]++;
    for (int k = 0; k < c->n_comm; k++) c->comm_first[k + 2] += c->comm_first[k + 1];
    for (int i = 0; i < x->n_comm; i++) c->comm_member[c->comm_first[c->comm[i] + 1]++] = i;
}

static void place_ranks(refinement *x, const hp_machine *m) {
    hp_classes *c = x->c;
    c->rank_node = HP_NEW(x->arena, int32_t, x->n_rank);
    c->rank_device = HP_NEW(x->arena, int32_t, x->n_rank);
    for (int r = 0; r < x->n_rank; r++) {
        c->rank_device[r] = hp_rank_device(x->p, m, r);
        c->rank_node[r] = c->rank_device[r] / m->devices_per_node;
        if (c->rank_device[r] >= x->n_device) x->n_device = c->rank_device[r] + 1;
    }
    c->places = x->n_device;
    x->n_node = (x->n_device + m->devices_per_node - 1) / m->devices_per_node;
    c->node_class = HP_NEW(x->arena, int32_t, x->n_node);
    c->device_class = HP_NEW(x->arena, int32_t, x->n_device);
}

static void number_comms(refinement *x) {
    x->c->world_comm = HP_NEW(x->arena, int32_t, x->p->n_group + 1);
    for (int g = 0; g < x->p->n_group; g++)
        x->c->world_comm[g + 1] = x->c->world_comm[g] + (x->p->group[g].all_replicas ? 1 : x->p->dp);
    x->n_comm = x->c->world_comm[x->p->n_group];
    x->c->comm = HP_NEW(x->arena, int32_t, x->n_comm);
}

hp_classes *hp_classes_of(hp_arena *arena, const hp_wiring *w, const hp_machine *m, bool fold, int apart) {
    const hp_program *p = w->program;
    hp_classes *c = HP_NEW(arena, hp_classes, 1);
    refinement x = {
        .arena = arena, .w = w, .p = p, .devices = !m->share_cpu, .n_rank = hp_program_ranks(p), .c = c};
    c->of = HP_NEW(arena, int32_t, x.n_rank);
    place_ranks(&x, m);
    number_comms(&x);
    x.rank = HP_NEW(arena, uint64_t, x.n_rank);
    x.next = HP_NEW(arena, uint64_t, x.n_rank);
    x.comm = HP_NEW(arena, uint64_t, x.n_comm);
    x.node = HP_NEW(arena, uint64_t, x.n_node);
    x.device = HP_NEW(arena, uint64_t, x.n_device);
    if (fold && p->dp > 1) {
        start_colours(&x, m, apart);
        refine(&x);
    } else {
        tell_all_apart(&x);
    }
    c->n_node = number(arena, x.node, x.n_node, c->node_class);
    c->n_device = number(arena, x.device, x.n_device, c->device_class);
    list_ranks(&x);
    list_comms(&x);
    return c;
}
