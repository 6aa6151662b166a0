/* interp.c - the program on a virtual clock: what each rank does at a task boundary, and the loop over time.
 */
#include "sim/interp.h"

#include "plan/base/rng.h"
#include "sim/bounds.h"
#include "sim/state.h"
#include "plan/program/print.h"

#include <math.h>
#include <string.h>

void sim_push(sim *s, id_list *l, int32_t id) {
    if (l->first == l->n) l->first = l->n = 0;
    HP_ROOM(s->arena, l->id, l->n, l->capacity);
    l->id[l->n++] = id;
}

/* What comes within one instant is worked on in list order, whatever came first. */
void sim_push_part(sim *s, int rank, int task) {
    rank_state *r = &s->rank[rank];
    if (r->first_part == r->n_part) r->first_part = r->n_part = 0;
    HP_ROOM(s->arena, r->part, r->n_part, r->part_capacity);
    int at = r->n_part++;
    for (; at > r->first_part && r->part[at - 1].since_ns == s->now_ns && r->part[at - 1].task > task; at--)
        r->part[at] = r->part[at - 1];
    r->part[at] = (core_part){task, s->now_ns};
    sim_mark(s, rank);
}

void sim_mark(sim *s, int rank) {
    if (s->rank[rank].dirty) return;
    s->rank[rank].dirty = true;
    sim_push(s, &s->dirty, rank);
}

/* Log-normal with mean 1 and the wanted coefficient of variation: a task never takes negative time. */
static double jitter(const sim *s, int rank, int task) {
    const double cv = s->options->jitter_cv;
    if (cv <= 0) return 1;
    const double sigma2 = log1p(cv * cv);
    return exp(sqrt(sigma2) * hp_rng_normal(s->options->seed, (uint64_t)rank, (uint64_t)task) - sigma2 / 2);
}

int64_t sim_duration_ns(sim *s, int rank, int task) {
    double t = s->costs->seconds(s->costs->self, s->program, s->graph, rank, task, s->options->bound);
    if (sim_role(s, rank)->role->task[task].queue == 0) {
        t *= jitter(s, rank, task);
        if (rank == s->options->straggler_rank) t *= s->options->straggler_factor;
    }
    return t > 0 ? llround(t * 1e9) : 0;
}

/* Queues that may start something are looked at in their own order, whatever made them ready first. */
static void push_starting(sim *s, rank_state *r, int queue) {
    sim_push(s, &r->starting, queue);
    int32_t *id = r->starting.id;
    for (int i = r->starting.n - 1; i > r->starting.first && id[i - 1] > id[i]; i--) {
        const int32_t before = id[i - 1];
        id[i - 1] = id[i];
        id[i] = before;
    }
}

void sim_complete(sim *s, int rank, int task) {
    rank_state *r = &s->rank[rank];
    const hp_wired_role *w = sim_role(s, rank);
    if (r->t1_ns) r->t1_ns[task] = s->now_ns;
    for (int i = w->succ_first[task]; i < w->succ_first[task + 1]; i++) {
        const int next = w->succ[i], queue = w->role->task[next].queue;
        if (hp_ready_meet(&r->ready, next) && queue != 0) push_starting(s, r, queue);
    }
    s->left--;
    sim_mark(s, rank);
}

/* Time in which a rank computes nothing while one of its transfers moves is exposed; of several kinds at once
 * the first has the blame: gradients move in the background. */
static void account(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    int kind = 0;
    while (kind < HP_SIM_WAITS && r->moving[kind] == 0) kind++;
    if (kind < HP_SIM_WAITS && r->running < 0) r->wait_ns[kind] += s->now_ns - r->idle_since_ns;
    r->idle_since_ns = s->now_ns;
}

void sim_account(sim *s, int rank, int task, int change) {
    account(s, rank);
    s->rank[rank].moving[hp_sim_wait_of(s->program, sim_role(s, rank)->role, task)] += change;
}

/* Has the other end a part in the same stage? Then the message stays inside the stage. */
static bool same_stage(const hp_program *p, const hp_slot *slot, int peer) {
    const hp_role *r = &p->role[peer];
    for (int i = 0; i < r->n_slot; i++)
        if (r->slot[i].stage == slot->stage && r->slot[i].flip == slot->flip) return true;
    return false;
}

hp_sim_wait hp_sim_wait_of(const hp_program *p, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    if (t->op != HP_TASK_ALLREDUCE)
        return same_stage(p, &r->slot[t->chunk], r->queue[t->queue].peer) ? HP_SIM_HALO : HP_SIM_STAGE;
    if (t->flags & HP_FLAG_METRIC) return HP_SIM_END;
    const int kind = r->buffer[r->operand[t->operand]].kind;
    return kind == HP_BUF_SUMS || kind == HP_BUF_STATE ? HP_SIM_NORM
           : kind == HP_BUF_GRADS                      ? HP_SIM_GRADIENT
                                                       : HP_SIM_HALO;
}

/* What a task takes of the node's cores, or of a device that it shares; returns the number of uses. */
static int compute_uses(const sim *s, int rank, int task, hp_share_use *use) {
    double share = s->costs->share ? s->costs->share(s->costs->self, s->program, s->graph, rank, task) : 0;
    if (!s->on_cores) {
        if (!s->shared_devices || share <= 0) return 0;
        *use = (hp_share_use){res_device(s, rank), share * s->clients_here};
        return 1;
    }
    const double core = s->machine->cores_per_node > 0 ? 1.0 / s->machine->cores_per_node : 0;
    share = share > core ? share : core;
    if (share <= 0) return 0;
    *use = (hp_share_use){res_cpu(s, rank), share * s->replicas_here};
    return 1;
}

static void run_on_core(sim *s, int rank, int task) {
    rank_state *r = &s->rank[rank];
    if (!s->on_cores) account(s, rank);
    r->running = task;
    r->since_ns = s->now_ns;
    const hp_wired_role *w = sim_role(s, rank);
    const hp_queue *queue = &w->role->queue[w->role->task[task].queue];
    int n_use = compute_uses(s, rank, task, r->use);
    if (queue->kind == HP_QUEUE_RECV) { /* a message from another node also holds the NICs */
        const int from = rank - rank % s->program->n_role + queue->peer;
        const channel *c = &s->rank[from].channel[w->queue[w->role->task[task].queue].partner];
        for (int i = 0; i < c->n_use; i++) r->use[n_use++] = c->use[i];
    }
    const int64_t work = sim_duration_ns(s, rank, task);
    hp_fluid_start(s->fluid, s->now_ns, work, n_use, r->use, owner_make(OWNER_CORE, rank, 0));
}

static void count_compute(rank_state *r, const hp_task *t, int64_t ns) {
    r->compute_ns += ns;
    if (t->flags & HP_FLAG_RECOMPUTE) r->recompute_ns += ns;
    if (t->op == HP_TASK_COPY || t->op == HP_TASK_ZERO) r->packing_ns += ns;
}

static void core_done(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    const int task = r->running;
    const hp_role *role = sim_role(s, rank)->role;
    const int64_t ns = s->now_ns - r->since_ns;
    if (!s->on_cores) account(s, rank);
    r->running = -1;
    if (role->task[task].queue == 0) {
        count_compute(r, &role->task[task], ns);
        sim_complete(s, rank, task);
    } else {
        r->wait_ns[hp_sim_wait_of(s->program, role, task)] += ns;
        sim_part_done(s, rank, task);
    }
    sim_mark(s, rank);
}

/* Starts every communication task that is at the head of its queue and may go. */
static void post_ready(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    while (r->starting.first < r->starting.n) {
        const int q = r->starting.id[r->starting.first++];
        for (int task; (task = hp_ready_task(&r->ready, q)) >= 0;) {
            hp_ready_start(&r->ready, q);
            if (r->t0_ns) r->t0_ns[task] = s->now_ns;
            sim_post(s, rank, task);
        }
    }
}

static void start_compute(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    const int task = hp_ready_task(&r->ready, 0);
    if (task < 0) return;
    hp_ready_start(&r->ready, 0);
    if (r->t0_ns) r->t0_ns[task] = s->now_ns;
    run_on_core(s, rank, task);
}

/* Devices: the host posts whenever it can. Cores: everything happens between two tasks. */
static void rank_look(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    sim_push(s, &s->starts, rank);
    if (s->on_cores && r->running >= 0) return;
    while (r->arrived.first < r->arrived.n) sim_complete(s, rank, r->arrived.id[r->arrived.first++]);
    post_ready(s, rank);
}

static void rank_start(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    if (r->running >= 0) return;
    if (r->first_part < r->n_part)
        run_on_core(s, rank, r->part[r->first_part++].task);
    else
        start_compute(s, rank);
}

static void dispatch(sim *s, const hp_event *e) {
    int64_t owner;
    if (!hp_fluid_end(s->fluid, e, &owner)) return;
    const int32_t a = (int32_t)(owner >> 2 & 0xffffffff), b = (int32_t)(owner >> 34);
    switch ((enum owner_kind)(owner & 3)) {
    case OWNER_CORE:
        core_done(s, a);
        break;
    case OWNER_MESSAGE:
        sim_message_done(s, a, b);
        break;
    case OWNER_COLLECTIVE:
        sim_collective_done(s, a);
        break;
    }
}

/* At one instant all ends come first, then all ranks look and post, then they start what they work on next,
 * then rates are settled; time moves on when nothing is left. So the order in which ranks are visited does
 * not matter. */
static void loop(sim *s) {
    for (;;) {
        hp_event e;
        const bool now = s->events.n > 0 && s->events.heap[0].t_ns == s->now_ns;
        if (!now && s->dirty.first < s->dirty.n) {
            const int rank = s->dirty.id[s->dirty.first++];
            s->rank[rank].dirty = false;
            rank_look(s, rank);
            continue;
        }
        if (!now && s->starts.first < s->starts.n) {
            rank_start(s, s->starts.id[s->starts.first++]);
            continue;
        }
        if (!now) hp_fluid_settle(s->fluid, s->now_ns);
        if (s->left > 0 &&
            hp_events_pop(&s->events, &e)) { /* what is left of the queue are ends that moved */
            s->now_ns = e.t_ns;
            dispatch(s, &e);
        } else {
            return;
        }
    }
}

static void resources_init(sim *s) {
    const hp_machine *m = s->machine;
    const hp_placement at = hp_placement_of(s->program, m);
    const int places = hp_placement_places(&at), devices = hp_machine_devices(m);
    s->n_device = places > devices ? devices : places;
    s->n_node = (s->n_device + m->devices_per_node - 1) / m->devices_per_node;
    const int n_resource = 3 * s->n_node + 5 * s->n_device;
    double *capacity = HP_NEW(s->arena, double, n_resource);
    for (int r = 0; r < n_resource; r++) capacity[r] = 1;
    for (int r = s->n_node; r < 3 * s->n_node; r++) capacity[r] = m->nics_per_node > 0 ? m->nics_per_node : 1;
    s->fluid = hp_fluid_new(s->arena, n_resource, capacity, &s->events);
}

static void rank_init(sim *s, int rank) {
    const hp_wired_role *w = sim_role(s, rank);
    const hp_role *role = w->role;
    rank_state *r = &s->rank[rank];
    r->running = -1;
    hp_ready_init(s->arena, w, &r->ready);
    for (int q = 1; q < role->n_queue; q++)
        if (hp_ready_task(&r->ready, q) >= 0) sim_push(s, &r->starting, q);
    if (s->options->want_spans) {
        r->t0_ns = HP_NEW(s->arena, int64_t, role->n_task);
        r->t1_ns = HP_NEW(s->arena, int64_t, role->n_task);
    }
    s->left += role->n_task;
    sim_mark(s, rank);
}

static void ranks_init(sim *s) {
    s->rank = HP_NEW(s->arena, rank_state, s->n_rank);
    for (int i = 0; i < s->n_rank; i++) rank_init(s, i);
}

/* The first task a rank waits at: its compute queue's head, else any queue's. */
static int stuck_task(const sim *s, int rank) {
    const hp_wired_role *w = sim_role(s, rank);
    const rank_state *r = &s->rank[rank];
    for (int q = 1; q < w->role->n_queue; q++) { /* a posted receive that never came says most */
        const hp_queue_kind kind = w->role->queue[q].kind;
        if (kind == HP_QUEUE_RECV && r->ready.head[q] > 0) {
            const int from = rank - rank % s->program->n_role + w->role->queue[q].peer;
            const int partner = w->queue[q].partner;
            const int done = partner < 0 ? 0 : s->rank[from].channel[partner].next;
            if (done < r->ready.head[q]) return w->queue[q].task[done];
        }
    }
    for (int q = 0; q < w->role->n_queue; q++) {
        const int task = hp_ready_head(&r->ready, q);
        if (task >= 0) return task;
    }
    return -1;
}

static hp_status fail_deadlock(const sim *s, hp_error *err) {
    char text[600] = "";
    size_t used = 0;
    int named = 0;
    for (int i = 0; i < s->n_rank && named < 6; i++) {
        const int task = stuck_task(s, i);
        if (task < 0) continue;
        char label[80];
        hp_task_label(s->program, s->graph, sim_role(s, i)->role, task, label, sizeof label);
        used += (size_t)snprintf(text + used, sizeof text - used, "%srank %d at '%s'", named ? ", " : "", i,
                                 label);
        named++;
    }
    return hp_fail(
        err, HP_EPLAN,
        "E-DEADLOCK: the program stops with %lld tasks left: %s; the order of the sends and receives "
        "has to change",
        (long long)s->left, text);
}

static int span_compare(const void *a, const void *b) {
    const hp_span *x = a, *y = b;
    if (x->t0_ns != y->t0_ns) return x->t0_ns < y->t0_ns ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static void spans_out(sim *s, hp_sim_result *out) {
    const int n = s->n_rank;
    out->n_span = HP_NEW(s->arena, int64_t, n);
    out->span = HP_NEW(s->arena, hp_span *, n);
    for (int i = 0; i < n; i++) {
        const int n_task = sim_role(s, i)->role->n_task;
        out->n_span[i] = n_task;
        out->span[i] = HP_NEW(s->arena, hp_span, n_task);
        for (int t = 0; t < n_task; t++)
            out->span[i][t] =
                (hp_span){.task = t, .t0_ns = s->rank[i].t0_ns[t], .t1_ns = s->rank[i].t1_ns[t]};
        qsort(out->span[i], (size_t)n_task, sizeof(hp_span), span_compare);
    }
}

static void result_out(sim *s, hp_sim_result *out) {
    const int n = s->n_rank;
    *out = (hp_sim_result){.makespan_ns = s->now_ns, .n_rank = n};
    const double all = s->now_ns > 0 ? (double)s->now_ns * n : 1;
    double compute = 0;
    for (int i = 0; i < n; i++) {
        const rank_state *r = &s->rank[i];
        compute += (double)r->compute_ns / all;
        out->recompute += (double)r->recompute_ns / all;
        out->packing += (double)r->packing_ns / all;
        for (int k = 0; k < HP_SIM_WAITS; k++) out->wait[k] += (double)r->wait_ns[k] / all;
    }
    for (int k = 0; k < HP_SIM_WAITS; k++) out->exposed_comm += out->wait[k];
    out->bubble = s->now_ns > 0 ? fmax(0, 1 - compute - out->exposed_comm) : 0;
    out->comm_bytes = hp_sim_comm_bytes(s->program);
    if (s->options->want_spans) spans_out(s, out);
}

hp_status hp_sim_run(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_machine *m,
                     const hp_sim_costs *costs, const hp_sim_options *o, hp_sim_result *result,
                     hp_error *err) {
    sim *s = HP_NEW(arena, sim, 1);
    *s = (sim){.arena = arena, .program = p, .graph = g, .machine = m, .costs = costs, .options = o};
    s->wiring = hp_wiring_new(arena, p);
    s->dp = o->fold ? 1 : p->dp;
    s->n_rank = s->dp * p->n_role;
    s->on_cores = m->share_cpu;
    const hp_placement at = hp_placement_of(p, m);
    s->shared_devices = !m->share_cpu && hp_placement_shares_devices(&at);
    s->replicas_here = o->fold ? hp_placement_replicas_per_node(&at) : 1;
    s->clients_here = o->fold ? p->clients : 1;
    hp_events_init(&s->events, arena);
    resources_init(s);
    ranks_init(s);
    sim_transfer_init(s);
    loop(s);
    if (s->left > 0) return fail_deadlock(s, err);
    result_out(s, result);
    return HP_OK;
}
