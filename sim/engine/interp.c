/* interp.c - the program on a virtual clock: the steps of a rank, and the loop over time.
 *
 * The steps have the same names as in exec/interp/loop.c and exec/interp/exec_messages.c. A rank makes
 * progress (finishes transfers that ended, starts those that are ready), starts the next compute task, and
 * completes tasks, which releases their dependents. There, an idle rank waits; here, time moves on to the
 * next event. */
#include "sim/engine/periods.h"
#include "sim/engine/state.h"

#include <math.h>

static void compute_here(sim *s, int rank, int task) {
    rank_state *r = &s->rank[rank];
    if (!s->on_cores) sim_account_idle(s, rank);
    r->running = task;
    r->since_ns = s->now_ns;
    const hp_wired_role *w = sim_role(s, rank);
    const hp_queue *queue = &w->role->queue[w->role->task[task].queue];
    int n_use = sim_compute_uses(s, rank, task, r->use);
    if (queue->kind == HP_QUEUE_RECV) { /* a message from another node also holds the NICs */
        const int q = w->role->task[task].queue;
        const channel *c = &s->rank[r->peer[q]].channel[w->queue[q].partner];
        for (int i = 0; i < c->n_use; i++) r->use[n_use++] = c->use[i];
    }
    int64_t work = sim_duration_ns(s, rank, task);
    if (queue->kind == HP_QUEUE_COLL) work = sim_part_ns(s, rank, task, work);
    hp_fluid_start(s->fluid, s->now_ns, 0, work, n_use, r->use, owner_make(OWNER_CORE, rank, 0));
}

static void core_done(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    const int task = r->running;
    const hp_role *role = sim_role(s, rank)->role;
    const int64_t ns = s->now_ns - r->since_ns;
    if (!s->on_cores) sim_account_idle(s, rank);
    r->running = -1;
    if (role->task[task].queue == 0) {
        sim_account_compute(r, &role->task[task], ns);
        sim_complete(s, rank, task);
    } else {
        r->spent.wait_ns[s->wait[r->role][task]] += ns;
        sim_part_done(s, rank, task);
    }
    sim_wake(s, rank);
}

/* Starts every transfer at the head of its queue that may start. */
static void start_transfers(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    while (r->starting.first < r->starting.n) {
        const int q = r->starting.id[r->starting.first++];
        for (int task; (task = hp_ready_task(&r->ready, q)) >= 0;) {
            hp_ready_start(&r->ready, q);
            if (r->t0_ns) r->t0_ns[task] = s->now_ns;
            sim_start_transfer(s, rank, task);
        }
    }
}

/* The rank notices transfers that ended elsewhere. */
static void finish_transfers(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    while (r->arrived.first < r->arrived.n) sim_complete(s, rank, r->arrived.id[r->arrived.first++]);
}

static void start_compute(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    const int task = hp_ready_task(&r->ready, 0);
    if (task < 0) return;
    hp_ready_start(&r->ready, 0);
    if (r->t0_ns) r->t0_ns[task] = s->now_ns;
    if (s->periods) sim_periods_note(s, rank, task);
    compute_here(s, rank, task);
}

/* Devices: the host starts transfers at any time. Cores: everything happens between two tasks. */
static void progress(sim *s, int rank) {
    sim_push(s, &s->starts, rank);
    if (s->on_cores && s->rank[rank].running >= 0) return;
    if (sim_slices_wait(s, rank)) return;
    finish_transfers(s, rank);
    start_transfers(s, rank);
}

static void start_next(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    if (r->running >= 0 || sim_slices_wait(s, rank)) return;
    if (r->parts.first < r->parts.n)
        compute_here(s, rank, r->parts.part[r->parts.first++].task);
    else
        start_compute(s, rank);
    sim_slices_use(s, rank, r->running >= 0);
}

static void dispatch(sim *s, const hp_event *e) {
    int64_t owner;
    if (!hp_fluid_end(s->fluid, e, &owner)) return;
    const int32_t a = (int32_t)(owner >> 2 & 0xffffffff), b = (int32_t)(owner >> 34);
    switch ((enum owner_kind)(owner & 3)) {
    case OWNER_CORE:
        if (b)
            sim_slices_look(s, a, b);
        else
            core_done(s, a);
        break;
    case OWNER_MESSAGE:
        sim_message_done(s, a, b);
        break;
    case OWNER_COLLECTIVE:
        sim_collective_done(s, a);
        break;
    case OWNER_STEP:
        sim_step_done(s, a, b);
        break;
    }
}

/* At one instant, all ends come first; then all ranks make progress, start their next work, and rates are
 * settled. Time moves on when nothing is left. The order in which ranks are visited thus does not matter. */
static void loop(sim *s) {
    for (;;) {
        hp_event e;
        const bool now = hp_events_next_ns(&s->events) == s->now_ns;
        if (!now && s->awake.first < s->awake.n) {
            const int rank = s->awake.id[s->awake.first++];
            s->rank[rank].awake = false;
            progress(s, rank);
            continue;
        }
        if (!now && s->starts.first < s->starts.n) {
            start_next(s, s->starts.id[s->starts.first++]);
            continue;
        }
        if (!now) {
            hp_fluid_settle(s->fluid, s->now_ns);
            if (s->periods) sim_periods_look(s);
        }
        if (s->left > 0 && hp_events_pop(&s->events, &e)) { /* the rest of the queue are moved ends */
            s->now_ns = e.t_ns;
            dispatch(s, &e);
        } else {
            return;
        }
    }
}

static void rank_init(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    r->world = s->classes->first[rank];
    r->role = r->world % s->program->n_role;
    const hp_wired_role *w = sim_role(s, rank);
    const hp_role *role = w->role;
    r->running = -1;
    hp_ready_init(s->arena, w, &r->ready);
    for (int q = 1; q < role->n_queue; q++)
        if (hp_ready_task(&r->ready, q) >= 0) sim_push(s, &r->starting, q);
    sim_delay_last(s, rank);
    if (s->options->want_spans) {
        r->t0_ns = HP_NEW(s->arena, int64_t, role->n_task);
        r->t1_ns = HP_NEW(s->arena, int64_t, role->n_task);
    }
    s->left += role->n_task;
    sim_wake(s, rank);
}

static void ranks_init(sim *s) {
    s->rank = HP_NEW(s->arena, rank_state, s->n_rank);
    for (int i = 0; i < s->n_rank; i++) rank_init(s, i);
}

/* Does the program use servers, so that ranks of a role differ? Then each rank is simulated, and traffic with
 * servers step by step: several serve at once, and each is a separate bottleneck. */
static bool has_servers(const hp_program *p) {
    for (int r = 0; r < p->n_role; r++)
        for (int t = 0; t < p->role[r].n_task; t++)
            if (p->role[r].task[t].op == HP_TASK_UPDATE && p->role[r].task[t].update.call) return true;
    return false;
}

/* Refuses steps beyond the virtual clock, which ends after 292 years. A step takes no longer than all ranks'
 * tasks one after another. Where only the number of ranks makes that sum long, the busiest rank decides. */
static hp_status check_length(const hp_program *p, const hp_graph *g, const hp_sim_costs *costs,
                              const hp_sim_options *o, hp_error *err) {
    static const double CENTURY_S = 3.2e9, WEEK_S = 604800;
    double longest = 0, all = 0;
    for (int r = 0; r < p->n_role; r++) {
        double sum = 0;
        for (int t = 0; t < p->role[r].n_task; t++) sum += costs->seconds(costs->self, p, g, r, t);
        if (o->straggler_rank >= 0) sum *= fmax(1, o->straggler_factor);
        longest = fmax(longest, sum);
        all += sum * p->dp;
    }
    if (all <= CENTURY_S || longest <= WEEK_S) return HP_OK;
    return hp_fail(err, HP_EDATA,
                   "the tasks of a step take %.3g s on one rank, %.3g s on all together, more than can be "
                   "simulated: is a rate of the machine (hplan machine show), or the cost table, that low?",
                   longest, all);
}

hp_status hp_sim_run(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_machine *m,
                     const hp_sim_costs *costs, const hp_sim_options *o, hp_sim_result *result,
                     hp_error *err) {
    HP_TRY(check_length(p, g, costs, o, err));
    sim *s = HP_NEW(arena, sim, 1);
    *s = (sim){.arena = arena, .program = p, .graph = g, .machine = m, .costs = costs, .options = o};
    s->wiring = hp_wiring_new(arena, p);
    s->serves = has_servers(p);
    s->classes = hp_classes_of(arena, s->wiring, m, o->fold && !o->steps && !s->serves, o->straggler_rank);
    s->n_rank = s->classes->n;
    s->on_cores = m->share_cpu;
    const hp_placement at = hp_placement_of(p, m);
    s->shared_devices = !m->share_cpu && hp_placement_shares_devices(&at);
    hp_events_init(&s->events, arena);
    s->slices = sim_slices_new(s);
    sim_open_resources(s);
    ranks_init(s);
    sim_channels_init(s);
    sim_communicators_init(s);
    sim_list_waits(s);
    s->periods = sim_periods_new(s);
    loop(s);
    if (s->left > 0) return sim_stalled(s, err);
    sim_write_result(s, result);
    return HP_OK;
}
