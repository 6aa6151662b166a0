/* lower.c - strategy to program: cut the network into stages, walk each role's schedule, place the memory. */
#include "plan/program/lanes.h"
#include "base/alloc.h"
#include "plan/lower/lower_inside.h"
#include "plan/lower/lower_placement.h"
#include "plan/check/check.h"
#include "plan/program/work.h"
#include "networks/graph/summands.h"

#include <string.h>

/* Cost of a unit when the caller has no measurements: multiply-adds, and the bytes they move. */
static void default_unit_costs(const hp_graph *g, double *cost) {
    for (int u = 0; u < g->n_unit; u++) {
        cost[u] = 0;
        for (int l = g->unit_first[u]; l < g->unit_first[u + 1]; l++)
            cost[u] += (double)hp_layer_macs(g, l) +
                       HP_MACS_PER_BYTE * 4.0 * (double)hp_tensor_elems(g, g->layer[l].out);
    }
}

void hp_strategy_fill_cut(const hp_graph *g, const double *unit_cost, hp_strategy *s) {
    if (s->n_cut) return;
    double *cost = unit_cost ? NULL : hp_alloc(sizeof(double) * (size_t)g->n_unit);
    if (!unit_cost) default_unit_costs(g, cost);
    s->n_cut = s->stages * s->chunks;
    hp_cut_balanced(unit_cost ? unit_cost : cost, g->n_unit, s->n_cut, s->cut);
    free(cost);
}

/* Tensors alive across a boundary: produced before layer `end`, read from there on. */
static int32_t *crossing(hp_lower_ctx *c, int end, int32_t *n) {
    int32_t *list = HP_NEW(c->arena, int32_t, c->g->n_tensor);
    *n = 0;
    for (int t = 0; t < c->g->n_tensor; t++)
        if (c->g->tensor[t].producer < end && c->last_use[t] >= end && end < c->g->n_layer) list[(*n)++] = t;
    return list;
}

/* Gradients flow through what the loss depends on and what depends on parameters. */
static void mark_tensors(hp_lower_ctx *c) {
    c->learns = HP_NEW(c->arena, bool, c->g->n_tensor);
    for (int l = 1; l < c->g->n_layer; l++) {
        const hp_layer *layer = &c->g->layer[l];
        c->learns[layer->out] = layer->n_param > 0;
        for (int k = 0; k < layer->n_in; k++) c->learns[layer->out] |= c->learns[layer->in[k]];
    }
    c->live = HP_NEW(c->arena, bool, c->g->n_tensor);
    c->live[c->g->layer[c->g->n_layer - 1].out] = true;
    for (int l = c->g->n_layer - 1; l > 0; l--)
        for (int k = 0; k < c->g->layer[l].n_in; k++)
            if (c->live[c->g->layer[l].out]) c->live[c->g->layer[l].in[k]] = true;
}

/* Which box of each tensor a part gets in an exchange: around what its layers need and it does not have. */
static void plan_exchanges(hp_lower_ctx *c, hp_vstage *v) {
    const hp_graph *g = c->g;
    hp_geometry *geo = v->geo;
    v->ext = HP_NEW(c->arena, hp_box, (int64_t)geo->n_part * g->n_tensor);
    v->exchanges = HP_NEW(c->arena, bool, g->n_tensor);
    v->first_use = HP_NEW(c->arena, int32_t, g->n_tensor);
    memset(v->first_use, -1, sizeof(int32_t) * (size_t)g->n_tensor);
    const int end = v->end == g->n_layer ? v->end + 1 : v->end; /* the loss reads too */
    for (int l = v->first; l < end; l++)
        for (int k = 0; k < (l == g->n_layer ? 1 : g->layer[l].n_in); k++) {
            const int t = l == g->n_layer ? g->layer[l - 1].out : g->layer[l].in[k];
            if (v->first_use[t] < 0) v->first_use[t] = l;
            for (int p = 0; p < geo->n_part; p++) {
                const hp_box *need = hp_geometry_need(geo, p, l, k);
                hp_box *ext = &v->ext[(int64_t)p * g->n_tensor + t];
                if (hp_box_within(need, hp_geometry_have(geo, g, p, t))) continue;
                *ext = hp_box_around(ext, need);
                v->exchanges[t] = true;
            }
        }
}

static void build_vstages(hp_lower_ctx *c) {
    c->vstage = HP_NEW(c->arena, hp_vstage, c->n_vstage);
    const int64_t samples = c->o->batch / ((int64_t)hp_strategy_replicas(c->s) * hp_strategy_groups(c->s));
    int unit = 0;
    for (int v = 0; v < c->n_vstage; v++) {
        hp_vstage *s = &c->vstage[v];
        const hp_layout layout = hp_stage_layout(c->s, v % c->s->stages);
        s->first = c->g->unit_first[unit];
        unit += c->s->cut[v];
        s->end = c->g->unit_first[unit];
        s->out = crossing(c, s->end, &s->n_out);
        if (v) {
            s->in = c->vstage[v - 1].out;
            s->n_in = c->vstage[v - 1].n_out;
        }
        /* channels are gathered before every convolution, another branch's tensors before every reader, and rows or
         * channels where ranks that share them change over */
        const bool gathers = c->s->cp * c->s->bp * c->s->tp * c->s->seq > 1;
        const int halo = gathers ? 1 : c->s->halo;
        s->deep = v ? 0 : lower_stream_end(c->g, c->s, c->s->cut[0]);
        s->geo =
            hp_geometry_deep(c->arena, c->g, &layout, c->s->bp, s->first, s->end, samples, halo, s->deep);
        plan_exchanges(c, s);
    }
}

static hp_frame *new_frames(hp_lower_ctx *c) {
    const int n = c->r->n_slot * c->p->micro;
    hp_frame *f = HP_NEW(c->arena, hp_frame, n);
    for (int i = 0; i < n; i++) {
        const hp_slot *slot = &c->r->slot[i / c->p->micro];
        const bool runs = c->s->gems == 1 || i % c->p->micro / c->s->micro % 2 == slot->flip;
        if (!runs) continue;
        int32_t **per_tensor[] = {&f[i].act, &f[i].grad, &f[i].ext, &f[i].ext_grad};
        for (int k = 0; k < 4; k++) *per_tensor[k] = HP_NEW(c->arena, int32_t, c->g->n_tensor);
        f[i].in = HP_NEW(c->arena, int32_t, c->vstage[slot->stage].geo->n_need + 1);
        f[i].save = HP_NEW(c->arena, int32_t, c->g->n_layer);
        f[i].came = HP_NEW(c->arena, hp_arrivals, c->g->n_tensor);
        f[i].back = HP_NEW(c->arena, hp_arrivals, c->g->n_tensor);
    }
    return f;
}

/* What was sent in the last `keep` steps stays alive, so that computing rarely waits for a send, and never in
 * a circle. */
static void keep_sent(hp_lower_ctx *c) {
    const int from = c->step > c->keep ? c->sent_after[c->step - c->keep - 1] : 0;
    for (int i = from; i < c->n_sent; i++) lower_touch(c, c->sent[i]);
    c->sent_after[c->step++] = c->n_sent;
}

/* A step runs all stages of a position (several with tail=shared): forwards in order, backwards in reverse.
 */
static void lower_step(hp_lower_ctx *c, const hp_sched_step *t) {
    static void (*const passes[])(hp_lower_ctx *, const hp_pass *) = {[HP_STEP_FORWARD] = lower_forward,
                                                                      [HP_STEP_BACKWARD] = lower_backward,
                                                                      [HP_STEP_WEIGHTS] = lower_weights};
    const hp_role *r = c->r;
    for (int k = 0; k < r->n_slot; k++) {
        const int slot = t->kind == HP_STEP_FORWARD ? k : r->n_slot - 1 - k;
        const hp_slot *s = &r->slot[slot];
        if (s->flip != t->flip || s->stage / c->s->stages != t->chunk) continue;
        const hp_pass a = {.v = &c->vstage[s->stage],
                           .f = &c->frame[slot * c->p->micro + t->micro],
                           .slot = slot,
                           .stage = s->stage,
                           .part = s->part,
                           .flip = s->flip,
                           .micro = t->micro};
        passes[t->kind](c, &a);
    }
}

static void lower_steps(hp_lower_ctx *c) {
    const int most = hp_schedule_most(c->s);
    hp_sched_step *step = HP_NEW(c->arena, hp_sched_step, most);
    const int total = hp_schedule(c->s, c->role, step);
    c->sent_after = HP_NEW(c->arena, int32_t, total);
    for (int i = 0; i < total; i++) c->defers |= step[i].kind == HP_STEP_WEIGHTS;
    for (int i = 0; i < total; i++) {
        if (step[i].kind != HP_STEP_FORWARD && !lower_train(c)) continue;
        lower_step(c, &step[i]);
        keep_sent(c);
    }
}

/* Sorted dependency pairs to CSR. */
static void build_csr(hp_lower_ctx *c) {
    hp_role *r = c->r;
    r->dep_first = HP_NEW(c->arena, int32_t, r->n_task + 1);
    r->dep = HP_NEW(c->arena, int32_t, c->n_dep);
    r->n_dep = c->n_dep;
    for (int i = 0; i < c->n_dep; i++) r->dep_first[c->dep[i].task + 1]++;
    for (int i = 0; i < r->n_task; i++) r->dep_first[i + 1] += r->dep_first[i];
    int32_t *at = HP_NEW(c->arena, int32_t, r->n_task + 1);
    memcpy(at, r->dep_first, sizeof(int32_t) * (size_t)r->n_task);
    for (int i = 0; i < c->n_dep; i++) r->dep[at[c->dep[i].task]++] = c->dep[i].on;
}

static void lower_role(hp_lower_ctx *shared, int role) {
    hp_lower_ctx ctx = *shared, *c = &ctx;
    c->role = role;
    c->r = &c->p->role[role];
    c->frame = new_frames(c);
    c->touched = HP_NEW(c->arena, bool, c->g->n_layer);
    c->grad_task = HP_NEW(c->arena, int32_t, c->g->n_layer);
    memset(c->grad_task, -1, sizeof(int32_t) * (size_t)c->g->n_layer);
    c->metric_writer = -1;
    lower_queue(c, HP_QUEUE_COMPUTE, -1, 0, HP_BACKEND_OWN);
    lower_params(c);
    lower_new_blocks(c);
    lower_packs(c);
    lower_steps(c);
    lower_update(c);
    lower_hoist_codes(c);
    c->r->buffer[HP_BUF_SCRATCH].bytes = (c->scratch_bytes + 63) / 64 * 64;
    hp_memory_place(c);
    build_csr(c);
    shared->group_room = c->group_room; /* of arrays that all roles add to */
    shared->member_room = c->member_room;
    shared->call_room = c->call_room;
}

/* Members of the largest group, where each may be a root. */
static int most_roots(const hp_lower_ctx *c) {
    int most = 1;
    for (int g = 0; g < c->p->n_group && c->s->sync == HP_SYNC_PS; g++)
        if (hp_group_size(c->p, g) > most) most = hp_group_size(c->p, g);
    return most;
}

static void lower_seats(hp_lower_ctx *c) {
    const int32_t *seat = c->o->machine ? hp_seats_of(c->arena, c->s, c->o->machine) : NULL;
    if (!seat) return;
    c->p->n_seat = hp_strategy_devices(c->s);
    c->p->seat = HP_NEW(c->arena, int32_t, c->p->n_seat);
    memcpy(c->p->seat, seat, sizeof *seat * (size_t)c->p->n_seat);
}

/* Of a micro-batch, each replica's samples. */
static void lower_shares(hp_lower_ctx *c) {
    const hp_proportions *by = &c->s->by[HP_AXIS_N];
    c->p->n_share = by->n;
    c->p->share = HP_NEW(c->arena, int64_t, by->n);
    for (int i = 0; i < by->n; i++) c->p->share[i] = c->p->micro_batch / hp_proportions_sum(by) * by->of[i];
}

static void lower_program(hp_lower_ctx *c) {
    const int replicas = hp_strategy_replicas(c->s), micro = hp_strategy_groups(c->s);
    c->p = HP_NEW(c->arena, hp_program, 1);
    *c->p = (hp_program){.mode = (int32_t)c->o->mode,
                         .dtype = (int32_t)c->o->dtype,
                         .dp = replicas,
                         .micro = micro,
                         .clients = c->s->clients,
                         .bn = c->s->bn,
                         .zero = c->s->zero,
                         .local = replicas > 1 ? c->s->local : 0,
                         .device = (int32_t)hp_device_kind_of(c->o->device),
                         .batch = c->o->batch,
                         .micro_batch = c->o->batch / ((int64_t)replicas * micro),
                         .n_role = hp_strategy_roles(c->s)};
    c->p->role = HP_NEW(c->arena, hp_role, c->p->n_role);
    lower_shares(c);
    lower_seats(c);
    lower_slots(c);
    lower_groups(c);
    c->call_room = 0;
    c->fill = HP_NEW(c->arena, int32_t, c->p->n_group);
    c->roots = most_roots(c);
    c->twin = HP_NEW(c->arena, int32_t, (int64_t)c->p->n_group * c->roots * HP_BACKENDS);
    memset(c->fill, -1, sizeof *c->fill * (size_t)c->p->n_group);
    memset(c->twin, -1, sizeof *c->twin * (size_t)c->p->n_group * (size_t)c->roots * HP_BACKENDS);
    for (int role = 0; role < c->p->n_role; role++) lower_role(c, role);
}

static hp_status check_waits(const hp_program *p, const hp_graph *g, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    const hp_status s = hp_check_waits(hp_wiring_new(scratch, p), g, err);
    hp_arena_free(scratch);
    return s;
}

hp_status hp_lower(hp_arena *arena, const hp_graph *g, const hp_strategy *s, const hp_lower_options *o,
                   hp_program **program, hp_error *err) {
    hp_reject why;
    HP_ASSERT(!hp_graph_summands(g) || hp_graph_summands(g) == s->tp);
    const bool trains = o->mode != HP_MODE_TRAIN || hp_graph_trains(g, &why);
    if (!trains || !hp_strategy_legal(s, g, o->batch, 0, &why) ||
        !hp_device_allows(o->device, s, g->deployed, &why) || !hp_device_has_layers(o->device, g, &why))
        return hp_fail(err, HP_EPLAN, "%s: %s", hp_reject_text(why.code), why.limit);
    hp_strategy whole = *s;
    hp_strategy_fill_cut(g, o->unit_cost, &whole);
    hp_lower_ctx c = {.arena = arena, .g = g, .s = &whole, .o = o, .n_vstage = s->stages * s->chunks};
    c.last_use = HP_NEW(arena, int32_t, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) c.last_use[t] = hp_graph_last_use(g, t);
    mark_tensors(&c);
    build_vstages(&c);
    hp_status status = HP_OK;
    const int steps = hp_schedule_most(&whole);
    for (c.keep = 1;; c.keep *= 2) { /* reuse of sent buffers must not close a circle of waits */
        lower_program(&c);
        if (!o->place || c.p->n_role == 1) break;
        status = check_waits(c.p, g, err);
        if (status == HP_OK || c.keep >= steps) break;
    }
    *program = c.p;
    return status == HP_OK ? hp_lanes(arena, c.p, g, err) : status;
}
