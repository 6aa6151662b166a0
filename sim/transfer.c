/* transfer.c - messages and collectives of the simulator: they match in order, start once all ends are
 * posted, and take either links (device machines) or the cores of those who copy (CPU machines, where MPI has
 * no thread of its own). */
#include "sim/state.h"

static int receiver_of(const sim *s, int rank, int queue) {
    return s->rank[rank].peer[queue];
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

/* A caller's task of the collective whose turn it is. */
static int turn_of(const sim *s, const communicator *c, const caller *k) {
    return hp_wired_task(sim_role(s, k->rank), k->queue, c->next);
}

static void start_collective(sim *s, int comm) {
    communicator *c = &s->comm[comm];
    if (c->active || c->next >= c->group->calls || c->posted[c->next] < c->members) return;
    c->active = true;
    c->parts_left = c->n_caller;
    int64_t work = 0;
    for (int k = 0; k < c->n_caller; k++) {
        const int rank = c->caller[k].rank, task = turn_of(s, c, &c->caller[k]);
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
        const int comm = s->rank[rank].peer[q];
        if (s->comm[comm].steps) {
            sim_steps_post(s, comm, s->rank[rank].calls[q]);
            return;
        }
        s->comm[comm].posted[k] += s->rank[rank].calls[q];
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
    for (int k = 0; k < c->n_caller; k++) {
        const int rank = c->caller[k].rank, task = turn_of(s, c, &c->caller[k]);
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
        const int comm = s->rank[rank].peer[q];
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
