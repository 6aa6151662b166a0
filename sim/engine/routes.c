/* routes.c - before the clock starts: routes and resource uses of the messages of each class of ranks. */
#include "sim/engine/state.h"

#include "machines/network.h"

#include <math.h>

bool sim_by_host(const sim *s, const hp_queue *q) {
    return hp_wire_of(s->machine, s->program->device, q->backend) == HP_WIRE_MPI;
}

typedef struct route {
    const sim *s;
    hp_share_use *use;
    int n;
} route;

/* A class of ranks uses a resource of its place; the class's other ranks there use it too. */
static void use(route *r, sim_resource_kind kind, int rank) {
    const hp_places *p = &r->s->classes->place[sim_place_of(kind)];
    r->use[r->n++] = (hp_share_use){sim_resource(r->s, kind, p->of[rank]), p->beside[rank]};
}

static bool apart(const sim *s, hp_place_kind kind, int a, int b) {
    const int32_t *at = s->classes->place[kind].at;
    return at && at[a] != at[b];
}

/* Relation of two ranks' devices (machines/network.h). */
static unsigned meet(const sim *s, int a, int b) {
    const int32_t *device = s->classes->place[HP_PLACE_DEVICE].at;
    return hp_network_meet(s->machine, device[a], device[b]);
}

/* Does the sender's node hand it over to the receiver's rail (NCCL's PXN, over NVLink)? */
static bool changes_rail(const sim *s, int from, int to, const hp_queue *q) {
    return s->machine->nic_use == HP_NICS_RAILS && q->backend == HP_BACKEND_NCCL &&
           hp_link_is_nvlink(&s->machine->intra) && !(meet(s, from, to) & HP_NETWORK_RAIL);
}

/* Does it go up from a leaf switch and down to another? */
static bool climbs(const sim *s, int from, int to, const hp_queue *q) {
    const bool same = changes_rail(s, from, to, q) && (meet(s, from, to) & HP_NETWORK_LEAVES);
    return apart(s, HP_PLACE_LEAF, from, to) && !same;
}

/* A message occupies its sender's way out and its receiver's way in. A message that its node hands over to
 * another rail counts on the sender's NICs, because as many come from others. */
static int message_uses(const sim *s, int from, int to, int to_world, const hp_queue *q,
                        hp_share_use uses[SIM_WAY]) {
    const int from_world = s->rank[from].world;
    route r = {s, uses, 0};
    if (apart(s, HP_PLACE_NODE, from_world, to_world)) {
        if (sim_by_host(s, q)) use(&r, RES_HOST_OUT, from), use(&r, RES_HOST_IN, to);
        if (changes_rail(s, from_world, to_world, q)) use(&r, RES_LINK_OUT, from);
        use(&r, RES_NICS_OUT, from), use(&r, RES_NICS_IN, to);
        if (climbs(s, from_world, to_world, q)) use(&r, RES_LEAF_UP, from), use(&r, RES_LEAF_DOWN, to);
    } else if (!s->on_cores && apart(s, HP_PLACE_DEVICE, from_world, to_world)) {
        use(&r, RES_LINK_OUT, from), use(&r, RES_LINK_IN, to);
    }
    return r.n;
}

/* Uses of a message in an exchange priced as a collective: the members' links, and as many NICs as the node
 * has members, even if only other messages of the exchange leave the node. */
static bool exchange_uses(const sim *s, int from, int to, int queue, channel *c) {
    const hp_sim_costs *costs = s->costs;
    int32_t per_node = 0, ranks = 0;
    const int world = s->rank[from].world;
    if (s->on_cores || !costs->collective ||
        !costs->collective(costs->self, s->program, world, queue, &per_node, &ranks))
        return false;
    route r = {s, c->use, 0};
    use(&r, RES_LINK_OUT, from), use(&r, RES_LINK_IN, to);
    if (per_node < ranks) {
        const double nics = hp_network_nics(s->machine, per_node), share = fmin(1, nics / per_node);
        use(&r, RES_NICS_OUT, from), use(&r, RES_NICS_IN, to);
        for (int k = r.n - 2; k < r.n; k++) c->use[k].demand *= share;
    }
    c->n_use = r.n;
    return true;
}

int sim_route(const sim *s, int from, int to, const hp_queue *queue, hp_share_use uses[SIM_WAY]) {
    return message_uses(s, from, to, s->rank[to].world, queue, uses);
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
        if (!exchange_uses(s, rank, r->peer[q], q, &r->channel[q]))
            r->channel[q].n_use = message_uses(s, rank, r->peer[q], to, queue, r->channel[q].use);
    }
}

void sim_channels_init(sim *s) {
    for (int r = 0; r < s->n_rank; r++) channels_init(s, r);
}
