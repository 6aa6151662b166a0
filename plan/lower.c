/* lower.c - strategy to program: cut the network into stages, walk each role's schedule, place the memory. */
#include "plan/lower.h"
#include "plan/program_check.h"

#include <string.h>

/* Cost of a unit when the caller has no measurements: multiply-adds, and the bytes they move, as a processor
 * with 10 multiply-adds per byte sees them (the ridge of a 2020s device lies between 5 and 50). */
static void default_unit_costs(const hp_graph *g, double *cost) {
    static const double macs_per_byte = 10.0;
    for (int u = 0; u < g->n_unit; u++) {
        cost[u] = 0;
        for (int l = g->unit_first[u]; l < g->unit_first[u + 1]; l++)
            cost[u] += (double)hp_layer_macs(g, l) +
                       macs_per_byte * 4.0 * (double)hp_tensor_elems(g, g->layer[l].out);
    }
}

void hp_strategy_fill_cut(const hp_graph *g, const double *unit_cost, hp_strategy *s) {
    if (s->n_cut) return;
    double *cost = unit_cost ? NULL : malloc(sizeof(double) * (size_t)g->n_unit);
    if (!unit_cost) {
        HP_ASSERT(cost);
        default_unit_costs(g, cost);
    }
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

static void build_vstages(hp_lower_ctx *c) {
    c->vstage = HP_NEW(c->arena, hp_vstage, c->n_vstage);
    int unit = 0;
    for (int v = 0; v < c->n_vstage; v++) {
        hp_vstage *s = &c->vstage[v];
        s->first = c->g->unit_first[unit];
        unit += c->s->cut[v];
        s->end = c->g->unit_first[unit];
        s->out = crossing(c, s->end, &s->n_out);
        if (v) {
            s->in = c->vstage[v - 1].out;
            s->n_in = c->vstage[v - 1].n_out;
        }
    }
}

static hp_frame *new_frames(hp_lower_ctx *c) {
    const int n = c->s->chunks * c->s->micro;
    hp_frame *f = HP_NEW(c->arena, hp_frame, n);
    for (int i = 0; i < n; i++) {
        f[i].act = HP_NEW(c->arena, int32_t, c->g->n_tensor);
        f[i].grad = HP_NEW(c->arena, int32_t, c->g->n_tensor);
        f[i].save = HP_NEW(c->arena, int32_t, c->g->n_layer);
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

static void lower_steps(hp_lower_ctx *c) {
    const int total = 2 * c->s->micro * c->s->chunks;
    hp_sched_step *step = HP_NEW(c->arena, hp_sched_step, total);
    hp_schedule(c->s, c->r->stage, step);
    c->sent_after = HP_NEW(c->arena, int32_t, total);
    for (int i = 0; i < total; i++) {
        const hp_sched_step *t = &step[i];
        const hp_vstage *v = &c->vstage[t->chunk * c->s->stages + c->r->stage];
        hp_frame *f = &c->frame[t->chunk * c->s->micro + t->micro];
        if (t->backward && !lower_train(c)) continue;
        if (t->backward) {
            lower_backward(c, f, v, t->chunk, t->micro);
        } else {
            lower_forward(c, f, v, t->chunk, t->micro);
        }
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

static void lower_role(hp_lower_ctx *shared, int stage) {
    hp_lower_ctx ctx = *shared, *c = &ctx;
    c->r = &c->p->role[stage];
    c->r->stage = stage;
    c->r->n_slot = c->s->chunks;
    c->r->slot = HP_NEW(c->arena, hp_slot, c->s->chunks);
    for (int k = 0; k < c->s->chunks; k++) c->r->slot[k] = (hp_slot){.stage = k * c->s->stages + stage};
    c->frame = new_frames(c);
    c->touched = HP_NEW(c->arena, bool, c->g->n_layer);
    c->grad_task = HP_NEW(c->arena, int32_t, c->g->n_layer);
    memset(c->grad_task, -1, sizeof(int32_t) * (size_t)c->g->n_layer);
    c->metric_writer = -1;
    lower_queue(c, HP_QUEUE_COMPUTE, -1, 0);
    lower_params(c);
    lower_packs(c);
    lower_steps(c);
    lower_update(c);
    hp_memory_place(c);
    build_csr(c);
}

static void build_groups(hp_lower_ctx *c) {
    const int n = c->p->n_role;
    c->p->n_group = 1 + n;
    c->p->n_member = n;
    c->p->group = HP_NEW(c->arena, hp_group, c->p->n_group);
    c->p->member = HP_NEW(c->arena, int32_t, n);
    for (int r = 0; r < n; r++) c->p->member[r] = r;
    c->p->group[0] = (hp_group){.first = 0, .n = n, .all_replicas = 1};
    for (int r = 0; r < n; r++) c->p->group[1 + r] = (hp_group){.first = r, .n = 1, .all_replicas = 1};
}

static void lower_program(hp_lower_ctx *c) {
    c->p = HP_NEW(c->arena, hp_program, 1);
    *c->p = (hp_program){.mode = (int32_t)c->o->mode,
                         .dtype = (int32_t)c->o->dtype,
                         .dp = c->s->dp,
                         .micro = c->s->micro,
                         .clients = 1,
                         .batch = c->o->batch,
                         .micro_batch = c->o->batch / ((int64_t)c->s->dp * c->s->micro),
                         .n_role = c->s->stages};
    c->p->role = HP_NEW(c->arena, hp_role, c->s->stages);
    build_groups(c);
    for (int stage = 0; stage < c->s->stages; stage++) lower_role(c, stage);
}

hp_status hp_lower(hp_arena *arena, const hp_graph *g, const hp_strategy *s, const hp_lower_options *o,
                   hp_program **program, hp_error *err) {
    hp_reject why;
    if (!hp_strategy_legal(s, g, o->batch, 0, &why))
        return hp_fail(err, HP_EPLAN, "%s: %s; smallest fix: %s", why.code, why.limit, why.fix);
    hp_strategy whole = *s;
    hp_strategy_fill_cut(g, o->unit_cost, &whole);
    hp_lower_ctx c = {.arena = arena, .g = g, .s = &whole, .o = o, .n_vstage = s->stages * s->chunks};
    c.last_use = HP_NEW(arena, int32_t, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) c.last_use[t] = hp_graph_last_use(g, t);
    build_vstages(&c);
    hp_status status = HP_OK;
    const int steps = 2 * s->micro * s->chunks;
    for (c.keep = 1;; c.keep *= 2) { /* reuse of sent buffers must not close a circle of waits */
        lower_program(&c);
        if (!o->place || c.n_vstage == 1) break;
        status = hp_check_waits(c.p, g, err);
        if (status == HP_OK || c.keep >= steps) break;
    }
    *program = c.p;
    return status;
}
