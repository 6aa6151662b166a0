/* periods.c - records states whenever the first rank moves to another micro-batch, and compares them.
 *
 * A state is everything the future depends on: positions of queues, running activities with remaining work
 * and rates, and what waits to be noticed. Places are relative to what has ended, times to now. After two
 * equal states, the simulation repeats as long as the coming tasks wait for each other, and cost, as those
 * one period earlier; each queue tells for how many periods that holds. Ranks that drift apart (GPipe on
 * unequal stages) have no equal states and are simulated to the end. */
#include "sim/engine/periods.h"

#include "sim/engine/state.h"

#include <string.h>

enum {
    KEPT = 24,     /* states kept for comparison: a period may be several micro-batches (interleaved
                    * schedules) */
    LEAST = 6,     /* fewest micro-batches for which it pays */
    ATTEMPTS = 12, /* attempts to skip periods: tasks that do not repeat are compared in vain */
    STATS = 4 + HP_SIM_WAITS
};

/* A state. Queues are numbered over all ranks. */
typedef struct snapshot {
    int64_t *word; /* everything the future depends on; places relative to heads, times relative to now */
    int32_t n_word, capacity;
    int64_t now_ns, left;
    int32_t *head, *done; /* per queue: number of tasks that have started, and that have ended in order */
    int64_t *stats;       /* STATS per rank */
} snapshot;

struct sim_periods {
    int32_t *base;                /* per rank: number of its first queue */
    int n_queue, micro, attempts; /* micro: micro-batch of the first rank */
    int64_t passed;
    bool due;
    int n, next; /* number of states kept; index of the next one */
    snapshot kept[KEPT];
    int32_t *step; /* per queue: number of tasks that ended between the two states */
};

sim_periods *sim_periods_new(sim *s) {
    const hp_sim_options *o = s->options;
    if (!o->fold || s->serves || s->slices || o->steps || o->want_spans || hp_jitters(&o->jitter) ||
        s->program->micro < LEAST)
        return NULL;
    sim_periods *p = HP_NEW(s->arena, sim_periods, 1);
    p->micro = -1;
    p->base = HP_NEW(s->arena, int32_t, s->n_rank + 1);
    for (int r = 0; r < s->n_rank; r++) p->base[r + 1] = p->base[r] + sim_role(s, r)->role->n_queue;
    p->n_queue = p->base[s->n_rank];
    p->step = HP_NEW(s->arena, int32_t, p->n_queue);
    for (int i = 0; i < KEPT; i++) {
        p->kept[i].head = HP_NEW(s->arena, int32_t, p->n_queue);
        p->kept[i].done = HP_NEW(s->arena, int32_t, p->n_queue);
        p->kept[i].stats = HP_NEW(s->arena, int64_t, STATS * s->n_rank);
    }
    return p;
}

void sim_periods_note(sim *s, int rank, int task) {
    const int32_t micro = sim_role(s, rank)->role->task[task].micro;
    if (rank > 0 || micro < 0 || micro == s->periods->micro) return;
    s->periods->micro = micro;
    s->periods->due = true;
}

/* --- writing a state down --- */

static void put(sim *s, snapshot *x, int64_t word) {
    HP_ROOM(s->arena, x->word, x->n_word, x->capacity);
    x->word[x->n_word++] = word;
}

/* Number of a queue's tasks that have ended; messages and collectives end in order. */
static int ended(const sim *s, int rank, int q) {
    const rank_state *r = &s->rank[rank];
    const hp_wired_role *w = sim_role(s, rank);
    switch ((hp_queue_kind)w->role->queue[q].kind) {
    case HP_QUEUE_SEND:
        return r->channel[q].next;
    case HP_QUEUE_RECV:
        return w->queue[q].partner < 0 ? 0 : s->rank[r->peer[q]].channel[w->queue[q].partner].next;
    case HP_QUEUE_COLL:
        return s->comm[r->peer[q]].next;
    default:
        return r->ready.head[q] - (r->running >= 0 && w->role->task[r->running].queue == q);
    }
}

static void put_task(sim *s, snapshot *x, int rank, int task) {
    const hp_wired_role *w = sim_role(s, rank);
    const int q = task < 0 ? -1 : w->role->task[task].queue;
    put(s, x, q);
    if (q >= 0) put(s, x, w->place[task] - ended(s, rank, q));
}

/* A queue whose tasks have all started delays nobody, however many there are (receives that wait for nothing
 * are posted at once). */
static bool is_through(const sim *s, int rank, int q, int head) {
    return head == sim_role(s, rank)->queue[q].n;
}

static void write_rank(sim *s, snapshot *x, int rank) {
    const rank_state *r = &s->rank[rank];
    const int first = s->periods->base[rank], n_queue = sim_role(s, rank)->role->n_queue;
    for (int q = 0; q < n_queue; q++) {
        x->head[first + q] = r->ready.head[q];
        x->done[first + q] = ended(s, rank, q);
        put(s, x, is_through(s, rank, q, x->head[first + q]) ? -1 : x->head[first + q] - x->done[first + q]);
    }
    put_task(s, x, rank, r->running);
    put(s, x, r->running < 0 ? 0 : s->now_ns - r->since_ns);
    put(s, x, r->parts.n - r->parts.first);
    for (int i = r->parts.first; i < r->parts.n; i++) {
        put_task(s, x, rank, r->parts.part[i].task);
        put(s, x, s->now_ns - r->parts.part[i].since_ns);
    }
    put(s, x, r->arrived.n - r->arrived.first);
    for (int i = r->arrived.first; i < r->arrived.n; i++) {
        const int task = r->arrived.id[i], q = sim_role(s, rank)->role->task[task].queue;
        const int place = sim_role(s, rank)->place[task];
        put_task(s, x, rank, task);
        if (place < x->done[first + q]) x->done[first + q] = place; /* ended, but not noticed */
    }
    put(s, x, r->starting.n - r->starting.first);
    for (int i = r->starting.first; i < r->starting.n; i++) put(s, x, r->starting.id[i]);
}

static void write_fluid(sim *s, snapshot *x) {
    hp_activity_state *a;
    const int n = hp_fluid_state(s->fluid, s->now_ns, &a);
    for (int i = 0; i < n; i++) {
        int64_t word[5] = {a[i].owner, a[i].ago_ns, a[i].then_ns};
        memcpy(&word[3], &a[i].left_ns, sizeof word[3]);
        memcpy(&word[4], &a[i].rate, sizeof word[4]);
        for (int k = 0; k < 5; k++) put(s, x, word[k]);
    }
}

static void write_stats(sim *s, snapshot *x, int rank) {
    if (!s->on_cores) sim_account_idle(s, rank);
    const rank_state *r = &s->rank[rank];
    int64_t *to = &x->stats[STATS * rank];
    to[0] = r->spent.compute_ns;
    to[1] = r->spent.recompute_ns;
    to[2] = r->spent.packing_ns;
    to[3] = r->spent.coding_ns;
    memcpy(&to[4], r->spent.wait_ns, sizeof r->spent.wait_ns);
}

static void write_state(sim *s, snapshot *x) {
    x->n_word = 0;
    x->now_ns = s->now_ns;
    x->left = s->left;
    for (int r = 0; r < s->n_rank; r++) {
        write_rank(s, x, r);
        write_stats(s, x, r);
    }
    for (int c = 0; c < s->classes->n_comm; c++) {
        put(s, x, s->comm[c].active);
        put(s, x, s->comm[c].active ? s->comm[c].parts_left : 0);
        put(s, x, s->comm[c].active ? s->comm[c].rounds_left : 0);
    }
    write_fluid(s, x);
}

/* --- do the tasks to come repeat? --- */

typedef struct repetition {
    const sim *s;
    const snapshot *before; /* the earlier state */
    const snapshot *now;
    int rank;
} repetition;

static int step_of(const repetition *x, int q) {
    return x->s->periods->step[x->s->periods->base[x->rank] + q];
}

static bool was_done(const repetition *x, int q, int place) {
    return place < x->before->done[x->s->periods->base[x->rank] + q];
}

/* Is b waited for as a is, one period later? Tasks that had ended by then delay neither. */
static bool same_wait(const repetition *x, const hp_wired_role *w, int a, int b) {
    const int qa = w->role->task[a].queue, qb = w->role->task[b].queue;
    if (was_done(x, qa, w->place[a]) && was_done(x, qb, w->place[b])) return true;
    return qa == qb && w->place[b] == w->place[a] + step_of(x, qa);
}

static bool equal(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_cost(const sim *s, int rank, int a, int b) {
    const hp_sim_costs *c = s->costs;
    const int world = s->rank[rank].world;
    return equal(c->seconds(c->self, s->program, s->graph, world, a),
                 c->seconds(c->self, s->program, s->graph, world, b)) &&
           (!c->share || equal(c->share(c->self, s->program, s->graph, world, a),
                               c->share(c->self, s->program, s->graph, world, b)));
}

static bool repeats(const repetition *x, const hp_wired_role *w, int a, int b) {
    const hp_role *r = w->role;
    const hp_task *p = &r->task[a], *q = &r->task[b];
    const int n = r->dep_first[a + 1] - r->dep_first[a];
    if (p->op != q->op || p->flags != q->flags || n != r->dep_first[b + 1] - r->dep_first[b]) return false;
    if (p->queue != 0 && x->s->wait[x->s->rank[x->rank].role][a] != x->s->wait[x->s->rank[x->rank].role][b])
        return false;
    for (int d = 0; d < n; d++)
        if (!same_wait(x, w, r->dep[r->dep_first[a] + d], r->dep[r->dep_first[b] + d])) return false;
    return same_cost(x->s, x->rank, a, b);
}

/* Number of further periods for which a moving queue repeats, from its first unfinished task up to and
 * including the next task after them. */
static int64_t moving_queue(const repetition *x, int q) {
    const hp_wired_role *w = sim_role(x->s, x->rank);
    const hp_wired_queue *queue = &w->queue[q];
    const int at = x->s->periods->base[x->rank] + q, step = step_of(x, q), from = x->before->done[at];
    const bool through = is_through(x->s, x->rank, q, x->before->head[at]);
    int place = from;
    while (place + step < queue->n && repeats(x, w, queue->task[place], queue->task[place + step])) place++;
    return (place - 1 - (through ? from : x->before->head[at])) / step;
}

/* The same for a standing queue: until something that its next task waits for is about to start. */
static int64_t standing_queue(const repetition *x, int q) {
    const hp_wired_role *w = sim_role(x->s, x->rank);
    const hp_role *r = w->role;
    const int base = x->s->periods->base[x->rank];
    const int task = hp_wired_task(w, q, x->now->head[base + q]);
    int64_t most = INT64_MAX;
    if (task < 0) return most;
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++) {
        const int on = r->dep[d], oq = r->task[on].queue, step = step_of(x, oq);
        if (step == 0 || w->place[on] < x->now->done[base + oq]) continue;
        const int64_t periods = (w->place[on] - x->now->head[base + oq]) / step;
        if (periods < most) most = periods;
    }
    return most;
}

static int64_t periods_left(sim *s, const snapshot *before, const snapshot *now) {
    repetition x = {.s = s, .before = before, .now = now};
    int64_t most = INT64_MAX;
    for (x.rank = 0; x.rank < s->n_rank && most > 0; x.rank++) {
        for (int q = 0; q < sim_role(s, x.rank)->role->n_queue && most > 0; q++) {
            const int64_t n = step_of(&x, q) > 0 ? moving_queue(&x, q) : standing_queue(&x, q);
            if (n < most) most = n;
        }
    }
    return most == INT64_MAX || most < 0 ? 0 : most;
}

/* --- passing over periods --- */

static int moved(const hp_wired_role *w, int task, const int32_t *by) {
    const int q = w->role->task[task].queue;
    return w->queue[q].task[w->place[task] + by[q]];
}

static void move_rank(sim *s, int rank, const int32_t *by, int64_t ns, const snapshot *a, const snapshot *b,
                      int64_t k) {
    rank_state *r = &s->rank[rank];
    const hp_wired_role *w = sim_role(s, rank);
    if (r->running >= 0) r->running = moved(w, r->running, by);
    for (int i = r->parts.first; i < r->parts.n; i++) {
        r->parts.part[i].task = moved(w, r->parts.part[i].task, by);
        r->parts.part[i].since_ns += ns;
    }
    for (int i = r->arrived.first; i < r->arrived.n; i++) r->arrived.id[i] = moved(w, r->arrived.id[i], by);
    for (int q = 0; q < w->role->n_queue; q++) {
        if (!is_through(s, rank, q, r->ready.head[q])) r->ready.head[q] += by[q];
        if (w->role->queue[q].kind == HP_QUEUE_SEND) r->channel[q].next += by[q];
    }
    r->since_ns += ns;
    r->spent.idle_since_ns += ns;
    const int64_t *x = &a->stats[STATS * rank], *y = &b->stats[STATS * rank];
    r->spent.compute_ns += k * (y[0] - x[0]);
    r->spent.recompute_ns += k * (y[1] - x[1]);
    r->spent.packing_ns += k * (y[2] - x[2]);
    r->spent.coding_ns += k * (y[3] - x[3]);
    for (int i = 0; i < HP_SIM_WAITS; i++) r->spent.wait_ns[i] += k * (y[4 + i] - x[4 + i]);
}

/* Recomputes from the queue heads how many ends of a message, or members of a collective, have posted. */
static void post_again(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    const hp_wired_role *w = sim_role(s, rank);
    for (int q = 1; q < w->role->n_queue; q++) {
        const hp_queue_kind kind = (hp_queue_kind)w->role->queue[q].kind;
        if (kind == HP_QUEUE_COLL) {
            communicator *c = &s->comm[r->peer[q]];
            for (int i = c->next; i < r->ready.head[q]; i++) c->posted[i] += r->calls[q];
        } else {
            const bool sends = kind == HP_QUEUE_SEND;
            const int partner = w->queue[q].partner;
            if (partner < 0) continue;
            channel *c = sends ? &r->channel[q] : &s->rank[r->peer[q]].channel[partner];
            const int n = sends ? w->queue[q].n : sim_role(s, r->peer[q])->queue[partner].n;
            for (int i = c->next; i < r->ready.head[q] && i < n; i++) c->posted[i]++;
        }
    }
}

static void forget_posts(sim *s) {
    for (int r = 0; r < s->n_rank; r++) {
        const hp_wired_role *w = sim_role(s, r);
        for (int q = 1; q < w->role->n_queue; q++)
            if (w->role->queue[q].kind == HP_QUEUE_SEND)
                memset(s->rank[r].channel[q].posted, 0, sizeof(uint8_t) * (size_t)w->queue[q].n);
    }
    for (int c = 0; c < s->classes->n_comm; c++)
        if (s->comm[c].group) memset(s->comm[c].posted, 0, sizeof(int32_t) * (size_t)s->comm[c].group->calls);
}

/* Recomputes unmet dependencies from what has ended. */
static void wait_again(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    const hp_wired_role *w = sim_role(s, rank);
    hp_ready at = r->ready;
    for (int t = 0; t < w->role->n_task; t++) at.wait[t] = 0;
    for (int q = 0; q < w->role->n_queue; q++) {
        for (int k = ended(s, rank, q); k < w->queue[q].n; k++) {
            const int task = w->queue[q].task[k];
            for (int i = w->succ_first[task]; i < w->succ_first[task + 1]; i++) at.wait[w->succ[i]]++;
        }
    }
    for (int k = r->arrived.first; k < r->arrived.n; k++) { /* ended, but not noticed */
        const int task = r->arrived.id[k];
        for (int i = w->succ_first[task]; i < w->succ_first[task + 1]; i++) at.wait[w->succ[i]]++;
    }
}

static void pass_over(sim *s, const snapshot *a, const snapshot *b, int64_t k) {
    sim_periods *p = s->periods;
    const int64_t ns = k * (b->now_ns - a->now_ns);
    for (int q = 0; q < p->n_queue; q++) p->step[q] *= (int32_t)k;
    for (int c = 0; c < s->classes->n_comm; c++) {
        const communicator *of = &s->comm[c];
        if (of->n_caller > 0) s->comm[c].next += p->step[p->base[of->caller[0].rank] + of->caller[0].queue];
    }
    for (int r = 0; r < s->n_rank; r++) move_rank(s, r, &p->step[p->base[r]], ns, a, b, k);
    forget_posts(s);
    for (int r = 0; r < s->n_rank; r++) {
        post_again(s, r);
        wait_again(s, r);
    }
    s->left -= k * (a->left - b->left);
    p->passed += k * (a->left - b->left);
    s->now_ns += ns;
    hp_events_delay(&s->events, ns);
    hp_fluid_delay(s->fluid, ns);
}

/* --- looking for the same state --- */

static bool same_state(const snapshot *a, const snapshot *b) {
    return a->n_word == b->n_word && a->left > b->left &&
           memcmp(a->word, b->word, sizeof *a->word * (size_t)a->n_word) == 0;
}

static bool try_period(sim *s, const snapshot *a, const snapshot *b) {
    sim_periods *p = s->periods;
    for (int q = 0; q < p->n_queue; q++) p->step[q] = b->done[q] - a->done[q];
    const int64_t k = periods_left(s, a, b);
    p->attempts++;
    if (k < 1) return false;
    pass_over(s, a, b, k);
    return true;
}

void sim_periods_look(sim *s) {
    sim_periods *p = s->periods;
    if (!p->due || p->attempts >= ATTEMPTS) return;
    p->due = false;
    snapshot *now = &p->kept[p->next];
    write_state(s, now);
    for (int i = 1; i <= p->n; i++) { /* the latest first */
        const snapshot *before = &p->kept[(p->next + KEPT - i) % KEPT];
        if (!same_state(before, now)) continue;
        if (try_period(s, before, now))
            p->n = p->next = 0;
        else
            break;
        return;
    }
    p->next = (p->next + 1) % KEPT;
    if (p->n < KEPT - 1) p->n++;
}

int64_t sim_periods_passed(const sim_periods *p) {
    return p ? p->passed : 0;
}
