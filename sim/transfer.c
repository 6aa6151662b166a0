/* transfer.c - messages and collectives of the simulator: they match in order, start once all ends are
 * posted, and take either links (device machines) or the cores of those who copy (CPU machines, where MPI has
 * no thread of its own). */
#include "sim/state.h"

/* Does MPI carry it, between GPUs? What leaves the node, and all-reduces, goes through the host's memory
 * then. */
static bool by_host(const sim *s, const hp_queue *q) {
    return hp_wire_of(s->machine, s->program->device, q->backend) == HP_WIRE_MPI;
}

/* A message holds its sender's way out and its receiver's way in; folded, the other clients of the devices
 * send theirs beside it. */
static void message_uses(sim *s, int from, int to, bool host, channel *c) {
    const hp_program *p = s->program;
    const hp_machine *m = s->machine;
    if (hp_rank_node(p, m, from) != hp_rank_node(p, m, to)) {
        if (host) {
            c->use[c->n_use++] = (hp_share_use){res_host(s, from, false), s->clients_here};
            c->use[c->n_use++] = (hp_share_use){res_host(s, to, true), s->clients_here};
        }
        c->use[c->n_use++] = (hp_share_use){res_nic(s, from, false), s->clients_here};
        c->use[c->n_use++] = (hp_share_use){res_nic(s, to, true), s->clients_here};
    } else if (!s->on_cores && hp_rank_device(p, m, from) != hp_rank_device(p, m, to)) {
        c->use[c->n_use++] = (hp_share_use){res_link(s, from, false), s->clients_here};
        c->use[c->n_use++] = (hp_share_use){res_link(s, to, true), s->clients_here};
    }
}

static void channels_init(sim *s, int rank) {
    const hp_wired_role *w = sim_role(s, rank);
    rank_state *r = &s->rank[rank];
    r->channel = HP_NEW(s->arena, channel, w->role->n_queue);
    for (int q = 0; q < w->role->n_queue; q++) {
        if (w->role->queue[q].kind != HP_QUEUE_SEND) continue;
        const int to = rank - rank % s->program->n_role + w->role->queue[q].peer;
        r->channel[q].posted = HP_NEW(s->arena, uint8_t, w->queue[q].n);
        message_uses(s, rank, to, by_host(s, &w->role->queue[q]), &r->channel[q]);
    }
}

static int comm_rank(const sim *s, const communicator *c, int member) {
    return (c->replica + member / c->group->n) * s->program->n_role + c->group->role[member % c->group->n];
}

static void use_both_ways(communicator *c, int32_t out, int32_t in, double demand) {
    c->use[c->n_use++] = (hp_share_use){out, demand};
    c->use[c->n_use++] = (hp_share_use){in, demand};
}

/* A collective through the host's memory copies all that its members have. */
static void host_uses(sim *s, communicator *c, double demand) {
    bool *taken = HP_NEW(s->arena, bool, s->n_device);
    for (int k = 0; k < c->members; k++) {
        const int rank = comm_rank(s, c, k), place = hp_rank_device(s->program, s->machine, rank);
        if (taken[place]) continue;
        taken[place] = true;
        use_both_ways(c, res_host(s, rank, false), res_host(s, rank, true), demand);
    }
}

static const hp_queue *queue_of(const communicator *c, const hp_wiring *w) {
    return &w->role[c->group->role[0]].role->queue[c->group->queue[0]];
}

/* A collective takes, on every node it spans, as many NICs as it has members there; inside a node, its
 * members' links. */
static void communicator_uses(sim *s, int group, communicator *c) {
    const hp_machine *m = s->machine;
    const int ranks = hp_group_size(s->program, group);
    if (s->on_cores || c->members == 0 || ranks == 1) return;
    const int per_node = hp_group_per_node(s->program, m, group, c->replica);
    const bool one_node = per_node == ranks;
    c->use = HP_NEW(s->arena, hp_share_use, 4 * c->members);
    const double others =
        s->program->group[group].all_replicas ? 1 : s->clients_here; /* with one of their own */
    const double demand = others * (one_node ? 1 : per_node < m->nics_per_node ? per_node : m->nics_per_node);
    const bool host = by_host(s, queue_of(c, s->wiring));
    if (host) host_uses(s, c, others);
    if (host && one_node) return;
    const int places = one_node ? s->n_device : s->n_node;
    bool *taken = HP_NEW(s->arena, bool, places);
    for (int k = 0; k < c->members; k++) {
        const int rank = comm_rank(s, c, k);
        const int place = one_node ? hp_rank_device(s->program, m, rank) : hp_rank_node(s->program, m, rank);
        if (taken[place]) continue;
        taken[place] = true;
        if (one_node)
            use_both_ways(c, res_link(s, rank, false), res_link(s, rank, true), demand);
        else
            use_both_ways(c, res_nic(s, rank, false), res_nic(s, rank, true), demand);
    }
}

static void communicators_init(sim *s) {
    const hp_program *p = s->program;
    s->comm_first = HP_NEW(s->arena, int32_t, p->n_group + 1);
    for (int g = 0; g < p->n_group; g++)
        s->comm_first[g + 1] = s->comm_first[g] + (p->group[g].all_replicas ? 1 : s->dp);
    s->comm = HP_NEW(s->arena, communicator, s->comm_first[p->n_group]);
    for (int g = 0; g < p->n_group; g++) {
        for (int k = s->comm_first[g]; k < s->comm_first[g + 1]; k++) {
            communicator *c = &s->comm[k];
            c->group = &s->wiring->group[g];
            c->replica = k - s->comm_first[g];
            c->members = c->group->n * (p->group[g].all_replicas ? s->dp : 1);
            c->posted = HP_NEW(s->arena, int32_t, c->group->calls);
            communicator_uses(s, g, c);
        }
    }
}

static int comm_of(const sim *s, int rank, int group) {
    const bool own = !s->program->group[group].all_replicas;
    return s->comm_first[group] + (own ? rank / s->program->n_role : 0);
}

void sim_transfer_init(sim *s) {
    for (int r = 0; r < s->n_rank; r++) channels_init(s, r);
    communicators_init(s);
}

static int receiver_of(const sim *s, int rank, int queue) {
    return rank - rank % s->program->n_role + sim_role(s, rank)->role->queue[queue].peer;
}

static int receive_task(const sim *s, int rank, int queue, int message) {
    const int partner = sim_role(s, rank)->queue[queue].partner;
    return sim_role(s, receiver_of(s, rank, queue))->queue[partner].task[message];
}

static void start_message(sim *s, int rank, int queue) {
    channel *c = &s->rank[rank].channel[queue];
    const hp_wired_queue *wq = &sim_role(s, rank)->queue[queue];
    if (c->active || c->next >= wq->n || c->posted[c->next] < 2) return;
    c->active = true;
    const int to = receiver_of(s, rank, queue);
    if (s->on_cores) {
        sim_push_part(s, to, receive_task(s, rank, queue, c->next));
        return;
    }
    const int64_t work = sim_duration_ns(s, rank, wq->task[c->next]);
    sim_account_transfer(s, rank, wq->task[c->next], 1);
    sim_account_transfer(s, to, receive_task(s, rank, queue, c->next), 1);
    hp_fluid_start(s->fluid, s->now_ns, work, c->n_use, c->use, owner_make(OWNER_MESSAGE, rank, queue));
}

/* A member's task of the collective whose turn it is. */
static int turn_of(const sim *s, const communicator *c, int member) {
    return hp_wired_call(s->wiring, c->group, member % c->group->n, c->next);
}

static void start_collective(sim *s, int comm) {
    communicator *c = &s->comm[comm];
    if (c->active || c->next >= c->group->calls || c->posted[c->next] < c->members) return;
    c->active = true;
    c->parts_left = c->members;
    int64_t work = 0;
    for (int k = 0; k < c->members; k++) {
        const int task = turn_of(s, c, k), rank = comm_rank(s, c, k);
        if (s->on_cores) {
            sim_push_part(s, rank, task);
        } else {
            const int64_t ns = sim_duration_ns(s, rank, task);
            work = ns > work ? ns : work;
            sim_account_transfer(s, rank, task, 1);
        }
    }
    if (!s->on_cores)
        hp_fluid_start(s->fluid, s->now_ns, work, c->n_use, c->use, owner_make(OWNER_COLLECTIVE, comm, 0));
}

void sim_start_transfer(sim *s, int rank, int task) {
    const hp_wired_role *w = sim_role(s, rank);
    const int q = w->role->task[task].queue, k = w->place[task];
    const hp_queue *queue = &w->role->queue[q];
    if (queue->kind == HP_QUEUE_COLL) {
        const int comm = comm_of(s, rank, queue->peer);
        s->comm[comm].posted[k]++;
        start_collective(s, comm);
        return;
    }
    const int partner = w->queue[q].partner;
    if (partner < 0) return; /* never matched: the run stops and says so */
    const int peer = receiver_of(s, rank, q);
    const bool sends = queue->kind == HP_QUEUE_SEND;
    const int from = sends ? rank : peer, from_queue = sends ? q : partner;
    if (k >= sim_role(s, from)->queue[from_queue].n) return;
    s->rank[from].channel[from_queue].posted[k]++;
    start_message(s, from, from_queue);
}

/* The receiver holds message `next` of a channel: both tasks are done, the following one may go. */
static void finish_message(sim *s, int rank, int queue) {
    channel *c = &s->rank[rank].channel[queue];
    const int sent = sim_role(s, rank)->queue[queue].task[c->next];
    sim_complete(s, receiver_of(s, rank, queue), receive_task(s, rank, queue, c->next));
    if (s->on_cores) {
        sim_push(s, &s->rank[rank].arrived, sent);
        sim_wake(s, rank);
    } else {
        sim_complete(s, rank, sent);
    }
    c->next++;
    c->active = false;
    start_message(s, rank, queue);
}

static void finish_collective(sim *s, int comm) {
    communicator *c = &s->comm[comm];
    for (int k = 0; k < c->members; k++) {
        const int task = turn_of(s, c, k), rank = comm_rank(s, c, k);
        if (s->on_cores) {
            sim_push(s, &s->rank[rank].arrived, task);
            sim_wake(s, rank);
        } else {
            sim_account_transfer(s, rank, task, -1);
            sim_complete(s, rank, task);
        }
    }
    c->next++;
    c->active = false;
    start_collective(s, comm);
}

void sim_part_done(sim *s, int rank, int task) {
    const hp_wired_role *w = sim_role(s, rank);
    const int q = w->role->task[task].queue;
    const hp_queue *queue = &w->role->queue[q];
    if (queue->kind == HP_QUEUE_COLL) {
        const int comm = comm_of(s, rank, queue->peer);
        if (--s->comm[comm].parts_left == 0) finish_collective(s, comm);
        return;
    }
    finish_message(s, receiver_of(s, rank, q), w->queue[q].partner);
}

void sim_message_done(sim *s, int rank, int queue) {
    const int message = s->rank[rank].channel[queue].next;
    sim_account_transfer(s, rank, sim_role(s, rank)->queue[queue].task[message], -1);
    sim_account_transfer(s, receiver_of(s, rank, queue), receive_task(s, rank, queue, message), -1);
    finish_message(s, rank, queue);
}

void sim_collective_done(sim *s, int comm) {
    finish_collective(s, comm);
}
