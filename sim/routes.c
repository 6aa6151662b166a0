/* routes.c - before the clock starts: where the messages of each class of ranks go and what they take on their way, who
 * takes part in each class of communicators and what their collectives take. */
#include "sim/state.h"

/* Does MPI carry it, between GPUs? What leaves the node, and all-reduces, goes through the host's memory
 * then. */
static bool by_host(const sim *s, const hp_queue *q) {
    return hp_wire_of(s->machine, s->program->device, q->backend) == HP_WIRE_MPI;
}

/* --- messages --- */

/* A message holds its sender's way out and its receiver's way in; ranks of its ends' classes on the same node or
 * device send and receive theirs beside it. */
static int message_uses(const sim *s, int from, int to, int to_world, bool host, hp_share_use *use) {
    const hp_classes *k = s->classes;
    const int32_t *node = k->rank_node, *device = k->rank_device;
    const int from_world = s->rank[from].world;
    int n = 0;
    if (node[from_world] != node[to_world]) {
        if (host) {
            use[n++] = (hp_share_use){res_host(s, k->device[from], false), k->on_device[from]};
            use[n++] = (hp_share_use){res_host(s, k->device[to], true), k->on_device[to]};
        }
        use[n++] = (hp_share_use){res_nic(s, k->node[from], false), k->on_node[from]};
        use[n++] = (hp_share_use){res_nic(s, k->node[to], true), k->on_node[to]};
    } else if (!s->on_cores && device[from_world] != device[to_world]) {
        use[n++] = (hp_share_use){res_link(s, k->device[from], false), k->on_device[from]};
        use[n++] = (hp_share_use){res_link(s, k->device[to], true), k->on_device[to]};
    }
    return n;
}

int sim_route(const sim *s, int from, int to, const hp_queue *queue, hp_share_use use[4]) {
    return message_uses(s, from, to, s->rank[to].world, by_host(s, queue), use);
}

static void channels_init(sim *s, int rank) {
    const hp_wired_role *w = sim_role(s, rank);
    rank_state *r = &s->rank[rank];
    r->channel = HP_NEW(s->arena, channel, w->role->n_queue);
    r->peer = HP_NEW(s->arena, int32_t, w->role->n_queue);
    r->calls = HP_NEW(s->arena, int32_t, w->role->n_queue);
    for (int q = 1; q < w->role->n_queue; q++) {
        const hp_queue *queue = &w->role->queue[q];
        if (queue->kind == HP_QUEUE_COLL) {
            r->peer[q] = s->classes->comm[hp_world_comm(s->classes, s->program, r->world, queue->peer)];
            continue;
        }
        const int to = r->world - r->role + queue->peer;
        r->peer[q] = s->classes->of[to];
        if (queue->kind != HP_QUEUE_SEND) continue;
        r->channel[q].posted = HP_NEW(s->arena, uint8_t, w->queue[q].n);
        r->channel[q].n_use = message_uses(s, rank, r->peer[q], to, by_host(s, queue), r->channel[q].use);
    }
}

/* --- collectives --- */

static int world_rank(const sim *s, const hp_wired_group *g, int replica, int member) {
    return (replica + member / g->n) * s->program->n_role + g->role[member % g->n];
}

/* Scratch, all 0 between uses. */
typedef struct tally {
    int32_t *seen;  /* per class of ranks: its caller, + 1 */
    int32_t *on;    /* per node or device: communicators of a class with members there */
    int32_t *stamp; /* the last of them that was counted, + 1 */
    bool *taken;    /* per class of nodes or devices */
} tally;

/* Members of a class post together: they are one caller. */
static void list_callers(sim *s, communicator *c, const tally *t) {
    c->caller = HP_NEW(s->arena, caller, c->members < s->n_rank ? c->members : s->n_rank);
    for (int k = 0; k < c->members; k++) {
        const int rank = s->classes->of[world_rank(s, c->group, c->replica, k)];
        if (!t->seen[rank]) {
            c->caller[c->n_caller++] = (caller){rank, c->group->queue[k % c->group->n], 0};
            t->seen[rank] = c->n_caller;
        }
        c->caller[t->seen[rank] - 1].n++;
    }
    for (int i = 0; i < c->n_caller; i++) {
        const caller *at = &c->caller[i];
        s->rank[at->rank].calls[at->queue] = at->n;
        t->seen[at->rank] = 0;
    }
}

/* Which places a communicator's collectives use, and as what. */
typedef struct way {
    const int32_t *place, *class_of; /* per rank: node or device; per node or device: its class */
    int32_t (*resource)(const sim *s, int place, bool in);
    double demand;
} way;

static int place_of(const sim *s, const communicator *c, int comm, int member, const way *w) {
    const int replica = comm - s->classes->world_comm[c->group - s->wiring->group];
    return w->place[world_rank(s, c->group, replica, member)];
}

static void count_places(const sim *s, const communicator *c, int comm, const way *w, const tally *t,
                         bool on) {
    for (int m = 0; m < c->members; m++) {
        const int place = place_of(s, c, comm, m, w);
        if (!on) {
            t->on[place] = t->stamp[place] = 0;
        } else if (t->stamp[place] != comm + 1) {
            t->on[place]++;
            t->stamp[place] = comm + 1;
        }
    }
}

/* Both ways of every place where the communicator has members, once per class of places; others of its class beside
 * it. */
static void use_places(sim *s, int like, communicator *c, const way *w, const tally *t) {
    const hp_classes *k = s->classes;
    for (int i = k->comm_first[like]; i < k->comm_first[like + 1]; i++)
        count_places(s, c, k->comm_member[i], w, t, true);
    const int first = k->comm_member[k->comm_first[like]];
    for (int m = 0; m < c->members; m++) {
        const int place = place_of(s, c, first, m, w), of = w->class_of[place];
        if (t->taken[of]) continue;
        t->taken[of] = true;
        c->use[c->n_use++] = (hp_share_use){w->resource(s, of, false), w->demand * t->on[place]};
        c->use[c->n_use++] = (hp_share_use){w->resource(s, of, true), w->demand * t->on[place]};
    }
    for (int m = 0; m < c->members; m++) t->taken[w->class_of[place_of(s, c, first, m, w)]] = false;
    for (int i = k->comm_first[like]; i < k->comm_first[like + 1]; i++)
        count_places(s, c, k->comm_member[i], w, t, false);
}

/* A collective takes, on every node it spans, as many NICs as it has members there; inside a node, its members'
 * links; through the host's memory it copies all that they have. */
static void communicator_uses(sim *s, int group, int like, communicator *c, const tally *t) {
    const hp_classes *k = s->classes;
    const int ranks = hp_group_size(s->program, group);
    if (s->on_cores || c->members == 0 || ranks == 1) return;
    const int per_node = hp_group_per_node(s->program, s->machine, group, c->replica),
              nics = s->machine->nics_per_node;
    const int most = k->n_node + k->n_device;
    c->use = HP_NEW(s->arena, hp_share_use, 2 * (2 * c->members < most ? 2 * c->members : most));
    const hp_queue *queue = &s->wiring->role[c->group->role[0]].role->queue[c->group->queue[0]];
    const bool host = by_host(s, queue), one_node = per_node == ranks;
    const way by_memory = {k->rank_device, k->device_class, res_host, 1},
              by_link = {k->rank_device, k->device_class, res_link, 1},
              by_nic = {k->rank_node, k->node_class, res_nic, per_node < nics ? per_node : nics};
    if (host) use_places(s, like, c, &by_memory, t);
    if (!one_node)
        use_places(s, like, c, &by_nic, t);
    else if (!host)
        use_places(s, like, c, &by_link, t);
}

static void communicators_init(sim *s) {
    const hp_program *p = s->program;
    const hp_classes *k = s->classes;
    const tally t = {.seen = HP_NEW(s->arena, int32_t, k->n),
                     .on = HP_NEW(s->arena, int32_t, k->places),
                     .stamp = HP_NEW(s->arena, int32_t, k->places),
                     .taken = HP_NEW(s->arena, bool, k->places)};
    s->comm = HP_NEW(s->arena, communicator, k->n_comm);
    for (int g = 0; g < p->n_group; g++) {
        for (int world = k->world_comm[g]; world < k->world_comm[g + 1]; world++) {
            communicator *c = &s->comm[k->comm[world]];
            if (k->comm_member[k->comm_first[k->comm[world]]] != world)
                continue; /* not the first of its class */
            c->group = &s->wiring->group[g];
            c->replica = world - k->world_comm[g];
            c->members = c->group->n * (p->group[g].all_replicas ? p->dp : 1);
            c->posted = HP_NEW(s->arena, int32_t, c->group->calls);
            list_callers(s, c, &t);
            if (s->options->steps || sim_is_star(s, c)) sim_steps_init(s, c);
            communicator_uses(s, g, k->comm[world], c, &t);
        }
    }
}

void sim_routes_init(sim *s) {
    for (int r = 0; r < s->n_rank; r++) channels_init(s, r);
    communicators_init(s);
}
