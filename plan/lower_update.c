/* lower_update.c - parameters in flat arrays, gradient buckets, the optimiser, the metrics that end a step.
 *
 * Parameters lie in the order in which their gradients become final (last chunk first, layers backwards), so
 * that a bucket is a contiguous range and its all-reduce overlaps the rest of the backward pass (Li et al.,
 * VLDB 2020). */
#include "plan/device_memory.h"
#include "plan/lower.h"

enum { PARAM_ALIGN = 16 /* elements: a cache line of float32 */ };

static int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

static const hp_vstage *chunk_stage(const hp_lower_ctx *c, int chunk) {
    return &c->vstage[chunk * c->s->stages + c->r->stage];
}

static void place_layer(hp_lower_ctx *c, int layer, int64_t *trained, int64_t *state) {
    const hp_layer *l = &c->g->layer[layer];
    for (int i = 0; i < l->n_param; i++) {
        const hp_param *param = &c->g->param[l->param[i]];
        int64_t *at = hp_param_trained(param) ? trained : state;
        c->r->place[l->param[i]] = (hp_param_place){.here = HP_HERE | HP_HOME | HP_START,
                                                         .group = c->s->dp > 1 ? 1 + c->r->stage : -1,
                                                         .offset = *at,
                                                         .count = param->count};
        *at += round_up(param->count, PARAM_ALIGN);
    }
}

static int64_t scratch_bytes(const hp_lower_ctx *c) {
    static const hp_task_op ops[] = {HP_TASK_PACK, HP_TASK_FWD, HP_TASK_BWD, HP_TASK_BWDW};
    int64_t most = 0;
    for (int chunk = 0; chunk < c->s->chunks; chunk++) {
        const hp_vstage *v = chunk_stage(c, chunk);
        for (int layer = v->first; layer < v->end; layer++)
            for (int k = 0; k < (lower_train(c) ? 4 : 2); k++) {
                const hp_shape shape = hp_shape_of(c->g, layer, c->p->micro_batch);
                const int64_t bytes = hp_scratch_bytes(c->g, layer, ops[k], &shape, c->o->dtype);
                if (bytes > most) most = bytes;
            }
    }
    return round_up(most, 64);
}

void lower_params(hp_lower_ctx *c) {
    int64_t trained = 0, state = 0;
    c->r->place = HP_NEW(c->arena, hp_param_place, c->g->n_param);
    for (int chunk = c->s->chunks - 1; chunk >= 0; chunk--) {
        const hp_vstage *v = chunk_stage(c, chunk);
        for (int layer = v->end - 1; layer >= v->first; layer--) place_layer(c, layer, &trained, &state);
    }
    c->r->trained_elems = trained;
    const hp_dtype t = c->o->dtype;
    const int64_t updated = lower_train(c) ? trained : 0;
    lower_buffer(c, HP_BUF_WEIGHTS, t, trained, -1, -1);
    lower_buffer(c, HP_BUF_GRADS, t, updated, -1, -1);
    lower_buffer(c, HP_BUF_MOMENTUM, t, updated, -1, -1);
    lower_buffer(c, HP_BUF_STATE, t, state, -1, -1);
    lower_buffer(c, HP_BUF_METRIC, HP_F64, HP_METRICS, -1, -1);
    lower_buffer(c, HP_BUF_SCRATCH, HP_U8, scratch_bytes(c), -1, -1);
}

void lower_packs(hp_lower_ctx *c) {
    c->r->pack_forward = HP_NEW(c->arena, int32_t, c->g->n_layer);
    c->r->pack_backward = HP_NEW(c->arena, int32_t, c->g->n_layer);
    for (int layer = 0; layer < c->g->n_layer; layer++)
        c->r->pack_forward[layer] = c->r->pack_backward[layer] = -1;
    for (int chunk = 0; chunk < c->s->chunks; chunk++) {
        const hp_vstage *v = chunk_stage(c, chunk);
        for (int layer = v->first; layer < v->end; layer++) {
            const hp_shape shape = hp_shape_of(c->g, layer, c->p->micro_batch);
            const int64_t forward = hp_pack_bytes(c->g, layer, false, &shape, c->o->dtype);
            const bool image = layer > 0 && c->g->tensor[c->g->layer[layer].in[0]].producer == 0;
            const int64_t backward =
                lower_train(c) && !image ? hp_pack_bytes(c->g, layer, true, &shape, c->o->dtype) : 0;
            if (!forward && !backward) continue;
            if (forward) c->r->pack_forward[layer] = lower_buffer(c, HP_BUF_PACK, HP_U8, forward, layer, -1);
            if (backward)
                c->r->pack_backward[layer] = lower_buffer(c, HP_BUF_PACK, HP_U8, backward, layer, -1);
            const int32_t operand[2] = {c->r->pack_forward[layer], c->r->pack_backward[layer]};
            lower_task(
                c,
                (hp_task){
                    .op = HP_TASK_PACK, .layer = layer, .chunk = (int16_t)chunk, .micro = -1, .tag = -1},
                "ww", operand);
        }
    }
}

/* Emits the all-reduce of elements [from, to), final once the tasks `ready` are done. Returns it, or -1
 * without replicas. */
static int reduce_bucket(hp_lower_ctx *c, int bucket, int64_t from, int64_t to, const int *ready,
                         int n_ready) {
    if (c->s->dp == 1) return -1;
    const int32_t grads = HP_BUF_GRADS;
    hp_task t = {
        .op = HP_TASK_ALLREDUCE, .layer = -1, .micro = -1, .tag = bucket, .dtype = (uint8_t)c->o->dtype};
    t.queue = (int16_t)lower_queue(c, HP_QUEUE_COLL, 1 + c->r->stage, 0);
    t.offset = from;
    t.count = to - from;
    c->writer[grads] = -1; /* buckets are disjoint: each waits for its own layers only */
    const int id = lower_task(c, t, "m", &grads);
    for (int i = 0; i < n_ready; i++) lower_dep(c, id, ready[i]);
    c->writer[grads] = -1;
    return id;
}

static void update_bucket(hp_lower_ctx *c, int bucket, int64_t from, int64_t to, int reduced) {
    const hp_task t = {
        .op = HP_TASK_SGD, .layer = -1, .micro = -1, .tag = bucket, .offset = from, .count = to - from};
    const int id = lower_task(c, t, "", NULL);
    lower_dep(c, id, reduced);
}

/* The step's metrics over all ranks; waits for the rank's last compute task, so a step ends together. */
static void reduce_metric(hp_lower_ctx *c, int last_compute) {
    const int32_t metric = HP_BUF_METRIC;
    hp_task t = {.op = HP_TASK_ALLREDUCE,
                 .flags = HP_FLAG_METRIC,
                 .layer = -1,
                 .micro = -1,
                 .tag = -1,
                 .dtype = HP_F64};
    t.queue = (int16_t)lower_queue(c, HP_QUEUE_COLL, 0, 0);
    t.count = HP_METRICS;
    const int id = lower_task(c, t, "m", &metric);
    lower_dep(c, id, c->metric_writer);
    lower_dep(c, id, last_compute);
}

typedef struct bucket {
    int64_t from, to;
    int reduced;
} bucket;

static int last_compute_task(const hp_role *r) {
    for (int i = r->n_task - 1; i >= 0; i--)
        if (hp_task_infos[r->task[i].op].queue == HP_QUEUE_COMPUTE) return i;
    return -1;
}

/* Cuts the parameters into buckets of at least fuse_bytes, in memory order; counted as float32 in every
 * dtype, so that the reference device sums the same buckets. */
static int cut_buckets(hp_lower_ctx *c, bucket *out) {
    int n = 0, n_ready = 0;
    int *ready = HP_NEW(c->arena, int, c->g->n_layer);
    int64_t from = 0, at = 0;
    for (int chunk = c->s->chunks - 1; chunk >= 0; chunk--) {
        const hp_vstage *v = chunk_stage(c, chunk);
        for (int layer = v->end - 1; layer >= v->first; layer--) {
            const hp_layer *l = &c->g->layer[layer];
            for (int i = 0; i < l->n_param; i++)
                if (hp_param_trained(&c->g->param[l->param[i]]))
                    at += round_up(c->g->param[l->param[i]].count, PARAM_ALIGN);
            if (c->grad_task[layer] >= 0) ready[n_ready++] = c->grad_task[layer];
            const bool end = layer == v->first && chunk == 0;
            if (at == from || (!end && (at - from) * 4 < c->s->fuse_bytes)) continue;
            out[n] = (bucket){from, at, reduce_bucket(c, n, from, at, ready, n_ready)};
            n++;
            n_ready = 0;
            from = at;
        }
    }
    return n;
}

void lower_update(hp_lower_ctx *c) {
    if (lower_train(c)) {
        bucket *b = HP_NEW(c->arena, bucket, c->g->n_layer + 1);
        const int n = cut_buckets(c, b);
        c->r->n_bucket = n;
        for (int i = 0; i < n; i++) update_bucket(c, i, b[i].from, b[i].to, b[i].reduced);
    }
    reduce_metric(c, last_compute_task(c->r));
}
