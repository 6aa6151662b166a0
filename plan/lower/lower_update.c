/* lower_update.c - the end of a step: gradient buckets are reduced as soon as they are final, the optimiser
 * updates each (with ZeRO the rank's part of it), and the metrics are summed. */
#include "plan/lower/lower_inside.h"
#include "networks/graph/precision.h"
#include "plan/memory/memory_device.h"

/* A layer whose gradients no task wrote (no pixel of it is here) takes part in the sum with zeros. */
static void zero_gradients(hp_role_builder *c, int vstage, int layer) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const hp_pass a = {.slot = lower_slot_of(c->r, vstage), .micro = -1};
    for (int i = 0; i < l->n_param; i++) {
        const hp_param_place *p = &c->r->place[l->param[i]];
        if (lower_holder(c, layer) != layer) continue; /* tied */
        if (!p->here || !hp_param_trained(&c->facts->g->param[l->param[i]])) continue;
        c->emit.writer[HP_BUF_GRADS] = -1; /* the ranges are disjoint */
        c->params.grad_task[layer] = lower_zero(c, &a, layer, HP_BUF_GRADS, p->offset, p->count);
    }
}

static void zero_missing_gradients(hp_role_builder *c) {
    for (int v = c->facts->n_vstage - 1; v >= 0; v--)
        for (int layer = c->facts->vstage[v].first;
             lower_slot_of(c->r, v) >= 0 && layer < c->facts->vstage[v].end; layer++)
            if (lower_holder(c, layer) == layer && c->params.grad_task[layer] < 0 &&
                !c->params.touched[layer])
                zero_gradients(c, v, layer);
}

void lower_after_gradients(hp_role_builder *c, int task, int bucket) {
    for (int layer = c->facts->g->n_layer - 1; layer > 0; layer--)
        if (lower_bucket(c, layer) == bucket) lower_dep(c, task, c->params.grad_task[layer]);
}

/* Sums a bucket's gradients: over all who hold them, at its server, or within the replica. */
static int sum_bucket(hp_role_builder *c, int bucket) {
    const hp_task_op op = c->r->bucket[bucket].parts > 1 ? HP_TASK_REDUCE_SCATTER : HP_TASK_ALLREDUCE;
    if (c->r->bucket[bucket].group < 0) return -1;
    if (lower_codes_bucket(c, bucket)) return lower_reduce_coded(c, bucket);
    if (lower_server(c, bucket) >= 0) return lower_to_server(c, bucket);
    if (lower_is_local(c->facts)) return lower_local_sum(c, bucket);
    return lower_bucket_collective(c, op, bucket, HP_BUF_GRADS);
}

/* Reduces a bucket once its layers' gradients are final: whole, or to the part that each member updates.
 * Returns the task, or -1 when this rank alone holds them: then the bucket waits for those layers in the
 * compute queue. */
static int reduce_bucket(hp_role_builder *c, int bucket) {
    c->emit.writer[HP_BUF_GRADS] = -1; /* buckets are disjoint: each waits for its own layers only */
    const int id = sum_bucket(c, bucket);
    if (id >= 0) lower_after_gradients(c, id, bucket);
    c->emit.writer[HP_BUF_GRADS] = -1;
    return id;
}

/* Emits the compute task for a bucket, or for the rank's part of it, once it is reduced. */
static int bucket_task(hp_role_builder *c, hp_task_op op, int bucket, int reduced) {
    const int server = lower_server(c, bucket);
    hp_task t = lower_bucket_task(c, op, bucket);
    if (server >= 0) t.update.call = lower_call_of_root(c, server);
    const int id = lower_task(c, t, NULL);
    lower_dep(c, id, reduced);
    return id;
}

void lower_metric_scratch(hp_role_builder *c) {
    const int64_t scratch = hp_device_memory_of(c->shared->p->device)->loss();
    if (scratch > c->scratch_bytes) c->scratch_bytes = scratch;
}

/* Adds to the metric what all ranks have to agree on before anything is updated: whether a gradient has
 * overflowed, so that all skip the step; the norm of all gradients, by which they are clipped. */
static void measure_bucket(hp_role_builder *c, hp_task_op op, int bucket, int reduced) {
    const int id = bucket_task(c, op, bucket, reduced);
    lower_metric_scratch(c);
    lower_dep(c, id, c->metric_writer);
    c->metric_writer = id;
}

/* Checks gradients for values that are not finite wherever updates wait for the metric anyway: run --on-nan
 * skip. */
static void measure_buckets(hp_role_builder *c, const int *reduced) {
    for (int i = 0; i < c->r->n_bucket; i++) {
        if (hp_graph_scales_loss(c->facts->g) || c->facts->g->clips)
            measure_bucket(c, HP_TASK_FINITE, i, reduced[i]);
        if (c->facts->g->clips) measure_bucket(c, HP_TASK_NORM, i, reduced[i]);
    }
}

/* Updates a bucket, then makes all holders alike again: by the server's parameters, the replicas' mean, or,
 * where each member updated its own part, the others' parts. */
static void update_bucket(hp_role_builder *c, int bucket, int reduced, int after) {
    const int id = bucket_task(c, HP_TASK_UPDATE, bucket, reduced);
    lower_dep(c, id, after);
    if (lower_server(c, bucket) >= 0) lower_from_server(c, bucket, id);
    if (lower_is_local(c->facts)) lower_average(c, bucket, id);
    if (c->r->bucket[bucket].parts == 1 || hp_keeps_parts(c->shared->p, HP_BUF_WEIGHTS)) return;
    c->emit.writer[HP_BUF_WEIGHTS] = -1;
    lower_dep(c, lower_bucket_collective(c, HP_TASK_ALL_GATHER, bucket, HP_BUF_WEIGHTS), id);
}

static int last_compute_task(const hp_role *r) {
    for (int i = r->n_task - 1; i >= 0; i--)
        if (hp_task_infos[r->task[i].op].queue == HP_QUEUE_COMPUTE) return i;
    return -1;
}

/* The step's metrics over all ranks; waits for the rank's last compute task, so a step ends together. */
static int reduce_metric(hp_role_builder *c, int last_compute) {
    const int32_t operand[2] = {HP_BUF_METRIC, -1};
    hp_task t = {.op = HP_TASK_ALLREDUCE,
                 .flags = HP_FLAG_METRIC,
                 .layer = -1,
                 .micro = -1,
                 .dtype = HP_F64,
                 .collective = {.bucket = -1, .elems = HP_METRICS}};
    lower_collective(c, 0, &t);
    const int id = lower_task(c, t, operand);
    lower_dep(c, id, c->metric_writer);
    lower_dep(c, id, last_compute);
    return id;
}

/* The task after which each bucket's gradients are final; -1: of the compute queue. */
static int *reduce_buckets(hp_role_builder *c) {
    int *reduced = HP_NEW(c->facts->arena, int, c->r->n_bucket + 1);
    const bool scattered = hp_keeps_parts(c->shared->p, HP_BUF_GRADS);
    if (scattered)
        lower_scattered(c);
    else
        zero_missing_gradients(c);
    for (int i = 0; i < c->r->n_bucket; i++) reduced[i] = scattered ? -1 : reduce_bucket(c, i);
    return reduced;
}

void lower_update(hp_role_builder *c) {
    if (!lower_train(c->facts)) {
        reduce_metric(c, last_compute_task(c->r));
        return;
    }
    const int *reduced = reduce_buckets(c);
    measure_buckets(c, reduced);
    const int known = hp_graph_metric_first(c->facts->g) ? reduce_metric(c, last_compute_task(c->r)) : -1;
    for (int i = 0; i < c->r->n_bucket; i++) update_bucket(c, i, reduced[i], known);
    if (known < 0) reduce_metric(c, last_compute_task(c->r));
}
