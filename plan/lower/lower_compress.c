/* lower_compress.c - compressed messages: encoded before they are sent, decoded where they are read.
 *
 * Both ends of a message know its box, and so whether the codec makes it smaller; if not, the message is sent
 * as it is. A bucket of gradients is encoded as soon as it is complete, in the middle of the backward pass,
 * summed as its codec defines, and decoded where the sum would have been. */
#include "plan/lower/lower_inside.h"
#include "plan/program/factors.h"

/* --- boxes --- */

hp_codec lower_codec(const hp_role_builder *c, hp_traffic traffic, const hp_box *box) {
    const hp_codec codec = (hp_codec)c->facts->s->compress[traffic];
    const bool smaller = codec && hp_codec_box_bytes(codec, box) < hp_box_elems(box) * hp_dtype_bytes(HP_F32);
    return smaller ? codec : 0;
}

static int32_t code_buffer(hp_role_builder *c, hp_codec codec, int64_t count, int what, int micro) {
    const int32_t b = lower_buffer(c, HP_BUF_CODE, hp_codec_info_of(codec)->dtype, count, what, micro);
    c->r->buffer[b].codec = codec;
    return b;
}

int32_t lower_code(hp_role_builder *c, const hp_pass *a, hp_codec codec, int tensor, const hp_box *box) {
    const int64_t elems = hp_codec_box_bytes(codec, box) / hp_dtype_bytes(hp_codec_info_of(codec)->dtype);
    const int32_t b = code_buffer(c, codec, elems, tensor, a->micro);
    c->r->buffer[b].box = *box;
    return b;
}

static void transcode(hp_role_builder *c, const hp_pass *a, hp_task_op op, int tensor, int32_t dst,
                      int32_t src) {
    const int32_t operand[3] = {dst, src, -1};
    hp_task t = lower_layer_task(a, op, c->facts->g->tensor[tensor].producer, 0);
    t.code.bucket = -1;
    t.code.values = hp_box_elems(lower_box_of(c, dst));
    lower_task(c, t, operand);
}

int32_t lower_encode(hp_role_builder *c, const hp_pass *a, hp_codec codec, int tensor, int32_t src) {
    const int32_t code = lower_code(c, a, codec, tensor, lower_box_of(c, src));
    transcode(c, a, HP_TASK_ENCODE, tensor, code, src);
    return code;
}

void lower_decode(hp_role_builder *c, const hp_pass *a, int tensor, int32_t dst, int32_t code) {
    transcode(c, a, HP_TASK_DECODE, tensor, dst, code);
}

int32_t lower_plain(hp_role_builder *c, const hp_pass *a, hp_buffer_kind kind, int tensor, int32_t buffer) {
    if (!hp_buffer_is_code(&c->r->buffer[buffer])) return buffer;
    const hp_box box = *lower_box_of(c, buffer);
    const int32_t plain = lower_box(c, kind, tensor, a->micro, &box);
    lower_decode(c, a, tensor, plain, buffer);
    return plain;
}

/* --- gradients --- */

/* The ranges of buckets are disjoint: each waits for its own tasks alone. */
static int transcode_bucket(hp_role_builder *c, hp_task_op op, int bucket, const int32_t *operand) {
    const hp_bucket *b = &c->r->bucket[bucket];
    const hp_task t = {.op = (uint8_t)op, .layer = -1, .micro = -1, .code = {bucket, b->first, b->count}};
    c->emit.writer[HP_BUF_GRADS] = -1;
    const int id = lower_task(c, t, operand);
    c->emit.writer[HP_BUF_GRADS] = -1;
    return id;
}

static void collect(hp_role_builder *c, hp_task_op op, int bucket, int32_t into, int32_t from) {
    const hp_buffer *b = &c->r->buffer[into];
    const int32_t operand[2] = {into, from};
    hp_task t = {.op = (uint8_t)op, .layer = -1, .micro = -1, .dtype = b->dtype};
    t.collective.bucket = bucket;
    t.collective.elems = b->bytes / hp_dtype_bytes((hp_dtype)b->dtype);
    lower_collective(c, c->r->bucket[bucket].group, &t);
    lower_task(c, t, operand);
}

/* The sum of all members' codes, or all of them: what is to be decoded. */
static int32_t sum_codes(hp_role_builder *c, int bucket, int32_t code) {
    const hp_codec codec = c->r->buffer[code].codec;
    if (hp_codec_info_of(codec)->sum == HP_CODEC_ADDED) {
        collect(c, HP_TASK_ALLREDUCE, bucket, code, -1);
        return code;
    }
    const int64_t each = c->r->buffer[code].bytes / hp_dtype_bytes((hp_dtype)c->r->buffer[code].dtype);
    const int32_t all =
        code_buffer(c, codec, each * hp_group_size(c->shared->p, c->r->bucket[bucket].group), -1, -1);
    collect(c, HP_TASK_ALL_GATHER, bucket, all, code);
    return all;
}

/* An element type of its own, a size that its parameters say. */
static int32_t factor_buffer(hp_role_builder *c, hp_buffer_kind kind, hp_codec codec, int64_t count) {
    const int32_t b = lower_buffer(c, kind, c->facts->o->dtype, count, -1, -1);
    c->r->buffer[b].codec = kind == HP_BUF_CODE ? codec : 0;
    return b;
}

static hp_factor_sizes factors_of(const hp_role_builder *c, int bucket) {
    const hp_codec codec = (hp_codec)c->facts->s->compress[HP_TRAFFIC_ALLREDUCE];
    const hp_elements range = {c->r->bucket[bucket].first, c->r->bucket[bucket].count};
    return hp_factor_sizes_of(c->facts->g, c->r, range, hp_codec_number(codec));
}

static int reduce_factored(hp_role_builder *c, int bucket) {
    const hp_codec codec = (hp_codec)c->facts->s->compress[HP_TRAFFIC_ALLREDUCE];
    const hp_factor_sizes n = factors_of(c, bucket);
    const int32_t p = factor_buffer(c, HP_BUF_CODE, codec, n.p),
                  q = factor_buffer(c, HP_BUF_CODE, codec, n.q),
                  residual = factor_buffer(c, HP_BUF_CARRY, codec, c->r->bucket[bucket].count + n.q);
    const int projected =
        transcode_bucket(c, HP_TASK_PROJECT, bucket, (int32_t[]){p, HP_BUF_GRADS, residual});
    lower_after_gradients(c, projected, bucket);
    collect(c, HP_TASK_ALLREDUCE, bucket, p, -1);
    transcode_bucket(c, HP_TASK_FACTOR, bucket, (int32_t[]){q, p, residual});
    collect(c, HP_TASK_ALLREDUCE, bucket, q, -1);
    return transcode_bucket(c, HP_TASK_EXPAND, bucket, (int32_t[]){HP_BUF_GRADS, p, q, residual});
}

bool lower_codes_bucket(const hp_role_builder *c, int bucket) {
    const hp_codec codec = (hp_codec)c->facts->s->compress[HP_TRAFFIC_ALLREDUCE];
    if (!codec || hp_codec_info_of(codec)->sum != HP_CODEC_FACTORED) return codec != 0;
    return factors_of(c, bucket).q > 0;
}

int lower_reduce_coded(hp_role_builder *c, int bucket) {
    const hp_codec codec = (hp_codec)c->facts->s->compress[HP_TRAFFIC_ALLREDUCE];
    const int64_t count = c->r->bucket[bucket].count;
    if (hp_codec_info_of(codec)->sum == HP_CODEC_FACTORED) return reduce_factored(c, bucket);
    const bool feedback = hp_codec_info_of(codec)->sum == HP_CODEC_GATHERED;
    const int32_t code = code_buffer(c, codec, hp_codec_count(codec, count, 1), -1, -1);
    const int32_t residual = feedback ? lower_buffer(c, HP_BUF_CARRY, c->facts->o->dtype, count, -1, -1) : -1;
    const int encoded =
        transcode_bucket(c, HP_TASK_ENCODE, bucket, (int32_t[]){code, HP_BUF_GRADS, residual});
    lower_after_gradients(c, encoded, bucket);
    const int32_t out[2] = {HP_BUF_GRADS, sum_codes(c, bucket, code)};
    return transcode_bucket(c, HP_TASK_DECODE, bucket, out);
}

/* --- as early as possible --- */

static bool encodes_gradients(const hp_task *t) {
    return (t->op == HP_TASK_ENCODE && t->layer < 0) || t->op == HP_TASK_PROJECT;
}

/* The place of every task after tasks that encode gradients move up to what they wait for; the others keep
 * their order. */
static int32_t *hoisted(const hp_role_builder *c) {
    const int n = c->r->n_task;
    int32_t *after = HP_NEW(c->facts->arena, int32_t, n), *first = HP_NEW(c->facts->arena, int32_t, n + 1),
            *next = HP_NEW(c->facts->arena, int32_t, n), *place = HP_NEW(c->facts->arena, int32_t, n);
    for (int i = 0; i < n; i++) after[i] = first[i] = -1;
    for (int i = 0; i < c->emit.n_dep; i++)
        if (c->emit.dep[i].on > after[c->emit.dep[i].task]) after[c->emit.dep[i].task] = c->emit.dep[i].on;
    for (int t = n - 1; t >= 0; t--)
        if (encodes_gradients(&c->r->task[t]) && after[t] >= 0) {
            next[t] = first[after[t]];
            first[after[t]] = t;
        }
    for (int t = 0, at = 0; t < n; t++) {
        if (encodes_gradients(&c->r->task[t]) && after[t] >= 0) continue;
        place[t] = at++;
        for (int e = first[t]; e >= 0; e = next[e]) place[e] = at++;
    }
    return place;
}

void lower_hoist_codes(hp_role_builder *c) {
    hp_role *r = c->r;
    if (!c->facts->s->compress[HP_TRAFFIC_ALLREDUCE] || !lower_train(c->facts)) return;
    const int32_t *place = hoisted(c);
    hp_task *task = HP_NEW(c->facts->arena, hp_task, r->n_task);
    for (int t = 0; t < r->n_task; t++) task[place[t]] = r->task[t];
    for (int b = 0; b < r->n_buffer; b++) {
        if (r->buffer[b].first < 0) continue;
        r->buffer[b].first = place[r->buffer[b].first];
        r->buffer[b].last = place[r->buffer[b].last];
    }
    for (int i = 0; i < c->emit.n_dep; i++)
        c->emit.dep[i] = (hp_dep){place[c->emit.dep[i].task], place[c->emit.dep[i].on]};
    r->task = task;
    c->emit.task_room = r->n_task;
}
