/* classes.c - colour refinement: colours of ranks, communicators and places absorb each other's until no
 * class splits any more. Colours are 64-bit hashes; sums make them independent of order. */
#include "sim/engine/classes.h"

#include "plan/lower/lower_placement.h"
#include "machines/network.h"

#include <string.h>

typedef struct refinement {
    hp_arena *arena;
    const hp_wiring *w;
    const hp_program *p;
    bool felt[HP_PLACES]; /* may ranks contend there? */
    const hp_machine *m;
    int n_rank, n_comm;
    uint64_t *rank, *comm, *place[HP_PLACES]; /* colours */
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

/* Does this kind of place distinguish ranks? NICs shared by all devices of a node, or leaf switches that
 * carry everything, do not. */
static bool tells_apart(const refinement *x, int kind) {
    return kind < HP_PLACE_NICS || x->felt[kind];
}

/* At which kinds of places do two ranks meet? Ranks at one leaf switch may still send through others. */
static uint64_t together(const refinement *x, int a, int b) {
    uint64_t bits = 0;
    for (int k = 0; k < HP_PLACES; k++) {
        const int32_t *at = x->c->place[k].at;
        if (tells_apart(x, k)) bits |= (uint64_t)(at[a] == at[b]) << k;
    }
    if (x->m->nic_use != HP_NICS_RAILS) return bits;
    const int32_t *device = x->c->place[HP_PLACE_DEVICE].at;
    return mix(bits, hp_network_meet(x->m, device[a], device[b]));
}

static uint64_t ways(const refinement *x, int rank) {
    const hp_role *r = &x->p->role[rank % x->p->n_role];
    uint64_t sum = 0;
    for (int q = 1; q < r->n_queue; q++)
        if (r->queue[q].kind != HP_QUEUE_COLL)
            sum += mix((uint64_t)q, together(x, rank, first_of_replica(x, rank) + r->queue[q].peer));
    return sum;
}

/* Member k of a communicator: its rank, and the queue from which it calls. */
static int member_rank(const refinement *x, int group, int comm, int k, int *queue) {
    const hp_wired_group *g = &x->w->group[group];
    const int replica = comm - x->c->world_comm[group] + k / g->n;
    *queue = g->queue[k % g->n];
    return replica * x->p->n_role + g->role[k % g->n];
}

static int members(const refinement *x, int group) {
    return x->w->group[group].n * (x->p->group[group].all_replicas ? x->p->dp : 1);
}

/* Number of the communicator's members at each member's place. */
static void spread_over(const refinement *x, int group, int comm, int kind, int32_t *here) {
    const int n = members(x, group);
    const int32_t *at = x->c->place[kind].at;
    uint64_t most = 0;
    int queue;
    for (int k = 0; k < n; k++) here[at[member_rank(x, group, comm, k, &queue)]]++;
    for (int k = 0; k < n; k++) {
        const int rank = member_rank(x, group, comm, k, &queue);
        const uint64_t with = (uint64_t)here[at[rank]];
        if (with > most) most = with;
        x->rank[rank] += mix(mix((uint64_t)queue, with), (uint64_t)kind);
    }
    for (int k = 0; k < n; k++) here[at[member_rank(x, group, comm, k, &queue)]] = 0;
    x->comm[comm] = mix(mix((uint64_t)group, most), x->comm[comm]);
}

/* The class of a rank's device, and its speed in millionths. */
static uint64_t device_kind(const refinement *x, int rank) {
    const hp_machine *m = x->m;
    if (!hp_machine_mixed(m)) return 0;
    const int device = x->c->place[HP_PLACE_DEVICE].at[rank];
    return mix((uint64_t)hp_machine_class_at(m, device), (uint64_t)(1e6 * hp_machine_speed_at(m, device)));
}

static void start_colours(refinement *x, int apart) {
    int32_t *here = HP_NEW(x->arena, int32_t, x->c->places);
    for (int r = 0; r < x->n_rank; r++) {
        const uint64_t role = (uint64_t)(r % x->p->n_role);
        x->rank[r] = mix(role, r == apart) + ways(x, r) + device_kind(x, r);
    }
    for (int kind = 0; kind < HP_PLACES; kind++)
        for (int g = 0; g < x->p->n_group && tells_apart(x, kind); g++)
            for (int c = x->c->world_comm[g]; c < x->c->world_comm[g + 1]; c++)
                spread_over(x, g, c, kind, here);
}

/* --- a round --- */

static void colour_places(refinement *x) {
    for (int kind = 0; kind < HP_PLACES; kind++) {
        const int32_t *at = x->c->place[kind].at;
        if (!tells_apart(x, kind)) continue;
        memset(x->place[kind], 0, sizeof *x->place[kind] * (size_t)x->c->place[kind].all);
        for (int r = 0; r < x->n_rank; r++) x->place[kind][at[r]] += mix(x->rank[r], 1 + (uint64_t)kind);
    }
}

static void colour_ranks(refinement *x) {
    for (int r = 0; r < x->n_rank; r++) {
        const hp_role *role = &x->p->role[r % x->p->n_role];
        uint64_t sum = x->rank[r];
        for (int kind = 0; kind < HP_PLACES; kind++)
            if (x->felt[kind]) sum = mix(sum, x->place[kind][x->c->place[kind].at[r]]);
        for (int q = 1; q < role->n_queue; q++)
            if (role->queue[q].kind != HP_QUEUE_COLL)
                sum += mix(x->rank[first_of_replica(x, r) + role->queue[q].peer], (uint64_t)q);
        x->next[r] = sum;
    }
}

/* A communicator's colour combines its members' colours and is passed to them. */
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

/* Numbers colours by first appearance; returns their number. */
static int number(hp_arena *arena, const uint64_t *colour, int n, int32_t *of) {
    int slots = 16, found = 0;
    while (slots < 2 * n) slots *= 2;
    int32_t *at = HP_NEW(arena, int32_t, slots); /* 1 + index of the first with this colour */
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
    for (int i = 0; i < x->n_comm; i++) x->comm[i] = (uint64_t)i;
    for (int kind = 0; kind < HP_PLACES; kind++)
        for (int i = 0; i < x->c->place[kind].all; i++) x->place[kind][i] = (uint64_t)i;
}

/* --- from colours to classes --- */

/* Lists the classes of places, and those of their ranks. */
static void list_places(refinement *x, int kind) {
    hp_classes *c = x->c;
    hp_places *p = &c->place[kind];
    p->n = number(x->arena, x->place[kind], p->all, p->class_of);
    p->of = HP_NEW(x->arena, int32_t, c->n);
    p->beside = HP_NEW(x->arena, int32_t, c->n);
    for (int i = 0; i < c->n; i++) p->of[i] = p->class_of[p->at[c->first[i]]];
    for (int r = 0; r < x->n_rank; r++) p->beside[c->of[r]] += p->at[r] == p->at[c->first[c->of[r]]];
}

static void list_ranks(refinement *x) {
    hp_classes *c = x->c;
    c->n = number(x->arena, x->rank, x->n_rank, c->of);
    c->first = HP_NEW(x->arena, int32_t, c->n);
    c->size = HP_NEW(x->arena, int32_t, c->n);
    for (int r = x->n_rank - 1; r >= 0; r--) {
        c->first[c->of[r]] = r;
        c->size[c->of[r]]++;
    }
    for (int kind = 0; kind < HP_PLACES; kind++)
        if (tells_apart(x, kind)) list_places(x, kind);
    if (!x->felt[HP_PLACE_NICS]) c->place[HP_PLACE_NICS] = c->place[HP_PLACE_NODE];
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

static int place_of(const hp_machine *m, hp_place_kind kind, int device) {
    switch (kind) {
    case HP_PLACE_NODE:
        return device / m->devices_per_node;
    case HP_PLACE_NICS:
        return device / m->devices_per_node * hp_network_sets(m) + hp_network_set_at(m, device);
    case HP_PLACE_LEAF:
        return hp_network_leaf_at(m, device);
    default:
        return device;
    }
}

static void open_places(refinement *x, hp_place_kind kind, const int32_t *device) {
    hp_places *p = &x->c->place[kind];
    p->at = HP_NEW(x->arena, int32_t, x->n_rank);
    for (int r = 0; r < x->n_rank; r++) {
        p->at[r] = place_of(x->m, kind, device[r]);
        if (p->at[r] >= p->all) p->all = p->at[r] + 1;
    }
    p->class_of = HP_NEW(x->arena, int32_t, p->all);
    x->place[kind] = HP_NEW(x->arena, uint64_t, p->all);
    if (p->all > x->c->places) x->c->places = p->all;
}

/* On processors, only nodes are shared. Places without effect become one place for all, such as the network
 * if it carries everything the NICs send. Others become another kind's place, such as a node's NICs shared by
 * all its devices. */
static void place_ranks(refinement *x) {
    const hp_machine *m = x->m;
    int32_t *device = HP_NEW(x->arena, int32_t, x->n_rank);
    for (int r = 0; r < x->n_rank; r++) device[r] = hp_rank_device(x->p, m, r);
    x->felt[HP_PLACE_NODE] = true;
    x->felt[HP_PLACE_DEVICE] = !m->share_cpu;
    x->felt[HP_PLACE_NICS] = !m->share_cpu && hp_network_sets(m) > 1;
    x->felt[HP_PLACE_LEAF] = !m->share_cpu && hp_machine_taper(m) > 1;
    for (int kind = 0; kind < HP_PLACES; kind++)
        if (tells_apart(x, kind)) open_places(x, (hp_place_kind)kind, device);
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
    refinement x = {.arena = arena, .w = w, .p = p, .m = m, .n_rank = hp_program_ranks(p), .c = c};
    c->of = HP_NEW(arena, int32_t, x.n_rank);
    place_ranks(&x);
    number_comms(&x);
    x.rank = HP_NEW(arena, uint64_t, x.n_rank);
    x.next = HP_NEW(arena, uint64_t, x.n_rank);
    x.comm = HP_NEW(arena, uint64_t, x.n_comm);
    if (fold && p->dp > 1) {
        start_colours(&x, apart);
        refine(&x);
    } else {
        tell_all_apart(&x);
    }
    list_ranks(&x);
    list_comms(&x);
    return c;
}
