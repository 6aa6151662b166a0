/* blocks.c - ZeRO's second and third stage (Rajbhandari et al., SC 2020, section 5): a bucket of which each
 * rank keeps only its part is assembled in a block while a pass works on it.
 *
 * zero=3: the members' parts are gathered before the first layer of a bucket computes; the block is freed as
 * the next bucket's layers begin. A forward and a backward pass each gather every bucket once, and so does
 * each recomputation. `prefetch` more buckets are gathered ahead, in the order of the pass. With `keep` a
 * block stays for the whole step, through all micro-batches.
 *
 * zero=2: a micro-batch's gradients of a bucket are summed into a block, which is scattered over the members
 * as soon as they are final. The part is taken from the block one bucket later, so that computing goes on
 * meanwhile. */
#include "plan/lower/lower_inside.h"

typedef struct hp_block {
    int32_t lowest, highest; /* layers of the bucket */
    int32_t params, grads;   /* open blocks; -1: none */
    bool kept;               /* the gradients of a micro-batch are in the part already */
} block;

void lower_new_blocks(hp_role_builder *c) {
    c->zero.block = HP_NEW(c->facts->arena, block, c->r->n_bucket + 1);
    for (int i = 0; i < c->r->n_bucket; i++)
        c->zero.block[i] = (block){.lowest = c->facts->g->n_layer, .highest = -1, .params = -1, .grads = -1};
    for (int l = 0; l < c->facts->g->n_layer; l++) {
        if (lower_bucket(c, l) < 0) continue;
        block *b = &c->zero.block[lower_bucket(c, l)];
        if (l < b->lowest) b->lowest = l;
        b->highest = l;
    }
    for (int k = 0; k < 2; k++) {
        c->zero.pack_now[k] = HP_NEW(c->facts->arena, int32_t, c->facts->g->n_layer);
        for (int l = 0; l < c->facts->g->n_layer; l++) c->zero.pack_now[k][l] = -1;
    }
    c->zero.scattered.bucket = -1;
}

int lower_bucket(const hp_role_builder *c, int layer) {
    const hp_layer *l = &c->facts->g->layer[layer];
    for (int i = 0; i < l->n_param; i++)
        if (c->r->place[l->param[i]].here && hp_param_trained(&c->facts->g->param[l->param[i]]))
            return c->params.bucket_of[layer];
    return -1;
}

static int32_t new_block(hp_role_builder *c, int bucket) {
    return lower_buffer(c, HP_BUF_BLOCK, c->facts->o->dtype, c->r->bucket[bucket].count, bucket, -1);
}

/* The rank's part, between a block and a buffer of parts. */
static int part_task(hp_role_builder *c, int bucket, int32_t dst, int32_t src, int flags) {
    hp_task t = lower_bucket_task(c, HP_TASK_PART, bucket);
    t.flags = (uint8_t)flags;
    return lower_task(c, t, (int32_t[2]){dst, src});
}

hp_task lower_bucket_task(const hp_role_builder *c, hp_task_op op, int bucket) {
    const hp_bucket *b = &c->r->bucket[bucket];
    return (hp_task){.op = (uint8_t)op, .layer = -1, .micro = -1, .update = {bucket, 0, b->first, b->count}};
}

hp_task lower_bucket_sum(const hp_role_builder *c, hp_task_op op, int bucket) {
    const hp_bucket *b = &c->r->bucket[bucket];
    return (hp_task){.op = (uint8_t)op,
                     .dtype = (uint8_t)c->facts->o->dtype,
                     .layer = -1,
                     .micro = -1,
                     .collective = {bucket, 0, b->first, b->count}};
}

int lower_bucket_collective(hp_role_builder *c, hp_task_op op, int bucket, int32_t buffer) {
    const hp_bucket *b = &c->r->bucket[bucket];
    if (b->group < 0) return -1;
    hp_task t = lower_bucket_sum(c, op, bucket);
    if (buffer >= HP_BUF_FIXED) t.collective.first = 0;
    lower_collective(c, b->group, &t);
    return lower_task(c, t, (int32_t[2]){buffer, -1});
}

/* --- parameters --- */

static bool gathers(const hp_role_builder *c) {
    return hp_keeps_parts(c->shared->p, HP_BUF_WEIGHTS);
}

static void gather(hp_role_builder *c, int bucket) {
    block *b = &c->zero.block[bucket];
    if (b->params >= 0) return;
    b->params = new_block(c, bucket);
    part_task(c, bucket, b->params, HP_BUF_WEIGHTS, 0);
    lower_bucket_collective(c, HP_TASK_ALL_GATHER, bucket, b->params);
}

static void give_back(hp_role_builder *c, int bucket) {
    c->zero.block[bucket].params = -1;
    for (int l = 0; l < c->facts->g->n_layer; l++)
        if (c->params.bucket_of[l] == bucket) c->zero.pack_now[0][l] = c->zero.pack_now[1][l] = -1;
}

void lower_give_back(hp_role_builder *c) {
    for (int i = 0; i < c->r->n_bucket && !c->facts->s->zero.keep; i++)
        if (c->zero.block[i].params >= 0) give_back(c, i);
}

/* Buckets all of whose layers lie behind the pass. */
static void leave_behind(hp_role_builder *c, int layer, bool backward) {
    for (int i = 0; i < c->r->n_bucket && !c->facts->s->zero.keep; i++) {
        const block *b = &c->zero.block[i];
        if (b->params >= 0 && (backward ? b->lowest > layer : b->highest < layer)) give_back(c, i);
    }
}

/* Does a task of the layer read its parameters? All parts of a stage give the same answer, even those without
 * any of it: they gather together. */
static bool reads_params(const hp_role_builder *c, int layer, bool backward) {
    const hp_layer *l = &c->facts->g->layer[layer];
    if (!gathers(c) || lower_bucket(c, layer) < 0) return false;
    if (!backward || hp_layer_gradients_along(l)) return !backward || lower_wants_gradient(c->facts, l->out);
    return lower_wants_gradient(c->facts, l->out) && lower_wants_gradient(c->facts, l->in[0]);
}

/* The buckets that the pass comes to after this one. */
static void gather_ahead(hp_role_builder *c, int layer, bool backward) {
    const int step = backward ? -1 : 1;
    int ahead = c->facts->s->zero.prefetch, last = lower_bucket(c, layer);
    for (int l = layer + step; ahead > 0 && l >= c->zero.run_from && l < c->zero.run_to; l += step) {
        if (!reads_params(c, l, backward) || lower_bucket(c, l) == last) continue;
        last = lower_bucket(c, l);
        gather(c, last);
        ahead--;
    }
}

void lower_open(hp_role_builder *c, int layer, bool backward) {
    if (!reads_params(c, layer, backward)) return;
    leave_behind(c, layer, backward);
    gather(c, lower_bucket(c, layer));
    gather_ahead(c, layer, backward);
}

hp_params_at lower_params_at(hp_role_builder *c, const hp_pass *a, int layer, bool backward) {
    if (!reads_params(c, layer, backward)) return (hp_params_at){-1, -1};
    const int32_t params = c->zero.block[lower_bucket(c, layer)].params;
    int32_t *pack = &c->zero.pack_now[backward][layer];
    if (*pack < 0) *pack = lower_pack(c, a->slot, layer, backward, params);
    return (hp_params_at){params, *pack};
}

/* --- gradients --- */

static bool scatters(const hp_role_builder *c) {
    return lower_train(c->facts) && hp_keeps_parts(c->shared->p, HP_BUF_GRADS);
}

/* Takes the rank's part from the block that was scattered last. */
static void take_part(hp_role_builder *c) {
    if (c->zero.scattered.bucket < 0) return;
    bool *kept = &c->zero.block[c->zero.scattered.bucket].kept;
    part_task(c, c->zero.scattered.bucket, HP_BUF_GRADS, c->zero.scattered.buffer, *kept ? HP_FLAG_ADD : 0);
    *kept = true;
    c->zero.scattered.bucket = -1;
}

static int32_t grads_of(hp_role_builder *c, const hp_pass *a, int bucket) {
    block *b = &c->zero.block[bucket];
    if (b->grads >= 0) return b->grads;
    if (c->zero.scattered.bucket == bucket) take_part(c); /* the part of the micro-batch before */
    b->grads = new_block(c, bucket);
    for (int l = 0; l < c->facts->g->n_layer; l++)
        if (c->params.bucket_of[l] == bucket) c->params.touched[l] = false;
    lower_zero(c, a, -1, b->grads, 0,
               c->r->bucket[bucket].count); /* gaps, and layers of which nothing is here */
    return b->grads;
}

int32_t lower_grads_at(hp_role_builder *c, const hp_pass *a, int layer) {
    const int bucket = lower_bucket(c, layer);
    return scatters(c) && bucket >= 0 ? grads_of(c, a, bucket) : -1;
}

void lower_scatter(hp_role_builder *c, const hp_pass *a, int layer) {
    const int bucket = c->params.last_of[layer];
    if (!scatters(c) || bucket < 0) return;
    const int32_t grads = grads_of(c, a, bucket);
    lower_bucket_collective(c, HP_TASK_REDUCE_SCATTER, bucket, grads);
    take_part(c);
    c->zero.scattered.bucket = bucket;
    c->zero.scattered.buffer = grads;
    c->zero.block[bucket].grads = -1;
}

void lower_scattered(hp_role_builder *c) {
    take_part(c);
}
