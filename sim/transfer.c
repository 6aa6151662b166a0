/* transfer.c - messages and collectives of the simulator: they match in order, start once all ends are
 * posted, and take either links (device machines) or the cores of those who copy (CPU machines, where MPI has
 * no thread of its own). */
#include "sim/state.h"

/* A message holds its sender's way out and its receiver's way in. */
static void message_uses(sim *s, int from, int to, channel *c) {
    if (hp_place_node(s->machine, from) != hp_place_node(s->machine, to)) {
        c->use[c->n_use++] = (hp_share_use){res_nic(s, from, false), 1};
        c->use[c->n_use++] = (hp_share_use){res_nic(s, to, true), 1};
    } else if (!s->on_cores && hp_place_device(s->machine, from) != hp_place_device(s->machine, to)) {
        c->use[c->n_use++] = (hp_share_use){res_link(s, from, false), 1};
        c->use[c->n_use++] = (hp_share_use){res_link(s, to, true), 1};
    }
}

static void channels_init(sim *s, int rank) {
    const hp_wired_role *w = sim_role(s, rank);
    rank_state *r = &s->rank[rank];
    r->channel = HP_NEW(s->arena, channel, w->role->n_queue);
    for (int q = 0; q < w->role->n_queue; q++) {
        if (w->role->queue[q].kind != HP_QUEUE_SEND) continue;
        const int to = rank - rank % s->wiring->n_role + w->role->queue[q].peer;
        r->channel[q].posted = HP_NEW(s->arena, uint8_t, w->queue[q].n);
        message_uses(s, rank, to, &r->channel[q]);
    }
}

static bool is_member(const sim *s, int group, int rank) {
    return hp_group_has_role(s->program, group, rank % s->wiring->n_role);
}

static int queue_of_group(const hp_role *r, int group) {
    for (int q = 0; q < r->n_queue; q++) {
        if (r->queue[q].kind == HP_QUEUE_COLL && r->queue[q].peer == group) return q;
    }
    return -1;
}

/* A collective takes, on every node it spans, as many NICs as it has members there; inside a node, its
 * members' links. */
static void communicator_uses(sim *s, int group, communicator *c) {
    const hp_machine *m = s->machine;
    const bool one_node = hp_group_per_node(s->program, m, group) == hp_group_ranks(s->program, group);
    if (s->on_cores || c->members == 0 || hp_group_ranks(s->program, group) == 1) return;
    c->use = HP_NEW(s->arena, hp_share_use, 2 * c->members);
    const int per_node = hp_group_per_node(s->program, m, group);
    const double demand = per_node < m->nics_per_node ? per_node : m->nics_per_node;
    int last = -1;
    for (int r = 0; r < s->wiring->n_rank; r++) {
        if (!is_member(s, group, r)) continue;
        const int node = hp_place_node(m, r);
        if (!one_node && node == last) continue;
        last = node;
        c->use[c->n_use++] =
            (hp_share_use){one_node ? res_link(s, r, false) : res_nic(s, r, false), one_node ? 1 : demand};
        c->use[c->n_use++] =
            (hp_share_use){one_node ? res_link(s, r, true) : res_nic(s, r, true), one_node ? 1 : demand};
    }
}

static void communicators_init(sim *s) {
    const hp_program *p = s->program;
    s->comm = HP_NEW(s->arena, communicator, p->n_group > 0 ? p->n_group : 1);
    for (int g = 0; g < p->n_group; g++) {
        communicator *c = &s->comm[g];
        for (int r = 0; r < s->wiring->n_rank; r++) {
            const hp_wired_role *w = sim_role(s, r);
            const int q = is_member(s, g, r) ? queue_of_group(w->role, g) : -1;
            if (q < 0) continue;
            c->members++;
            if (w->queue[q].n > c->n) c->n = w->queue[q].n;
        }
        c->posted = HP_NEW(s->arena, int32_t, c->n);
        communicator_uses(s, g, c);
    }
}

void sim_transfer_init(sim *s) {
    for (int r = 0; r < s->wiring->n_rank; r++) channels_init(s, r);
    communicators_init(s);
}

static int receiver_of(const sim *s, int rank, int queue) {
    return rank - rank % s->wiring->n_role + sim_role(s, rank)->role->queue[queue].peer;
}

static int receive_task(const sim *s, int rank, int queue, int message) {
    const int partner = sim_role(s, rank)->queue[queue].partner;
    return sim_role(s, receiver_of(s, rank, queue))->queue[partner].task[message];
}

static void message_try(sim *s, int rank, int queue) {
    channel *c = &s->rank[rank].channel[queue];
    const hp_wired_queue *wq = &sim_role(s, rank)->queue[queue];
    if (c->active || c->next >= wq->n || c->posted[c->next] < 2) return;
    c->active = true;
    const int to = receiver_of(s, rank, queue);
    if (s->on_cores) {
        sim_push(s, &s->rank[to].parts, receive_task(s, rank, queue, c->next));
        sim_mark(s, to);
        return;
    }
    const int64_t work = sim_duration_ns(s, rank, wq->task[c->next]);
    sim_account(s, rank, 1);
    sim_account(s, to, 1);
    hp_fluid_start(s->fluid, s->now_ns, work, c->n_use, c->use, owner_make(OWNER_MESSAGE, rank, queue));
}

/* A member's task of the collective whose turn it is, -1 for other ranks and for members without one. */
static int turn_of(const sim *s, int group, int rank) {
    if (!is_member(s, group, rank)) return -1;
    const hp_wired_role *w = sim_role(s, rank);
    const int q = queue_of_group(w->role, group);
    return q < 0 ? -1 : w->queue[q].task[s->comm[group].next];
}

static void collective_try(sim *s, int group) {
    communicator *c = &s->comm[group];
    if (c->active || c->next >= c->n || c->posted[c->next] < c->members) return;
    c->active = true;
    c->parts_left = c->members;
    int64_t work = 0;
    for (int r = 0; r < s->wiring->n_rank; r++) {
        const int task = turn_of(s, group, r);
        if (task < 0) continue;
        if (s->on_cores) {
            sim_push(s, &s->rank[r].parts, task);
            sim_mark(s, r);
        } else {
            const int64_t ns = sim_duration_ns(s, r, task);
            work = ns > work ? ns : work;
            sim_account(s, r, 1);
        }
    }
    if (!s->on_cores)
        hp_fluid_start(s->fluid, s->now_ns, work, c->n_use, c->use, owner_make(OWNER_COLLECTIVE, group, 0));
}

void sim_post(sim *s, int rank, int task) {
    const hp_wired_role *w = sim_role(s, rank);
    const int q = w->role->task[task].queue, k = w->place_in_queue[task];
    const hp_queue *queue = &w->role->queue[q];
    if (queue->kind == HP_QUEUE_COLL) {
        s->comm[queue->peer].posted[k]++;
        collective_try(s, queue->peer);
        return;
    }
    const int partner = w->queue[q].partner;
    if (partner < 0) return; /* never matched: the run stops and says so */
    const int peer = receiver_of(s, rank, q);
    const bool sends = queue->kind == HP_QUEUE_SEND;
    const int from = sends ? rank : peer, from_queue = sends ? q : partner;
    if (k >= sim_role(s, from)->queue[from_queue].n) return;
    s->rank[from].channel[from_queue].posted[k]++;
    message_try(s, from, from_queue);
}

/* The receiver holds message `next` of a channel: both tasks are done, the following one may go. */
static void message_arrived(sim *s, int rank, int queue) {
    channel *c = &s->rank[rank].channel[queue];
    const int sent = sim_role(s, rank)->queue[queue].task[c->next];
    sim_complete(s, receiver_of(s, rank, queue), receive_task(s, rank, queue, c->next));
    if (s->on_cores) {
        sim_push(s, &s->rank[rank].arrived, sent);
        sim_mark(s, rank);
    } else {
        sim_complete(s, rank, sent);
    }
    c->next++;
    c->active = false;
    message_try(s, rank, queue);
}

static void collective_finished(sim *s, int group) {
    communicator *c = &s->comm[group];
    for (int r = 0; r < s->wiring->n_rank; r++) {
        const int task = turn_of(s, group, r);
        if (task < 0) continue;
        if (s->on_cores) {
            sim_push(s, &s->rank[r].arrived, task);
            sim_mark(s, r);
        } else {
            sim_account(s, r, -1);
            sim_complete(s, r, task);
        }
    }
    c->next++;
    c->active = false;
    collective_try(s, group);
}

void sim_part_done(sim *s, int rank, int task) {
    const hp_wired_role *w = sim_role(s, rank);
    const int q = w->role->task[task].queue;
    const hp_queue *queue = &w->role->queue[q];
    if (queue->kind == HP_QUEUE_COLL) {
        if (--s->comm[queue->peer].parts_left == 0) collective_finished(s, queue->peer);
        return;
    }
    message_arrived(s, receiver_of(s, rank, q), w->queue[q].partner);
}

void sim_message_done(sim *s, int rank, int queue) {
    sim_account(s, rank, -1);
    sim_account(s, receiver_of(s, rank, queue), -1);
    message_arrived(s, rank, queue);
}

void sim_collective_done(sim *s, int group) {
    collective_finished(s, group);
}
