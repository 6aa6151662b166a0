/* update.c - parameters in flat arrays, gradient buckets, the optimiser, the metrics that end a step.
 *
 * Parameters lie in the order in which their gradients become final (last stage first, layers backwards), so
 * that a bucket is a contiguous range and its all-reduce overlaps the rest of the backward pass (Li et al.,
 * VLDB 2020). A role that takes part in a stage twice (GEMS mirrors it onto itself) keeps one copy and adds
 * both passes' gradients into it. */
#include "plan/memory/device.h"
#include "plan/lower/inside.h"
#include "plan/graph/precision.h"
#include "plan/base/round.h"

enum { PARAM_ALIGN = 16 /* elements: a cache line of float32 */ };

/* The role's first slot of a virtual stage, -1: it takes no part. */
static int slot_of(const hp_role *r, int vstage) {
    for (int i = 0; i < r->n_slot; i++)
        if (r->slot[i].stage == vstage) return i;
    return -1;
}

/* --- where parameters lie --- */

/* Of a layer's running statistics, one rank per orientation counts: the first that computes some of the
 * layer, or one that runs both. */
static bool state_home(const hp_lower_ctx *c, int vstage, int layer, int slice) {
    int first[2] = {-1, -1}, both = -1;
    for (int role = 0; role < c->p->n_role; role++) {
        const int slot = slot_of(&c->p->role[role], vstage);
        if (slot < 0 || c->p->role[role].slot[slot].part % lower_slices(c) != slice) continue;
        const bool runs[2] = {lower_runs(c, role, vstage, layer, 0), lower_runs(c, role, vstage, layer, 1)};
        for (int flip = 0; flip < 2; flip++)
            if (runs[flip] && first[flip] < 0) first[flip] = role;
        if (runs[0] && runs[1] && both < 0) both = role;
    }
    return both >= 0 ? c->role == both : c->role == first[0] || c->role == first[1];
}

/* Rows of a layer's parameters that this part holds: its channels of the output. */
static void rows_of(const hp_lower_ctx *c, int vstage, int part, int layer, const hp_param *p, int64_t *first,
                    int64_t *count) {
    const hp_geometry *geo = c->vstage[vstage].geo;
    *first = 0;
    *count = p->count;
    if (geo->branch_of[c->g->layer[layer].out] != part % geo->branches) *count = 0;
    if (geo->layout.channels == 1 || !*count) return;
    const hp_box *own = hp_geometry_own(geo, c->g, part, c->g->layer[layer].out);
    if (c->g->layer[layer].op == HP_CONVT) { /* whole on one slice */
        if (!hp_box_len(own, HP_AXIS_C)) *count = 0;
        return;
    }
    const int64_t row = p->count / p->dim[0];
    *first = own->lo[HP_AXIS_C] * row;
    *count = hp_box_len(own, HP_AXIS_C) * row;
}

typedef struct places {
    int64_t trained, state;
} places;

static void place_layer(hp_lower_ctx *c, int vstage, int part, int layer, places *at) {
    const hp_layer *l = &c->g->layer[layer];
    const int slice = lower_slice(c, part), group = c->vstage[vstage].weight_group[slice];
    const bool home = l->op == HP_BN && state_home(c, vstage, layer, slice);
    const bool saves = group < 0 || c->p->member[c->p->group[group].first] == c->role;
    for (int i = 0; i < l->n_param; i++) {
        const hp_param *param = &c->g->param[l->param[i]];
        const bool trained = hp_param_trained(param);
        int64_t *to = trained ? &at->trained : &at->state;
        hp_param_place p = {.group = group, .offset = *to};
        rows_of(c, vstage, part, layer, param, &p.first, &p.count);
        if (p.count)
            p.here = HP_HERE | ((trained ? saves : home) ? HP_HOME : 0) |
                     (lower_runs(c, c->role, vstage, layer, 0) ? HP_START : 0);
        c->r->place[l->param[i]] = p;
        *to += hp_round_up(p.count, PARAM_ALIGN);
    }
}

void lower_params(hp_lower_ctx *c) {
    places at = {0, 0};
    c->r->place = HP_NEW(c->arena, hp_param_place, c->g->n_param);
    for (int i = 0; i < c->g->n_param; i++) c->r->place[i].group = -1;
    for (int v = c->n_vstage - 1; v >= 0; v--) {
        const int slot = slot_of(c->r, v);
        if (slot < 0) continue;
        const int part = c->r->slot[slot].part;
        for (int layer = c->vstage[v].end - 1; layer >= c->vstage[v].first; layer--)
            place_layer(c, v, part, layer, &at);
    }
    if (c->g->deployed) { /* constants lie in packs */
        for (int i = 0; i < c->g->n_param; i++) c->r->place[i] = (hp_param_place){.group = -1};
        at = (places){0, 0};
    }
    c->r->trained_elems = at.trained;
    const hp_dtype t = c->o->dtype;
    const int64_t updated = lower_train(c) ? at.trained : 0;
    lower_buffer(c, HP_BUF_WEIGHTS, t, at.trained, -1, -1);
    lower_buffer(c, HP_BUF_GRADS, t, updated, -1, -1);
    lower_buffer(c, HP_BUF_MOMENTUM, t, updated, -1, -1);
    lower_buffer(c, HP_BUF_STATE, t, at.state, -1, -1);
    lower_buffer(c, HP_BUF_METRIC, HP_F64, HP_METRICS, -1, -1);
    lower_buffer(c, HP_BUF_SCRATCH, HP_U8, 0, -1, -1);
}

/* --- weights in the device's layout --- */

static void pack_layer(hp_lower_ctx *c, int slot, int layer) {
    const hp_slot *s = &c->r->slot[slot];
    const hp_layer *l = &c->g->layer[layer];
    const hp_geometry *geo = c->vstage[s->stage].geo;
    const hp_box *out = hp_geometry_have(geo, c->g, s->part, l->out);
    const hp_device_memory *memory = hp_device_memory_of(c->p->device);
    if (layer == 0 || hp_box_empty(out) || c->r->pack_forward[layer] >= 0) return;
    const hp_shape shape = hp_shape_between(c->g, layer, hp_geometry_need(geo, s->part, layer, 0), out);
    if (c->g->deployed) {
        const int64_t bytes = memory->infer_pack(c->g, layer, &shape, c->o->dtype);
        if (bytes) c->r->pack_forward[layer] = lower_buffer(c, HP_BUF_PACK, HP_U8, bytes, layer, -1);
        return;
    }
    const int64_t forward = memory->pack(c->g, layer, false, &shape, c->o->dtype);
    const int64_t backward = lower_train(c) && lower_wants_gradient(c, l->in[0])
                                 ? memory->pack(c->g, layer, true, &shape, c->o->dtype)
                                 : 0;
    const bool shared = memory->shares && forward;
    if (!forward && !backward) return;
    if (forward) c->r->pack_forward[layer] = lower_buffer(c, HP_BUF_PACK, HP_U8, forward, layer, -1);
    if (backward)
        c->r->pack_backward[layer] =
            shared ? c->r->pack_forward[layer] : lower_buffer(c, HP_BUF_PACK, HP_U8, backward, layer, -1);
    const int32_t operand[2] = {c->r->pack_forward[layer], shared ? -1 : c->r->pack_backward[layer]};
    const hp_pass a = {.slot = slot, .micro = -1};
    lower_task(c, lower_layer_task(&a, HP_TASK_PACK, layer, 0), operand);
    const int64_t scratch = memory->scratch(c->g, layer, HP_TASK_PACK, &shape, c->o->dtype);
    if (scratch > c->scratch_bytes) c->scratch_bytes = scratch;
}

void lower_packs(hp_lower_ctx *c) {
    c->r->pack_forward = HP_NEW(c->arena, int32_t, c->g->n_layer);
    c->r->pack_backward = HP_NEW(c->arena, int32_t, c->g->n_layer);
    for (int layer = 0; layer < c->g->n_layer; layer++)
        c->r->pack_forward[layer] = c->r->pack_backward[layer] = -1;
    for (int slot = 0; slot < c->r->n_slot; slot++) {
        const hp_vstage *v = &c->vstage[c->r->slot[slot].stage];
        for (int layer = v->first; layer < v->end; layer++) pack_layer(c, slot, layer);
    }
}

/* --- gradients --- */

/* A layer whose gradients no task wrote (no pixel of it is here) takes part in the sum with zeros. */
static void zero_gradients(hp_lower_ctx *c, int vstage, int layer) {
    const hp_layer *l = &c->g->layer[layer];
    const hp_pass a = {.slot = slot_of(c->r, vstage), .micro = -1};
    for (int i = 0; i < l->n_param; i++) {
        const hp_param_place *p = &c->r->place[l->param[i]];
        if (!p->here || !hp_param_trained(&c->g->param[l->param[i]])) continue;
        c->writer[HP_BUF_GRADS] = -1; /* the ranges are disjoint */
        c->grad_task[layer] = lower_zero(c, &a, layer, HP_BUF_GRADS, p->offset, p->count);
    }
}

static int sum_bucket(hp_lower_ctx *c, int bucket, int group, int64_t from, int64_t to) {
    const int32_t grads = HP_BUF_GRADS, operand[2] = {grads, -1};
    hp_task t = {
        .op = HP_TASK_ALLREDUCE, .layer = -1, .micro = -1, .tag = bucket, .dtype = (uint8_t)c->o->dtype};
    t.offset = from;
    t.count = to - from;
    lower_collective(c, group, &t);
    c->writer[grads] = -1; /* buckets are disjoint: each waits for its own layers only */
    const int id = lower_task(c, t, operand);
    c->writer[grads] = -1;
    return id;
}

typedef struct bucket {
    int64_t from, to;
    int group, server, reduced;
    int replicas; /* whose parameters are averaged with each other; -1: none */
} bucket;

typedef struct buckets {
    bucket *b;
    int n;
    int64_t from, at;
    int n_ready, *ready;
} buckets;

/* Buckets so far that the group shares: the same number on all its members, whatever else they hold. */
static int count_of_group(const buckets *k, int group) {
    int n = 0;
    for (int i = 0; i < k->n; i++) n += k->b[i].group == group;
    return n;
}

/* Emits the sum of the bucket's gradients, final once the tasks `ready` are done. Returns it, or -1 when this rank
 * alone holds them: then the bucket waits for those tasks in the compute queue. */
static int reduce_bucket(hp_lower_ctx *c, const buckets *k, const bucket *b) {
    if (b->group < 0) return -1;
    const int id = b->server >= 0 ? lower_to_server(c, b->group, b->server, k->n, b->from, b->to - b->from)
                                  : sum_bucket(c, k->n, b->group, b->from, b->to);
    for (int i = 0; i < k->n_ready; i++) lower_dep(c, id, k->ready[i]);
    return id;
}

static void end_bucket(hp_lower_ctx *c, buckets *k, int group, int replicas) {
    if (k->at == k->from) return;
    bucket b = {.from = k->from, .to = k->at, .group = group, .replicas = replicas};
    b.server = lower_server(c, group, count_of_group(k, group));
    b.reduced = reduce_bucket(c, k, &b);
    k->b[k->n++] = b;
    k->n_ready = 0;
    k->from = k->at;
}

/* Cuts a stage's parameters into buckets of at least fuse_bytes, in memory order; counted as float32 in every
 * dtype, so that the reference device sums the same buckets. */
static void cut_buckets(hp_lower_ctx *c, int vstage, buckets *k) {
    const hp_vstage *v = &c->vstage[vstage];
    const int part = c->r->slot[slot_of(c->r, vstage)].part;
    const int slice = lower_slice(c, part), shared = v->weight_group[slice];
    const int group = lower_is_local(c) ? v->replica_group[slice] : shared,
              replicas = lower_is_local(c) ? shared : -1;
    for (int layer = v->end - 1; layer >= v->first; layer--) {
        const hp_layer *l = &c->g->layer[layer];
        for (int i = 0; i < l->n_param; i++)
            if (hp_param_trained(&c->g->param[l->param[i]]))
                k->at += hp_round_up(c->r->place[l->param[i]].count, PARAM_ALIGN);
        if (c->grad_task[layer] >= 0) k->ready[k->n_ready++] = c->grad_task[layer];
        if ((k->at - k->from) * 4 >= c->s->fuse_bytes) end_bucket(c, k, group, replicas);
    }
    end_bucket(c, k, group, replicas);
}

/* What the compute queue does with a bucket once it is reduced. */
static int bucket_task(hp_lower_ctx *c, hp_task_op op, int number, const bucket *b) {
    const hp_task t = {.op = (uint8_t)op,
                       .layer = -1,
                       .micro = -1,
                       .tag = number,
                       .call = b->server < 0 ? 0 : lower_call_of_root(c, b->server),
                       .offset = b->from,
                       .count = b->to - b->from};
    const int id = lower_task(c, t, NULL);
    lower_dep(c, id, b->reduced);
    return id;
}

/* Counts what has overflowed into the metric, so that all ranks agree to skip a step. */
static void check_bucket(hp_lower_ctx *c, int number, const bucket *b) {
    const int id = bucket_task(c, HP_TASK_FINITE, number, b);
    lower_dep(c, id, c->metric_writer);
    c->metric_writer = id;
}

static void update_bucket(hp_lower_ctx *c, int number, const bucket *b, int after) {
    const int id = bucket_task(c, HP_TASK_SGD, number, b);
    lower_dep(c, id, after);
    if (b->server >= 0) lower_from_server(c, b->group, b->server, number, b->from, b->to - b->from, id);
    if (b->replicas >= 0) lower_average(c, b->replicas, number, b->from, b->to - b->from, id);
}

static int last_compute_task(const hp_role *r) {
    for (int i = r->n_task - 1; i >= 0; i--)
        if (hp_task_infos[r->task[i].op].queue == HP_QUEUE_COMPUTE) return i;
    return -1;
}

/* The step's metrics over all ranks; waits for the rank's last compute task, so a step ends together. */
static int reduce_metric(hp_lower_ctx *c, int last_compute) {
    const int32_t operand[2] = {HP_BUF_METRIC, -1};
    hp_task t = {.op = HP_TASK_ALLREDUCE,
                 .flags = HP_FLAG_METRIC,
                 .layer = -1,
                 .micro = -1,
                 .tag = -1,
                 .dtype = HP_F64};
    t.count = HP_METRICS;
    lower_collective(c, 0, &t);
    const int id = lower_task(c, t, operand);
    lower_dep(c, id, c->metric_writer);
    lower_dep(c, id, last_compute);
    return id;
}

void lower_update(hp_lower_ctx *c) {
    if (!lower_train(c)) {
        reduce_metric(c, last_compute_task(c->r));
        return;
    }
    buckets k = {.b = HP_NEW(c->arena, bucket, c->g->n_layer + 1),
                 .ready = HP_NEW(c->arena, int, c->g->n_layer)};
    for (int v = c->n_vstage - 1; v >= 0; v--)
        for (int layer = c->vstage[v].first; slot_of(c->r, v) >= 0 && layer < c->vstage[v].end; layer++)
            if (c->grad_task[layer] < 0) zero_gradients(c, v, layer);
    for (int v = c->n_vstage - 1; v >= 0; v--)
        if (slot_of(c->r, v) >= 0) cut_buckets(c, v, &k);
    c->r->n_bucket = k.n;
    for (int i = 0; i < k.n && hp_graph_scales_loss(c->g); i++) check_bucket(c, i, &k.b[i]);
    const int known = hp_graph_metric_first(c->g) ? reduce_metric(c, last_compute_task(c->r)) : -1;
    for (int i = 0; i < k.n; i++) update_bucket(c, i, &k.b[i], known);
    if (known < 0) reduce_metric(c, last_compute_task(c->r));
}
