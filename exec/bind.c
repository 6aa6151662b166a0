/* bind.c - resolves a task's operand ids to addresses in the arena; see bind.h. */
#include "exec/bind.h"

#include "plan/base/rng.h"

#include <math.h>
#include <string.h>

static void *buffer_at(const hp_device_config *c, int buffer) {
    return buffer < 0 ? NULL : c->arena + c->role->buffer[buffer].offset;
}

static void *element_of(const hp_device_config *c, int buffer, int64_t element) {
    if (c->role->buffer[buffer].bytes == 0) return NULL;
    return c->arena + c->role->buffer[buffer].offset + element * hp_dtype_bytes((hp_dtype)c->program->dtype);
}

static void bind_params(const hp_device_config *c, hp_bound *b) {
    for (int i = 0; i < b->layer->n_param; i++) {
        const int p = b->layer->param[i];
        const bool trained = hp_param_trained(&c->graph->param[p]);
        const int64_t at = c->role->place[p].offset;
        HP_ASSERT(c->role->place[p].here);
        b->param[i] = element_of(c, trained ? HP_BUF_WEIGHTS : HP_BUF_STATE, at);
        b->grad[i] = trained ? element_of(c, HP_BUF_GRADS, at) : NULL;
    }
}

static void bind_layer(const hp_device_config *c, hp_bound *b, int id) {
    const hp_graph *g = c->graph;
    b->layer = &g->layer[id];
    b->layer_id = id;
    b->n_in = b->layer->n_in;
    b->shape = hp_shape_of(g, id, b->micro_batch);
    for (int i = 0; i < b->n_in; i++) b->in_c[i] = g->tensor[b->layer->in[i]].c;
    b->in_elems = b->micro_batch * b->shape.ih * b->shape.iw * b->shape.ic;
    b->out_elems = b->micro_batch * b->shape.oh * b->shape.ow * b->shape.oc;
    bind_params(c, b);
    b->pack_forward = buffer_at(c, c->role->pack_forward[id]);
    b->pack_backward = buffer_at(c, c->role->pack_backward[id]);
}

typedef void operands_fn(const hp_device_config *c, const int32_t *o, hp_bound *b);

static void operands_pack(const hp_device_config *c, const int32_t *o, hp_bound *b) {
    b->pack_forward = buffer_at(c, o[0]);
    b->pack_backward = buffer_at(c, o[1]);
}

static void operands_fwd(const hp_device_config *c, const int32_t *o, hp_bound *b) {
    b->y = buffer_at(c, o[0]);
    b->save = buffer_at(c, o[1]);
    for (int i = 0; i < b->n_in; i++) b->x[i] = buffer_at(c, o[2 + i]);
}

static void operands_bwd(const hp_device_config *c, const int32_t *o, hp_bound *b) {
    b->dy = buffer_at(c, o[0]);
    b->y = buffer_at(c, o[1]);
    b->save = buffer_at(c, o[2]);
    for (int i = 0; i < b->n_in; i++) b->x[i] = buffer_at(c, o[3 + i]);
    for (int i = 0; i < b->n_in; i++) b->dx[i] = buffer_at(c, o[3 + b->n_in + i]);
}

static void operands_bwdw(const hp_device_config *c, const int32_t *o, hp_bound *b) {
    b->dy = buffer_at(c, o[0]);
    b->x[0] = buffer_at(c, o[1]);
}

static void operands_loss(const hp_device_config *c, const int32_t *o, hp_bound *b) {
    const hp_graph *g = c->graph;
    const hp_tensor *logits = &g->tensor[g->layer[g->n_layer - 1].out];
    b->y = buffer_at(c, o[0]);
    b->x[0] = buffer_at(c, o[1]);
    b->labels = buffer_at(c, o[2]);
    b->in_c[0] = logits->c;
    b->count = b->micro_batch * logits->h * logits->w;
}

static void operands_accum(const hp_device_config *c, const int32_t *o, hp_bound *b) {
    const hp_buffer *dst = &c->role->buffer[o[0]];
    b->y = buffer_at(c, o[0]);
    b->x[0] = buffer_at(c, o[1]);
    b->count = dst->bytes / hp_dtype_bytes((hp_dtype)dst->dtype);
}

static void operands_sgd(const hp_device_config *c, const int32_t *o, hp_bound *b) {
    (void)o;
    b->sgd_w = element_of(c, HP_BUF_WEIGHTS, b->task->offset);
    b->sgd_g = element_of(c, HP_BUF_GRADS, b->task->offset);
    b->sgd_m = element_of(c, HP_BUF_MOMENTUM, b->task->offset);
    b->count = b->task->count;
}

static operands_fn *const operands_of[HP_TASK_OPS] = {
    [HP_TASK_PACK] = operands_pack, [HP_TASK_FWD] = operands_fwd,   [HP_TASK_LOSS] = operands_loss,
    [HP_TASK_BWD] = operands_bwd,   [HP_TASK_BWDW] = operands_bwdw, [HP_TASK_ACCUM] = operands_accum,
    [HP_TASK_SGD] = operands_sgd,
};

hp_bound hp_bind(const hp_device_config *c, int t) {
    const hp_task *task = &c->role->task[t];
    const hp_buffer *scratch = &c->role->buffer[HP_BUF_SCRATCH];
    hp_bound b = {.task = task,
                  .layer_id = -1,
                  .batch = c->program->batch,
                  .micro_batch = c->program->micro_batch,
                  .dp = c->program->dp,
                  .micro = c->program->micro,
                  .scratch_bytes = scratch->bytes};
    b.scratch = scratch->bytes > 0 ? buffer_at(c, HP_BUF_SCRATCH) : NULL;
    b.metric = buffer_at(c, HP_BUF_METRIC);
    HP_ASSERT(operands_of[task->op] != NULL);
    if (task->layer >= 0) bind_layer(c, &b, task->layer);
    operands_of[task->op](c, c->role->operand + task->operand, &b);
    return b;
}

hp_running hp_running_factors(const hp_bound *b, const hp_step *s) {
    const double keep = 1.0 - (double)b->layer->momentum;
    const int m = b->task->micro;
    hp_running r = {.before = keep, .fresh = (double)b->layer->momentum, .after = 1};
    if (m == 0) r.before *= pow(keep, (double)s->replica * b->micro);
    if (m == b->micro - 1) r.after = pow(keep, (double)(b->dp - 1 - s->replica) * b->micro);
    return r;
}

hp_clamp hp_clamp_of(int act) {
    static const hp_clamp clamps[] = {
        [HP_ACT_NONE] = {-INFINITY, INFINITY}, [HP_ACT_RELU] = {0, INFINITY}, [HP_ACT_RELU6] = {0, 6}};
    return clamps[act];
}

void hp_dropout_scale(const hp_bound *b, const hp_step *s, int64_t sample_in_micro, int64_t first,
                      int64_t count, float *keep) {
    const double p = (double)b->layer->p;
    const uint64_t threshold = (uint64_t)(p * 0x1p32); /* a 32-bit word below it drops the element */
    const float scale = p < 1 ? (float)(1 / (1 - p)) : 0.0f;
    const uint64_t sample =
        (uint64_t)(((int64_t)s->replica * b->micro + b->task->micro) * b->micro_batch + sample_in_micro);
    const uint64_t stream = ((uint64_t)s->step << 24) ^ (uint64_t)b->layer_id;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t e = (uint64_t)(first + i);
        const hp_rng4 r =
            hp_philox(s->seed, stream, (sample << 34) ^ (e >> 2)); /* 2^36 elements per sample */
        for (; i < count && (uint64_t)(first + i) >> 2 == e >> 2; i++)
            keep[i] = r.v[(uint64_t)(first + i) & 3] < threshold ? 0.0f : scale;
        i--;
    }
}
