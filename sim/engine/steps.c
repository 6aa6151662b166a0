/* steps.c - collectives step by step, with each message as an event: a check of the closed forms of
 * plan/collectives, and the duration of a collective whose members do not arrive together.
 *
 * A member enters its first step when it posts, and each further step when it has ended the one before. A
 * message moves once both its ends have entered its step; a step ends with its messages. */
#include "sim/engine/state.h"

#include <math.h>

typedef struct stepper {
    int32_t rank, queue;
    int32_t posted, collective; /* calls posted; the current collective, or the next one */
    int32_t task;               /* task of that collective */
    int32_t step, steps, left;  /* current step and number of steps; unfinished messages of the step */
    bool inside;                /* has entered the step */
    hp_block_step now;
    hp_collective_plan plan;
    /* its last message: destination and duration; several in a row are alike */
    int32_t to, n_use;
    int64_t bytes, ns, latency_ns; /* latency: part of ns */
    hp_share_use use[SIM_WAY];
} stepper;

struct sim_steps {
    int32_t size;
    stepper *member;
};

static const hp_algorithm_ops *ops_of(const hp_wired_role *w, int task) {
    return hp_algorithms[w->role->task[task].algorithm];
}

/* Does every call have an algorithm whose steps are known? */
static bool steps_known(const sim *s, const caller *k) {
    const hp_wired_role *w = sim_role(s, k->rank);
    const hp_wired_queue *q = &w->queue[k->queue];
    for (int i = 0; i < q->n; i++)
        if (!ops_of(w, q->task[i])->step) return false;
    return true;
}

bool sim_is_star(const sim *s, const communicator *c) {
    if (!s->serves || c->n_caller < 2 || !c->group->calls) return false;
    const caller *k = &c->caller[0];
    const hp_wired_role *w = sim_role(s, k->rank);
    return w->role->task[hp_wired_task(w, k->queue, 0)].algorithm == HP_ALGORITHM_DIRECT;
}

void sim_steps_init(sim *s, communicator *c) {
    if (!s->costs->message || s->on_cores || c->n_caller < 2) return;
    if (!steps_known(s, &c->caller[0])) return;
    c->steps = HP_NEW(s->arena, sim_steps, 1);
    *c->steps = (sim_steps){c->n_caller, HP_NEW(s->arena, stepper, c->n_caller)};
    for (int k = 0; k < c->n_caller; k++) {
        const caller *at = &c->caller[k];
        HP_ASSERT(at->n == 1); /* nothing is folded */
        c->steps->member[k] = (stepper){.rank = at->rank, .queue = at->queue, .to = -1};
        s->rank[at->rank].calls[at->queue] = k;
    }
}

/* Begins the first step of the next collective. */
static void begin(sim *s, stepper *m, int member) {
    const hp_wired_role *w = sim_role(s, m->rank);
    m->task = w->queue[m->queue].task[m->collective];
    const hp_task *t = &w->role->task[m->task];
    const hp_collective_case what = hp_task_case(s->program, w->role, t);
    const hp_collective_data data = hp_task_data(s->program, t);
    m->plan = hp_collective_whole((hp_algorithm)t->algorithm, &what, member, &data);
    m->steps = m->plan.steps;
    sim_account_transfer(s, m->rank, m->task, 1);
}

static int64_t message_ns(const sim *s, const stepper *m, const stepper *to, double bytes) {
    const hp_sim_costs *c = s->costs;
    const hp_task *t = &sim_role(s, m->rank)->role->task[m->task];
    return llround(
        1e9 * c->message(c->self, s->program, t, s->rank[m->rank].world, s->rank[to->rank].world, bytes));
}

static void price(sim *s, stepper *m, const stepper *to, int64_t bytes) {
    if (m->to != to->rank)
        m->n_use = sim_route(s, m->rank, to->rank, &sim_role(s, m->rank)->role->queue[m->queue], m->use);
    else if (m->bytes == bytes)
        return;
    m->to = to->rank;
    m->bytes = bytes;
    m->ns = message_ns(s, m, to, (double)bytes);
    m->latency_ns = s->costs->latency ? message_ns(s, m, to, 0) : 0;
    if (m->latency_ns > m->ns) m->latency_ns = m->ns;
}

/* Once both ends are in its step, the later one starts it. */
static void start_message(sim *s, int comm, int from, int to) {
    if (from < 0 || to < 0) return;
    stepper *m = &s->comm[comm].steps->member[from];
    const stepper *other = &s->comm[comm].steps->member[to];
    if (!m->inside || !other->inside || other->step != m->step || other->collective != m->collective) return;
    price(s, m, other, hp_collective_elems(&m->plan, 0, &m->now.send) * m->plan.data.elem_bytes);
    hp_fluid_start(s->fluid, s->now_ns, m->latency_ns, m->ns - m->latency_ns, m->n_use, m->use,
                   owner_make(OWNER_STEP, comm, from));
}

/* The member ends its step; after the last one, the collective. */
static void advance(sim *s, stepper *m) {
    m->inside = false;
    if (++m->step < m->steps) return;
    m->step = 0;
    m->collective++;
    sim_account_transfer(s, m->rank, m->task, -1);
    sim_complete(s, m->rank, m->task);
}

/* Enters steps until one has messages. */
static void enter(sim *s, int comm, int member) {
    stepper *m = &s->comm[comm].steps->member[member];
    while (!m->inside && m->collective < m->posted) {
        if (m->step == 0) begin(s, m, member);
        m->now = m->steps ? hp_collective_at(&m->plan, 0, m->step) : (hp_block_step){-1, -1, {0}, {0}, false};
        if (m->now.send_to == member) m->now.send_to = m->now.recv_from = -1; /* it copies */
        m->left = (m->now.send_to >= 0) + (m->now.recv_from >= 0);
        m->inside = true;
        if (m->left == 0) {
            advance(s, m);
            continue;
        }
        start_message(s, comm, member, m->now.send_to);
        start_message(s, comm, m->now.recv_from, member);
    }
}

void sim_steps_post(sim *s, int comm, int member) {
    s->comm[comm].steps->member[member].posted++;
    enter(s, comm, member);
}

static void end_message(sim *s, int comm, int member) {
    stepper *m = &s->comm[comm].steps->member[member];
    if (--m->left > 0) return;
    advance(s, m);
    enter(s, comm, member);
}

void sim_step_done(sim *s, int comm, int from) {
    const int to = s->comm[comm].steps->member[from].now.send_to;
    end_message(s, comm, from);
    end_message(s, comm, to);
}
