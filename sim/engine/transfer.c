/* transfer.c - messages and collectives of the simulator. They match in order and start once all ends are
 * posted. They occupy links (device machines) or the cores that copy them (CPU machines, where MPI has no
 * thread of its own). */
#include "sim/engine/state.h"

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
    const int64_t latency = sim_latency_ns(s, rank, wq->task[c->next], work);
    sim_account_transfer(s, rank, wq->task[c->next], 1);
    sim_account_transfer(s, to, receive_task(s, rank, queue, c->next), 1);
    hp_fluid_start(s->fluid, s->now_ns, latency, work - latency, c->n_use, c->use,
                   owner_make(OWNER_MESSAGE, rank, queue));
}

/* A caller's task in the collective whose turn it is. */
static int turn_of(const sim *s, const communicator *c, const caller *k) {
    return hp_wired_task(sim_role(s, k->rank), k->queue, c->next);
}

/* On cores, a member advances a step whenever it looks, at its boundaries (exec/comm/mpi.c). The next step's
 * messages come once all have done this one; a library's collectives advance as often as hplan's would.
 * Simulating more rounds makes no worthwhile difference. */
enum { MOST_ROUNDS = 8 };

static int rounds_of(const sim *s, const communicator *c) {
    const caller *k = &c->caller[0];
    const hp_role *r = sim_role(s, k->rank)->role;
    const hp_task *t = &r->task[turn_of(s, c, k)];
    const hp_collective_case what = hp_task_case(s->program, r, t);
    const hp_collective_data data = hp_task_data(s->program, t);
    const hp_algorithm a = t->algorithm
                               ? (hp_algorithm)t->algorithm
                               : hp_algorithm_choose(&what, data.count * data.elem_bytes, !data.part);
    const int steps = hp_algorithms[a]->steps(&what);
    return steps < 1 ? 1 : steps < MOST_ROUNDS || sim_is_star(s, c) ? steps : MOST_ROUNDS;
}

static void start_part(sim *s, communicator *c, int k) {
    c->parts_left++;
    sim_push_part(s, c->caller[k].rank, turn_of(s, c, &c->caller[k]));
}

/* A round of a star is a message between the root and one other member; the rest go on computing. */
static void start_message_of_star(sim *s, communicator *c) {
    const caller *k = &c->caller[0];
    const hp_role *r = sim_role(s, k->rank)->role;
    const hp_collective_case what = hp_task_case(s->program, r, &r->task[turn_of(s, c, k)]);
    const int step = c->rounds - c->rounds_left;
    for (int32_t m = 0; m < what.size; m++) {
        const hp_block_step at = hp_algorithms[HP_ALGORITHM_DIRECT]->step(&what, m, 0, step);
        if (at.send_to >= 0 || at.recv_from >= 0) start_part(s, c, m);
    }
}

static void start_round(sim *s, communicator *c) {
    if (sim_is_star(s, c)) {
        start_message_of_star(s, c);
        return;
    }
    for (int k = 0; k < c->n_caller; k++) start_part(s, c, k);
}

int64_t sim_part_ns(const sim *s, int rank, int task, int64_t ns) {
    const communicator *c = &s->comm[s->rank[rank].peer[sim_role(s, rank)->role->task[task].queue]];
    const int64_t done = c->rounds - c->rounds_left;
    return ns * (done + 1) / c->rounds - ns * done / c->rounds;
}

static void start_collective(sim *s, int comm) {
    communicator *c = &s->comm[comm];
    if (c->active || c->next >= c->group->calls || c->posted[c->next] < c->members) return;
    c->active = true;
    if (s->on_cores) {
        c->rounds = c->rounds_left = rounds_of(s, c);
        start_round(s, c);
        return;
    }
    int64_t work = 0, latency = 0;
    for (int k = 0; k < c->n_caller; k++) {
        const int rank = c->caller[k].rank, task = turn_of(s, c, &c->caller[k]);
        const int64_t ns = sim_duration_ns(s, rank, task);
        if (ns > work) {
            work = ns;
            latency = sim_latency_ns(s, rank, task, ns);
        }
        sim_account_transfer(s, rank, task, 1);
    }
    hp_fluid_start(s->fluid, s->now_ns, latency, work - latency, c->n_use, c->use,
                   owner_make(OWNER_COLLECTIVE, comm, 0));
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
    if (partner < 0) return; /* never matched: the run stops and reports it */
    const int peer = receiver_of(s, rank, q);
    const bool sends = queue->kind == HP_QUEUE_SEND;
    const int from = sends ? rank : peer, from_queue = sends ? q : partner;
    if (k >= sim_role(s, from)->queue[from_queue].n) return;
    s->rank[from].channel[from_queue].posted[k]++;
    start_message(s, from, from_queue);
}

/* The receiver has message `next` of a channel: both tasks are done, and the following one may go. */
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
        communicator *c = &s->comm[comm];
        if (--c->parts_left > 0) return;
        if (--c->rounds_left > 0)
            start_round(s, c);
        else
            finish_collective(s, comm);
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
