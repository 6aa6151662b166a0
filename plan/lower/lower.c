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
    if (s->cut.n) return;
    double *cost = unit_cost ? NULL : hp_alloc(sizeof(double) * (size_t)g->n_unit);
    if (!unit_cost) default_unit_costs(g, cost);
    s->cut.n = s->stages * s->chunks;
    hp_cut_balanced(unit_cost ? unit_cost : cost, g->n_unit, s->cut.n, s->cut.units);
    free(cost);
}

/* Tensors alive across a boundary: produced before layer `end`, read from there on. */
static int32_t *crossing(const hp_lower_facts *f, int end, int32_t *n) {
    int32_t *list = HP_NEW(f->arena, int32_t, f->g->n_tensor);
    *n = 0;
    for (int t = 0; t < f->g->n_tensor; t++)
        if (f->g->tensor[t].producer < end && f->last_use[t] >= end && end < f->g->n_layer) list[(*n)++] = t;
    return list;
}

/* Gradients flow through what the loss depends on and what depends on parameters. */
static void mark_tensors(hp_lower_facts *f) {
    f->learns = HP_NEW(f->arena, bool, f->g->n_tensor);
    for (int l = 1; l < f->g->n_layer; l++) {
        const hp_layer *layer = &f->g->layer[l];
        f->learns[layer->out] = layer->n_param > 0;
        for (int k = 0; k < layer->n_in; k++) f->learns[layer->out] |= f->learns[layer->in[k]];
    }
    f->live = HP_NEW(f->arena, bool, f->g->n_tensor);
    f->live[f->g->layer[f->g->n_layer - 1].out] = true;
    for (int l = f->g->n_layer - 1; l > 0; l--)
        for (int k = 0; k < f->g->layer[l].n_in; k++)
            if (f->live[f->g->layer[l].out]) f->live[f->g->layer[l].in[k]] = true;
}

/* Plans which box of each tensor a part receives in an exchange: around what its layers need and it does not
 * have. */
static void plan_exchanges(const hp_lower_facts *f, hp_vstage *v) {
    const hp_graph *g = f->g;
    hp_geometry *geo = v->geo;
    v->ext = HP_NEW(f->arena, hp_box, (int64_t)geo->n_part * g->n_tensor);
    v->exchanges = HP_NEW(f->arena, bool, g->n_tensor);
    v->first_use = HP_NEW(f->arena, int32_t, g->n_tensor);
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

static void build_vstages(hp_lower_facts *f) {
    f->vstage = HP_NEW(f->arena, hp_vstage, f->n_vstage);
    const int64_t samples = f->o->batch / ((int64_t)hp_strategy_replicas(f->s) * hp_strategy_groups(f->s));
    int unit = 0;
    for (int v = 0; v < f->n_vstage; v++) {
        hp_vstage *s = &f->vstage[v];
        const hp_layout layout = hp_stage_layout(f->s, v % f->s->stages);
        s->first = f->g->unit_first[unit];
        unit += f->s->cut.units[v];
        s->end = f->g->unit_first[unit];
        s->out = crossing(f, s->end, &s->n_out);
        if (v) {
            s->in = f->vstage[v - 1].out;
            s->n_in = f->vstage[v - 1].n_out;
        }
        /* channels are gathered before every convolution, another branch's tensors before every reader, and
         * rows or channels where ranks that share them change over */
        const bool gathers = f->s->cp * f->s->bp * f->s->tp * f->s->seq.ranks > 1;
        const int halo = gathers ? 1 : f->s->sp.halo;
        s->deep = v ? 0 : lower_stream_end(f->g, f->s, f->s->cut.units[0]);
        s->geo =
            hp_geometry_deep(f->arena, f->g, &layout, f->s->bp, s->first, s->end, samples, halo, s->deep);
        plan_exchanges(f, s);
    }
}

static hp_frame *new_frames(hp_role_builder *c) {
    const int n = c->r->n_slot * c->shared->p->micro;
    hp_frame *f = HP_NEW(c->facts->arena, hp_frame, n);
    for (int i = 0; i < n; i++) {
        const hp_slot *slot = &c->r->slot[i / c->shared->p->micro];
        const bool runs =
            c->facts->s->gems == 1 || i % c->shared->p->micro / c->facts->s->micro % 2 == slot->flip;
        if (!runs) continue;
        int32_t **per_tensor[] = {&f[i].act, &f[i].grad, &f[i].ext, &f[i].ext_grad};
        for (int k = 0; k < 4; k++) *per_tensor[k] = HP_NEW(c->facts->arena, int32_t, c->facts->g->n_tensor);
        f[i].in = HP_NEW(c->facts->arena, int32_t, c->facts->vstage[slot->stage].geo->n_need + 1);
        f[i].save = HP_NEW(c->facts->arena, int32_t, c->facts->g->n_layer);
        f[i].came = HP_NEW(c->facts->arena, hp_arrivals, c->facts->g->n_tensor);
        f[i].back = HP_NEW(c->facts->arena, hp_arrivals, c->facts->g->n_tensor);
    }
    return f;
}

/* Buffers sent in the last `keep` steps stay alive, so that computing rarely waits for a send, and never in a
 * circle. */
static void keep_sent(hp_role_builder *c) {
    const int from = c->sent.step > c->shared->keep ? c->sent.after[c->sent.step - c->shared->keep - 1] : 0;
    for (int i = from; i < c->sent.n; i++) lower_touch(c, c->sent.buffer[i]);
    c->sent.after[c->sent.step++] = c->sent.n;
}

/* A step runs all stages of a position (several with tail=shared): forwards in order, backwards in reverse.
 */
static void lower_step(hp_role_builder *c, const hp_sched_step *t) {
    static void (*const passes[])(hp_role_builder *, const hp_pass *) = {[HP_STEP_FORWARD] = lower_forward,
                                                                         [HP_STEP_BACKWARD] = lower_backward,
                                                                         [HP_STEP_WEIGHTS] = lower_weights};
    const hp_role *r = c->r;
    for (int k = 0; k < r->n_slot; k++) {
        const int slot = t->kind == HP_STEP_FORWARD ? k : r->n_slot - 1 - k;
        const hp_slot *s = &r->slot[slot];
        if (s->flip != t->flip || s->stage / c->facts->s->stages != t->chunk) continue;
        const hp_pass a = {.v = &c->facts->vstage[s->stage],
                           .f = &c->frame[slot * c->shared->p->micro + t->micro],
                           .slot = slot,
                           .stage = s->stage,
                           .part = s->part,
                           .flip = s->flip,
                           .micro = t->micro};
        passes[t->kind](c, &a);
    }
}

static void lower_steps(hp_role_builder *c) {
    const int most = hp_schedule_most(c->facts->s);
    hp_sched_step *step = HP_NEW(c->facts->arena, hp_sched_step, most);
    const int total = hp_schedule(c->facts->s, c->role, step);
    c->sent.after = HP_NEW(c->facts->arena, int32_t, total);
    for (int i = 0; i < total; i++) c->defers |= step[i].kind == HP_STEP_WEIGHTS;
    for (int i = 0; i < total; i++) {
        if (step[i].kind != HP_STEP_FORWARD && !lower_train(c->facts)) continue;
        lower_step(c, &step[i]);
        keep_sent(c);
    }
}

/* Sorted dependency pairs to CSR. */
static void build_csr(hp_role_builder *c) {
    hp_role *r = c->r;
    r->dep_first = HP_NEW(c->facts->arena, int32_t, r->n_task + 1);
    r->dep = HP_NEW(c->facts->arena, int32_t, c->emit.n_dep);
    r->n_dep = c->emit.n_dep;
    for (int i = 0; i < c->emit.n_dep; i++) r->dep_first[c->emit.dep[i].task + 1]++;
    for (int i = 0; i < r->n_task; i++) r->dep_first[i + 1] += r->dep_first[i];
    int32_t *at = HP_NEW(c->facts->arena, int32_t, r->n_task + 1);
    memcpy(at, r->dep_first, sizeof(int32_t) * (size_t)r->n_task);
    for (int i = 0; i < c->emit.n_dep; i++) r->dep[at[c->emit.dep[i].task]++] = c->emit.dep[i].on;
}

static void lower_role(hp_program_builder *b, int role) {
    hp_role_builder builder = {.facts = b->facts, .shared = b, .role = role, .r = &b->p->role[role]};
    hp_role_builder *c = &builder;
    c->frame = new_frames(c);
    c->params.touched = HP_NEW(c->facts->arena, bool, c->facts->g->n_layer);
    c->params.grad_task = HP_NEW(c->facts->arena, int32_t, c->facts->g->n_layer);
    memset(c->params.grad_task, -1, sizeof(int32_t) * (size_t)c->facts->g->n_layer);
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
}

/* Members of the largest group, where each may be a root. */
static int most_roots(const hp_program_builder *b) {
    int most = 1;
    for (int g = 0; g < b->p->n_group && b->facts->s->sync.how == HP_SYNC_PS; g++)
        if (hp_group_size(b->p, g) > most) most = hp_group_size(b->p, g);
    return most;
}

static void lower_seats(hp_program_builder *b) {
    const int32_t *seat =
        b->facts->o->machine ? hp_seats_of(b->facts->arena, b->facts->s, b->facts->o->machine) : NULL;
    if (!seat) return;
    b->p->n_seat = hp_strategy_devices(b->facts->s);
    b->p->seat = HP_NEW(b->facts->arena, int32_t, b->p->n_seat);
    memcpy(b->p->seat, seat, sizeof *seat * (size_t)b->p->n_seat);
}

/* Sets each replica's samples of a micro-batch. */
static void lower_shares(hp_program_builder *b) {
    const hp_proportions *by = &b->facts->s->by[HP_AXIS_N];
    b->p->n_share = by->n;
    b->p->share = HP_NEW(b->facts->arena, int64_t, by->n);
    for (int i = 0; i < by->n; i++) b->p->share[i] = b->p->micro_batch / hp_proportions_sum(by) * by->of[i];
}

static hp_program *new_program(const hp_lower_facts *f) {
    const int replicas = hp_strategy_replicas(f->s), micro = hp_strategy_groups(f->s);
    hp_program *p = HP_NEW(f->arena, hp_program, 1);
    *p = (hp_program){.mode = (int32_t)f->o->mode,
                      .dtype = (int32_t)f->o->dtype,
                      .dp = replicas,
                      .micro = micro,
                      .clients = f->s->clients,
                      .bn = f->s->bn,
                      .zero = f->s->zero.stage,
                      .local = replicas > 1 ? f->s->sync.local : 0,
                      .device = (int32_t)hp_device_kind_of(f->o->device),
                      .batch = f->o->batch,
                      .micro_batch = f->o->batch / ((int64_t)replicas * micro),
                      .n_role = hp_strategy_roles(f->s)};
    p->role = HP_NEW(f->arena, hp_role, p->n_role);
    return p;
}

static hp_program *lower_program(const hp_lower_facts *f, int keep) {
    hp_program_builder builder = {.facts = f, .p = new_program(f), .keep = keep}, *b = &builder;
    lower_shares(b);
    lower_seats(b);
    lower_slots(b);
    lower_groups(b);
    const int64_t groups = b->p->n_group;
    b->roots = most_roots(b);
    b->fill = HP_NEW(f->arena, int32_t, groups);
    b->twin = HP_NEW(f->arena, int32_t, groups * b->roots * HP_BACKENDS);
    memset(b->fill, -1, sizeof *b->fill * (size_t)groups);
    memset(b->twin, -1, sizeof *b->twin * (size_t)groups * (size_t)b->roots * HP_BACKENDS);
    for (int role = 0; role < b->p->n_role; role++) lower_role(b, role);
    return b->p;
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
    hp_lower_facts facts = {.arena = arena, .g = g, .s = &whole, .o = o, .n_vstage = s->stages * s->chunks};
    facts.last_use = HP_NEW(arena, int32_t, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) facts.last_use[t] = hp_graph_last_use(g, t);
    mark_tensors(&facts);
    build_vstages(&facts);
    hp_status status = HP_OK;
    const int steps = hp_schedule_most(&whole);
    for (int keep = 1;; keep *= 2) { /* reuse of sent buffers must not close a circle of waits */
        *program = lower_program(&facts, keep);
        if (!o->place || (*program)->n_role == 1) break;
        status = check_waits(*program, g, err);
        if (status == HP_OK || keep >= steps) break;
    }
    return status == HP_OK ? hp_lanes(arena, *program, g, err) : status;
}
