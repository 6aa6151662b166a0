/* costs.c - fills in the cost of each task. */
#include "sim/costs/costs.h"

#include "costmodels/framework/framework.h"
#include "costmodels/cost_speed.h"

#include "plan/lower/lower_placement.h"

#include <math.h>
#include <string.h>

static int64_t bytes_of(const hp_task *k) {
    return hp_task_bytes(k);
}

/* Caches the first replica's exchanges; other replicas may be placed differently. */
static hp_exchange exchange_of(const hp_program_costs *c, const hp_program *p, int rank, int queue) {
    const int role = rank % p->n_role;
    if (rank != role) return hp_exchange_of(p, hp_costs_machine(c->cache), rank, queue);
    hp_exchange *e = &c->exchange[role][queue];
    if (!e->ranks) *e = hp_exchange_of(p, hp_costs_machine(c->cache), rank, queue);
    return *e;
}

static hp_cost message_cost(const hp_program_costs *c, const hp_program *p, int rank, const hp_task *k,
                            int64_t bytes) {
    const hp_role *r = &p->role[rank % p->n_role];
    if (c->in_exchange && c->in_exchange[rank % p->n_role][k - r->task]) {
        const hp_exchange e = exchange_of(c, p, rank, k->queue);
        const hp_wire by = hp_wire_of(hp_costs_machine(c->cache), p->device, r->queue[k->queue].backend);
        return hp_exchange_cost(c->cache, by, &e, bytes);
    }
    const int peer = rank - rank % p->n_role + r->queue[k->queue].peer;
    const hp_machine *m = hp_costs_machine(c->cache);
    const bool near = hp_rank_node(p, m, rank) == hp_rank_node(p, m, peer);
    return hp_costs_p2p(c->cache, hp_wire_of(m, p->device, r->queue[k->queue].backend), near, bytes);
}

static int members_per_node(const hp_program_costs *c, const hp_program *p, int group, int replica) {
    const bool own = !p->group[group].all_replicas;
    int32_t *n = &c->per_node[group][own ? replica : 0];
    if (!*n) *n = hp_group_per_node(p, hp_costs_machine(c->cache), group, replica);
    return *n;
}

static hp_cost collective_cost(const hp_program_costs *c, const hp_program *p, int rank, const hp_task *k,
                               int64_t bytes) {
    const hp_queue *queue = &p->role[rank % p->n_role].queue[k->queue];
    const int group = queue->peer;
    const hp_collective_call what = {
        .by = hp_wire_of_collective(hp_costs_machine(c->cache), p->device, queue->backend),
        .algorithm = (hp_algorithm)k->algorithm,
        .what = hp_task_collective(k),
        .ranks = hp_group_size(p, group),
        .per_node = members_per_node(c, p, group, rank / p->n_role)};
    return hp_costs_collective(c->cache, &what, bytes);
}

/* The cost in another replica, which may be placed differently. */
static hp_cost elsewhere(const hp_program_costs *c, const hp_program *p, int rank, const hp_task *t,
                         hp_cost first) {
    if (t->op == HP_TASK_SEND || t->op == HP_TASK_RECV) return message_cost(c, p, rank, t, bytes_of(t));
    return hp_task_is_collective(t) ? collective_cost(c, p, rank, t, bytes_of(t)) : first;
}

static hp_program_costs *costs_of_class(hp_program_costs *c, const hp_program *p, const hp_graph *g,
                                        int class);

/* Compute tasks: the costs of the class of the rank's device. */
static const hp_program_costs *costs_at(hp_program_costs *c, const hp_program *p, const hp_graph *g, int rank,
                                        int task) {
    const hp_machine *m = hp_costs_machine(c->cache);
    const bool computes = p->role[rank % p->n_role].task[task].queue == 0;
    if (m->mix.n_class == 0 || !computes) return c;
    return costs_of_class(c, p, g, hp_machine_class_at(m, hp_rank_device(p, m, rank)));
}

static double slowness(const hp_program_costs *c, const hp_program *p, int rank, int task) {
    const hp_machine *m = hp_costs_machine(c->cache);
    if (m->mix.n_slow == 0 || p->role[rank % p->n_role].task[task].queue != 0) return 1;
    return 1 / hp_machine_speed_at(m, hp_rank_device(p, m, rank));
}

/* Mean over steps with and without averaging; an average overlaps with nothing in the step. */
static double in_a_step(const hp_program *p, const hp_task *t, double seconds) {
    return t->flags & HP_FLAG_AVERAGE && p->local > 1 ? seconds / p->local : seconds;
}

static double task_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    hp_program_costs *c = self;
    const int role = rank % p->n_role;
    if (!hp_task_works(p, &p->role[role], &p->role[role].task[task], rank / p->n_role)) return 0;
    hp_cost cost = costs_at(c, p, g, rank, task)->cost[role][task];
    if (rank != role) cost = elsewhere(c, p, rank, &p->role[role].task[task], cost);
    cost.seconds *= slowness(c, p, rank, task);
    return in_a_step(p, &p->role[role].task[task], cost.seconds);
}

static double transfer_latency(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    const hp_program_costs *c = self;
    const hp_task *t = &p->role[rank % p->n_role].task[task];
    (void)g;
    return in_a_step(
        p, t,
        (hp_task_is_collective(t) ? collective_cost(c, p, rank, t, 0) : message_cost(c, p, rank, t, 0))
            .seconds);
}

/* A message of a collective is a message between two members alone. */
static double message_seconds(void *self, const hp_program *p, const hp_task *t, int from, int to,
                              double bytes) {
    const hp_program_costs *c = self;
    const hp_machine *m = hp_costs_machine(c->cache);
    const bool near = hp_rank_node(p, m, from) == hp_rank_node(p, m, to);
    const hp_queue *queue = &p->role[from % p->n_role].queue[t->queue];
    const hp_collective_call two = {.by = hp_wire_of_collective(m, p->device, queue->backend),
                                    .algorithm = (hp_algorithm)t->algorithm,
                                    .what = hp_task_collective(t),
                                    .ranks = 2,
                                    .per_node = near ? 2 : 1};
    return hp_costs_collective(c->cache, &two, (int64_t)bytes).seconds;
}

static bool collective_of(void *self, const hp_program *p, int rank, int queue, int32_t *per_node,
                          int32_t *ranks) {
    const hp_program_costs *c = self;
    const hp_role *r = &p->role[rank % p->n_role];
    for (int t = 0; c->in_exchange && t < r->n_task; t++) {
        if (r->task[t].queue != queue || !c->in_exchange[rank % p->n_role][t]) continue;
        const hp_exchange e = exchange_of(c, p, rank, queue);
        *per_node = e.per_node;
        *ranks = e.ranks;
        return true;
    }
    return false;
}

static double task_share(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    return costs_at(self, p, g, rank, task)->share[rank % p->n_role][task];
}

/* Fraction of a message's or collective's time for which it keeps a core busy, if it crosses nodes: its time
 * within a node; the network takes the rest. 0: all of it. */
static double busy_share(const hp_program_costs *c, const hp_program *p, int rank, const hp_task *k,
                         double seconds) {
    const hp_queue *queue = &p->role[rank % p->n_role].queue[k->queue];
    const hp_machine *m = hp_costs_machine(c->cache);
    double near = 0;
    if (hp_task_is_collective(k)) {
        const int ranks = hp_group_size(p, queue->peer);
        const hp_collective_call what = {.by = hp_wire_of_collective(m, p->device, queue->backend),
                                         .algorithm = (hp_algorithm)k->algorithm,
                                         .what = hp_task_collective(k),
                                         .ranks = ranks,
                                         .per_node = ranks};
        if (members_per_node(c, p, queue->peer, rank / p->n_role) < ranks)
            near = hp_costs_collective(c->cache, &what, bytes_of(k)).seconds;
    } else if (hp_rank_node(p, m, rank) != hp_rank_node(p, m, rank - rank % p->n_role + queue->peer)) {
        near = hp_costs_p2p(c->cache, hp_wire_of(m, p->device, queue->backend), true, bytes_of(k)).seconds;
    }
    return near > 0 && near < seconds ? near / seconds : 0;
}

/* Added gradients: factor for a framework that sums all tokens (hp_framework.sums_tokens). */
static double tokens_factor(const hp_program_costs *c, const hp_graph *g, const hp_role *r,
                            const hp_task *t) {
    if (!c->in_exchange || t->op != HP_TASK_ACCUM) return 1;
    const hp_buffer *b = &r->buffer[r->operand[t->operand]];
    const double here = (double)hp_box_len(&b->box, HP_AXIS_H) * hp_box_len(&b->box, HP_AXIS_W);
    return b->what < 0 || here <= 0 ? 1 : (double)g->tensor[b->what].h * g->tensor[b->what].w / here;
}

static void fill_role(const hp_program_costs *c, const hp_program *p, const hp_graph *g, int role) {
    const hp_role *r = &p->role[role];
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        switch (hp_task_infos[k->op].queue) {
        case HP_QUEUE_COLL:
            c->cost[role][t] = collective_cost(c, p, role, k, bytes_of(k));
            c->share[role][t] = busy_share(c, p, role, k, c->cost[role][t].seconds);
            break;
        case HP_QUEUE_SEND:
        case HP_QUEUE_RECV:
            c->cost[role][t] = message_cost(c, p, role, k, bytes_of(k));
            c->share[role][t] = busy_share(c, p, role, k, c->cost[role][t].seconds);
            break;
        case HP_QUEUE_COMPUTE: {
            if (c->in_exchange && c->in_exchange[role][t]) break;
            const hp_task_cost e = hp_costs_task(c->cache, p, g, r, t);
            c->cost[role][t] = hp_cost_times(e.cost, tokens_factor(c, g, r, k));
            c->share[role][t] = e.share;
        }
        }
    }
}

/* --- a framework's host --- */

static bool sums_gradients(const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    return t->op == HP_TASK_ALLREDUCE && t->n_operand > 0 && r->operand[t->operand] == HP_BUF_GRADS;
}

/* Number of operations that start the task's kernels; the optimiser has some for every tensor. */
static double ops_of(const hp_program_costs *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                     int task) {
    const hp_task *t = &r->task[task];
    double tensors = 0;
    bool sums = false;
    for (int k = 0; k < r->n_task && !sums && t->op == HP_TASK_UPDATE; k++) sums = sums_gradients(r, k);
    if (c->in_exchange && c->in_exchange[r - p->role][task]) return 0;
    if (t->op != HP_TASK_UPDATE) return hp_costs_task(c->cache, p, g, r, task).kernels;
    for (int i = 0; i < g->n_param; i++)
        tensors += hp_param_trained(&g->param[i]) && r->place[i].here &&
                   r->place[i].offset >= t->update.first &&
                   r->place[i].offset < t->update.first + t->update.elems;
    return (hp_costs_framework(c->cache)->host.update_ops[g->optimizer] +
            (sums ? hp_costs_framework(c->cache)->host.sum_ops : 0)) *
           tensors;
}

/* Sums of gradients wait half a cycle on average until they are noticed (Horovod). */
static void add_cycles(const hp_program_costs *c, const hp_program *p, int role) {
    const hp_role *r = &p->role[role];
    const double wait_s = hp_costs_framework(c->cache)->host.cycle_s / 2;
    for (int t = 0; t < r->n_task; t++) {
        if (!sums_gradients(r, t)) continue;
        c->cost[role][t].seconds += wait_s;
        c->cost[role][t].low += wait_s;
        c->cost[role][t].high += wait_s;
    }
}

static bool waits_for_others(const hp_role *r, int task) {
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++)
        if (r->task[r->dep[d]].queue != 0) return true;
    return false;
}

/* Does the task bring values of another rank's rows, or send them? Their gradients are not sent (MPI4DL). */
static bool is_exchange(const hp_role *r, const hp_task *t) {
    return (t->op == HP_TASK_SEND || t->op == HP_TASK_RECV) &&
           !(r->queue[t->queue].channel & HP_CHANNEL_GRADIENTS);
}

/* Does the task add a halo's gradient to a map? A framework that pasted the halo copies the gradient of the
 * whole map instead. */
static bool undoes_paste(const hp_role *r, const hp_task *t) {
    return t->op == HP_TASK_COPY && (t->flags & HP_FLAG_ADD) &&
           r->buffer[r->operand[t->operand + 1]].kind == HP_BUF_MESSAGE;
}

/* Does the task copy a map into one with room for halos? A framework first fills that with zeros
 * (ZeroPad2d). */
static bool pads(const hp_role *r, const hp_task *t) {
    if (t->op != HP_TASK_COPY || (t->flags & HP_FLAG_ADD)) return false;
    const hp_buffer *to = &r->buffer[r->operand[t->operand]], *from = &r->buffer[r->operand[t->operand + 1]];
    return to->kind == HP_BUF_TENSOR && from->kind == HP_BUF_TENSOR && to->bytes > from->bytes;
}

static hp_cost whole_map(const hp_program_costs *c, const hp_program *p, const hp_role *r, int task,
                         int times) {
    hp_work pass = {.bytes = times * (double)r->buffer[r->operand[r->task[task].operand]].bytes};
    snprintf(pass.key, sizeof pass.key, "pass %s", hp_dtype_names[p->dtype]);
    return hp_costs_work(c->cache, &pass);
}

static void add_pastes(const hp_program_costs *c, const hp_program *p, int role) {
    const hp_role *r = &p->role[role];
    for (int t = 0; t < r->n_task; t++) {
        hp_cost *cost = &c->cost[role][t];
        if (undoes_paste(r, &r->task[t])) {
            const hp_cost copy = whole_map(c, p, r, t, 2);
            if (copy.seconds > cost->seconds) *cost = copy;
        } else if (pads(r, &r->task[t])) {
            const hp_cost fill = whole_map(c, p, r, t, 1);
            cost->seconds += fill.seconds;
            cost->low += fill.low;
            cost->high += fill.high;
        }
    }
}

/* Host time to start a task's kernels. Python modules start them in the forward pass, which recomputation
 * repeats. */
static double starting_s(const hp_program_costs *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                         int task) {
    const hp_framework *f = hp_costs_framework(c->cache);
    const bool by_module = f->host.module_s > 0 && r->task[task].op == HP_TASK_FWD,
               regions = f->host.region_s > 0 && hp_costs_machine(c->cache)->device.is_cpu;
    return (regions     ? f->host.region_s
            : by_module ? f->host.module_s
                        : f->host.dispatch_s) *
           ops_of(c, p, g, r, task);
}

static bool checks_finite(const hp_role *r) {
    for (int t = 0; t < r->n_task; t++)
        if (r->task[t].op == HP_TASK_FINITE) return true;
    return false;
}

/* The host starts operations one after another and runs ahead of the device. The device waits if its kernels
 * are shorter than the start of their operations; a task then takes that much longer. While the device waits
 * for a message, the host catches up. If the host itself waits (MPI4DL), it is not ahead afterwards
 * either. */
static void add_dispatch(const hp_program_costs *c, const hp_program *p, const hp_graph *g, int role) {
    const hp_role *r = &p->role[role];
    const double each_s = hp_costs_framework(c->cache)->host.dispatch_s;
    const bool itself = hp_costs_machine(c->cache)->device.is_cpu; /* the host computes, too */
    /* cuda.synchronize around messages and before an update */
    const bool waits = hp_costs_framework(c->cache)->host.message_ops > 0 && !itself,
               reads = hp_costs_framework(c->cache)->host.reads_finite && checks_finite(r) && !itself;
    double host_s = 0, device_s = 0, idle_s = 0;
    for (int t = 0; t < r->n_task; t++) {
        hp_cost *cost = &c->cost[role][t];
        if (is_exchange(r, &r->task[t])) idle_s += each_s * hp_costs_framework(c->cache)->host.message_ops;
        if (r->task[t].queue != 0) continue;
        const bool joined =
            r->task[t].op == HP_TASK_UPDATE ? waits || reads : waits && waits_for_others(r, t);
        if (joined || waits_for_others(r, t)) host_s = joined ? device_s : fmin(host_s, device_s);
        const double alone_s = cost->seconds;
        if (idle_s > 0) host_s = fmax(host_s, device_s + alone_s) + idle_s; /* after waiting for the device */
        idle_s = 0;
        host_s += starting_s(c, p, g, r, t);
        /* the last kernel starts together with its operation */
        const double late_s = itself ? starting_s(c, p, g, r, t) : fmax(0, host_s - device_s - alone_s);
        cost->seconds += late_s;
        cost->low += late_s;
        cost->high += late_s;
        c->late_s[role] += late_s;
        if (cost->seconds > 0) c->share[role][t] *= alone_s / cost->seconds;
        device_s += cost->seconds;
    }
}

/* Adds the host's work before a step's first kernel: it feeds inputs and calls the session. */
static void add_step(const hp_program_costs *c, const hp_program *p, int role) {
    const double step_s = hp_costs_framework(c->cache)->host.step_s;
    for (int t = 0; t < p->role[role].n_task; t++) {
        hp_cost *cost = &c->cost[role][t];
        if (p->role[role].task[t].queue != 0) continue;
        if (cost->seconds + step_s > 0) c->share[role][t] *= cost->seconds / (cost->seconds + step_s);
        *cost = (hp_cost){cost->seconds + step_s, cost->low + step_s, cost->high + step_s, cost->source};
        c->late_s[role] += step_s;
        return;
    }
}

static void find_exchanges(hp_arena *arena, hp_program_costs *c, const hp_program *p) {
    c->in_exchange = HP_NEW(arena, bool *, p->n_role);
    c->exchange = HP_NEW(arena, hp_exchange *, p->n_role);
    for (int r = 0; r < p->n_role; r++) {
        c->in_exchange[r] = hp_exchanges_of(arena, &p->role[r]);
        c->exchange[r] = HP_NEW(arena, hp_exchange, p->role[r].n_queue);
    }
}

static hp_program_costs *fill(hp_arena *arena, hp_cost_cache *cache, const hp_program *p, const hp_graph *g) {
    hp_program_costs *c = HP_NEW(arena, hp_program_costs, 1);
    c->cache = cache;
    c->cost = HP_NEW(arena, hp_cost *, p->n_role);
    c->share = HP_NEW(arena, double *, p->n_role);
    c->late_s = HP_NEW(arena, double, p->n_role);
    c->per_node = HP_NEW(arena, int32_t *, p->n_group);
    for (int i = 0; i < p->n_group; i++)
        c->per_node[i] = HP_NEW(arena, int32_t, p->group[i].all_replicas ? 1 : p->dp);
    if (hp_costs_framework(cache) && hp_costs_framework(cache)->attention.sums_tokens)
        find_exchanges(arena, c, p);
    for (int r = 0; r < p->n_role; r++) {
        c->cost[r] = HP_NEW(arena, hp_cost, p->role[r].n_task);
        c->share[r] = HP_NEW(arena, double, p->role[r].n_task);
        fill_role(c, p, g, r);
        if (hp_costs_framework(cache) && hp_costs_framework(cache)->memory.pastes) add_pastes(c, p, r);
        if (hp_costs_framework(cache) && hp_costs_framework(cache)->host.dispatch_s > 0)
            add_dispatch(c, p, g, r);
        if (hp_costs_framework(cache) && hp_costs_framework(cache)->host.step_s > 0) add_step(c, p, r);
        if (hp_costs_framework(cache) && hp_costs_framework(cache)->host.cycle_s > 0) add_cycles(c, p, r);
    }
    c->arena = arena;
    return c;
}

static hp_program_costs *costs_of_class(hp_program_costs *c, const hp_program *p, const hp_graph *g,
                                        int class) {
    if (!c->of_class[class]) c->of_class[class] = fill(c->arena, hp_costs_of_class(c->cache, class), p, g);
    return c->of_class[class];
}

hp_sim_costs hp_costs_of_program(hp_arena *arena, hp_cost_cache *cache, const hp_program *p,
                                 const hp_graph *g) {
    return (hp_sim_costs){task_seconds,    task_share,       fill(arena, cache, p, g),
                          message_seconds, transfer_latency, collective_of};
}

double hp_costs_late_s(const hp_sim_costs *costs, int role) {
    const hp_program_costs *c = costs->self;
    return c->late_s[role];
}

double hp_costs_measured_share(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g) {
    double measured = 0, all = 0;
    for (int r = 0; r < p->n_role; r++) {
        for (int t = 0; t < p->role[r].n_task; t++) {
            const hp_cost *cost = &costs_at(costs->self, p, g, r, t)->cost[r][t];
            all += cost->seconds;
            if (cost->source == HP_SOURCE_MEASURED) measured += cost->seconds;
        }
    }
    return all > 0 ? measured / all : 0;
}
