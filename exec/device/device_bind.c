/* device_bind.c - resolves a task's operand ids to addresses in the arena, and their boxes to the layer's
 * local geometry; see device_bind.h. */
#include "exec/device/device_bind.h"

#include "base/rng.h"
#include "networks/deploy/deploy.h"
#include "plan/program/operands.h"
#include "plan/program/update.h"

#include <math.h>
#include <string.h>

static void *buffer_at(const hp_device_config *c, int buffer) {
    return buffer < 0 ? NULL : c->arena + c->role->buffer[buffer].offset;
}

static void *element_of(const hp_device_config *c, int buffer, int64_t element) {
    const hp_buffer *b = &c->role->buffer[buffer];
    return b->bytes == 0 ? NULL
                         : c->arena + b->offset + element * hp_dtype_bytes((hp_dtype)c->program->dtype);
}

/* --- a layer between the boxes of its operands --- */

static const hp_box *box_of(const hp_device_config *c, int32_t buffer) {
    return &c->role->buffer[buffer].box;
}

static hp_box output_box(const hp_device_config *c, const hp_task *t, const hp_operands *o) {
    return hp_task_box(t, box_of(c, o->dy >= 0 ? o->dy : o->y >= 0 ? o->y : o->x[0]));
}

/* The box of an input without an operand: what the output needs of it. */
static hp_box input_box(const hp_device_config *c, int layer, const hp_operands *o, int k,
                        const hp_box *out) {
    if (k < o->n_in && o->dx[k] >= 0) return *box_of(c, o->dx[k]);
    const hp_box need = hp_layer_need(c->graph, layer, k, out);
    if (k < o->n_in && o->x[k] >= 0) return hp_layer_view(c->graph, &need, box_of(c, o->x[k]));
    return need;
}

static void bind_shape(const hp_device_config *c, hp_bound *b, const hp_operands *o) {
    const hp_graph *g = c->graph;
    const hp_box out = output_box(c, b->task, o);
    int32_t before = 0; /* channels of the whole output before input i */
    for (int i = 0; i < b->n_in; i++) {
        const hp_box in = input_box(c, b->layer_id, o, i, &out);
        HP_ASSERT(hp_box_empty(&in) ||
                  (in.lo[HP_AXIS_N] == out.lo[HP_AXIS_N] && in.hi[HP_AXIS_N] == out.hi[HP_AXIS_N]));
        if (i == 0) b->shape = hp_shape_between(g, b->layer_id, &in, &out);
        if (i == 0) b->in_elems = hp_box_elems(&in);
        b->map.in_c[i] = hp_box_len(&in, HP_AXIS_C);
        b->map.in_at[i] = before + in.lo[HP_AXIS_C] - out.lo[HP_AXIS_C];
        if (i < HP_BOUND_BOXES) b->map.in_box[i] = in;
        before += g->tensor[b->layer->in[i]].c;
    }
    b->graph = c->graph;
    b->map.out_box = out;
    b->out_elems = hp_box_elems(&out);
    b->map.sample0 = out.lo[HP_AXIS_N];
    if (o->sums < 0) return;
    b->map.counted = hp_box_and(box_of(c, o->save), &out);
    for (int a = 0; a < HP_AXES && !hp_box_empty(&b->map.counted); a++) {
        b->map.counted.lo[a] -= out.lo[a];
        b->map.counted.hi[a] -= out.lo[a];
    }
}

/* Address of an element of the role's parameters or gradients: in the fixed buffer, or in the
 * block of a bucket. */
static void *trained_at(const hp_device_config *c, int32_t block, int fixed, int64_t element) {
    if (block < 0) return element_of(c, fixed, element);
    return element_of(c, block, element - c->role->bucket[c->role->buffer[block].what].first);
}

/* Binds constants of deployed layers that run as trained. For what other layers have in their packs see
 * exec/device/infer/prepare.h. */
static void bind_constants(const hp_device_config *c, hp_bound *b) {
    const int32_t pack = c->role->pack_forward[b->layer_id];
    for (int i = 0; i < b->layer->n_param && hp_layer_as_trained(b->layer); i++)
        b->param[i] = (unsigned char *)buffer_at(c, pack) +
                      hp_constant_at(c->graph, b->layer, i, (hp_dtype)c->program->dtype);
}

static void bind_params(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    if (c->graph->deployed) {
        bind_constants(c, b);
        return;
    }
    for (int i = 0; i < b->layer->n_param; i++) {
        const int p = b->layer->param[i];
        const hp_param_place *place = &c->role->place[p];
        const bool trained = hp_param_trained(&c->graph->param[p]);
        const hp_elements e =
            hp_param_elements(c->graph, b->layer, i, b->shape.oc0, b->shape.oc0 + b->shape.oc);
        const int64_t skip = e.first - place->first;
        HP_ASSERT(place->here && skip >= 0 && skip + e.count <= place->count);
        b->param[i] = trained ? trained_at(c, o->params, HP_BUF_WEIGHTS, place->offset + skip)
                              : element_of(c, HP_BUF_STATE, place->offset + skip);
        b->grad[i] = trained ? trained_at(c, o->grads, HP_BUF_GRADS, place->offset + skip) : NULL;
    }
}

static void bind_packs(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    const int32_t forward = o->pack_forward >= 0 ? o->pack_forward : c->role->pack_forward[b->layer_id],
                  backward = o->pack_backward >= 0 ? o->pack_backward : c->role->pack_backward[b->layer_id];
    b->pack.forward = buffer_at(c, forward);
    b->pack.backward = buffer_at(c, backward);
    b->pack.forward_bytes = forward < 0 ? 0 : c->role->buffer[forward].bytes;
    b->pack.backward_bytes = backward < 0 ? 0 : c->role->buffer[backward].bytes;
}

static void name_layer(const hp_device_config *c, hp_bound *b) {
    b->layer_id = b->task->layer;
    b->layer = &c->graph->layer[b->layer_id];
    b->n_in = b->layer->n_in;
}

/* Address of the first element of a part of a buffer that spans all columns and channels. */
static void *rows_at(const hp_device_config *c, int32_t id, const hp_box *part) {
    if (id < 0) return NULL;
    const hp_buffer *b = &c->role->buffer[id];
    const int64_t row = (int64_t)hp_box_len(&b->box, HP_AXIS_W) * hp_box_len(&b->box, HP_AXIS_C);
    const int64_t skipped = (part->lo[HP_AXIS_H] - b->box.lo[HP_AXIS_H]) * row;
    return c->arena + b->offset + skipped * hp_dtype_bytes((hp_dtype)b->dtype);
}

/* Binds rows of larger buffers, and how operands are stored. */
static void bind_views(const hp_device_config *c, hp_bound *b, const hp_operands *o) {
    const hp_box out = output_box(c, b->task, o);
    b->y = rows_at(c, o->y, &out);
    b->stored.y = (hp_dtype)c->role->buffer[o->y].dtype;
    for (int k = 0; k < o->n_in; k++) {
        if (o->x[k] < 0) continue;
        const bool added = hp_layer_adds(b->layer) && k == b->layer->n_in - 1;
        const hp_box in = added ? out : input_box(c, b->layer_id, o, k, &out);
        b->x[k] = rows_at(c, o->x[k], &in);
        b->stored.x[k] = (hp_dtype)c->role->buffer[o->x[k]].dtype;
    }
}

static void bind_layer(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    name_layer(c, b);
    bind_shape(c, b, o);
    bind_params(c, o, b);
    bind_packs(c, o, b);
    b->y = buffer_at(c, o->y);
    b->dy = buffer_at(c, o->dy);
    b->save = buffer_at(c, o->save);
    b->sums = buffer_at(c, o->sums);
    for (int i = 0; i < o->n_in; i++) {
        b->x[i] = buffer_at(c, o->x[i]);
        b->dx[i] = buffer_at(c, o->dx[i]);
    }
    if (c->graph->deployed) bind_views(c, b, o);
}

/* --- tasks without a layer --- */

/* Shape of the whole layer, or of the output channels whose weights are here. */
static void bind_pack(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    name_layer(c, b);
    const hp_param_place *place = &c->role->place[b->layer->param[0]];
    const hp_extent here = hp_param_channels(c->graph, b->layer, (hp_elements){place->first, place->count});
    hp_box out = hp_box_whole(c->graph, b->layer->out, b->step.micro_batch),
           in = hp_box_whole(c->graph, b->layer->in[0], b->step.micro_batch);
    out.lo[HP_AXIS_C] = here.lo;
    out.hi[HP_AXIS_C] = here.hi;
    const hp_box need = hp_layer_need(c->graph, b->layer_id, 0, &out);
    in.lo[HP_AXIS_C] = need.lo[HP_AXIS_C];
    in.hi[HP_AXIS_C] = need.hi[HP_AXIS_C];
    b->shape = hp_shape_between(c->graph, b->layer_id, &in, &out);
    bind_params(c, o, b);
    bind_packs(c, o, b);
    b->pack.forward = buffer_at(c, o->pack_forward); /* the packs that it writes */
    b->pack.backward = buffer_at(c, o->pack_backward);
}

/* Rows of the logits' box, each with a label; a label map has one per pixel. */
static void bind_loss(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    const hp_box *logits = box_of(c, o->x[0]);
    b->y = buffer_at(c, o->dx[0]);
    b->x[0] = buffer_at(c, o->x[0]);
    b->step.labels = buffer_at(c, o->labels);
    b->map.in_c[0] = logits->hi[HP_AXIS_C] - logits->lo[HP_AXIS_C];
    b->loss.classes = c->graph->tensor[c->graph->layer[c->graph->n_layer - 1].out].c;
    b->loss.first_class = logits->lo[HP_AXIS_C];
    b->sums = buffer_at(c, o->sums);
    b->loss.first_sum = b->task->op == HP_TASK_MAXSUM ? b->task->maxsum.first : 0;
    b->count = hp_box_empty(logits) ? 0 : hp_box_elems(logits) / b->map.in_c[0];
    HP_ASSERT(c->role->buffer[o->labels].bytes >= b->count * (int64_t)sizeof(int32_t));
    HP_ASSERT(o->dx[0] < 0 || hp_box_equal(logits, box_of(c, o->dx[0])));
    if (o->sums >= 0 && b->count > 0)
        b->loss.members =
            (int32_t)(c->role->buffer[o->sums].bytes / (b->count * HP_MAXSUMS * hp_dtype_bytes(HP_F64)));
}

static int64_t logits_pixels(const hp_graph *g) {
    const hp_tensor *logits = &g->tensor[g->layer[g->n_layer - 1].out];
    return (int64_t)logits->h * logits->w;
}

static void bind_accum(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    const hp_buffer *dst = &c->role->buffer[o->dst];
    b->y = buffer_at(c, o->dst);
    b->x[0] = buffer_at(c, o->src);
    b->count = dst->bytes / hp_dtype_bytes((hp_dtype)dst->dtype);
}

static void bind_copy(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    HP_ASSERT(c->role->buffer[o->dst].dtype == c->role->buffer[o->src].dtype);
    b->y = buffer_at(c, o->dst);
    b->x[0] = buffer_at(c, o->src);
    b->copy.dst = box_of(c, o->dst);
    b->copy.src = box_of(c, o->src);
    b->dtype = (hp_dtype)c->role->buffer[o->dst].dtype;
}

/* A box of values, or elements of the gradients from the task's first on. */
static void bind_codec(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    const bool encodes = b->task->op == HP_TASK_ENCODE;
    const int32_t values = encodes ? o->src : o->dst, code = encodes ? o->dst : o->src;
    const hp_buffer *v = &c->role->buffer[values], *k = &c->role->buffer[code];
    void *at = k->what < 0 ? element_of(c, values, b->task->code.first) : buffer_at(c, values);
    b->y = encodes ? buffer_at(c, code) : at;
    b->x[0] = encodes ? at : buffer_at(c, code);
    b->dtype = (hp_dtype)v->dtype;
    b->code.codec = k->codec;
    b->count = b->task->code.values;
    b->code.cols = k->what < 0 ? 1 : hp_box_len(&k->box, HP_AXIS_C);
    b->code.residual = buffer_at(c, o->residual);
    b->code.n = k->bytes / hp_codec_bytes(k->codec, b->count / b->code.cols, b->code.cols);
}

static void bind_factors(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    void *grads = element_of(c, HP_BUF_GRADS, b->task->code.first), *p = buffer_at(c, o->p);
    b->y = b->task->op == HP_TASK_PROJECT ? p : b->task->op == HP_TASK_FACTOR ? buffer_at(c, o->q) : grads;
    b->x[0] = b->task->op == HP_TASK_PROJECT ? grads : p;
    b->x[1] = b->task->op == HP_TASK_EXPAND ? buffer_at(c, o->q) : NULL;
    b->code.residual = buffer_at(c, o->residual);
    b->dtype = (hp_dtype)c->program->dtype;
    b->code.codec = c->role->buffer[o->p].codec;
    b->count = b->task->code.values;
    b->graph = c->graph;
    b->role = c->role;
}

static void bind_zero(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    const hp_buffer *buffer = &c->role->buffer[o->buffer];
    b->dtype = (hp_dtype)buffer->dtype;
    b->count = b->task->zero.elems;
    HP_ASSERT((b->task->zero.first + b->count) * hp_dtype_bytes(b->dtype) <= buffer->bytes);
    b->y = c->arena + buffer->offset + b->task->zero.first * hp_dtype_bytes(b->dtype);
}

static int member_of(const hp_device_config *c, const hp_task *t) {
    const int group = c->role->bucket[t->update.bucket].group;
    return group < 0 ? 0 : hp_group_member(c->program, group, (int)(c->role - c->program->role), c->replica);
}

static int64_t part_at(const hp_device_config *c, const hp_task *t, int32_t buffer) {
    return hp_part_at(c->program, c->role, buffer, t->update.bucket, member_of(c, t));
}

static void bind_update(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    const int64_t state = part_at(c, b->task, HP_BUF_OPTIMIZER),
                  elems = hp_state_elems(c->program, c->graph, c->role);
    (void)o;
    b->update.optimizer = c->graph->optimizer;
    b->update.clips = c->graph->clips;
    b->update.weight = element_of(c, HP_BUF_WEIGHTS, part_at(c, b->task, HP_BUF_WEIGHTS));
    b->update.gradient = element_of(c, HP_BUF_GRADS, part_at(c, b->task, HP_BUF_GRADS));
    for (int k = 0; k < HP_MAX_OPTIMIZER_STATES; k++)
        b->update.state[k] =
            element_of(c, HP_BUF_OPTIMIZER, state + (k < hp_optimizer_of(c->graph)->states ? k * elems : 0));
    if (!hp_task_works(c->program, c->role, b->task, c->replica)) return;
    b->count = hp_updated_elems(c->role, b->task);
    b->update.decayed = hp_decayed_elems(c->graph, c->role, b->task, member_of(c, b->task));
}

static void bind_norm(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    const hp_norm_share share = hp_norm_share_of(c->program, c->role, b->task, member_of(c, b->task));
    (void)o;
    b->update.gradient = element_of(c, HP_BUF_GRADS, share.first);
    b->count = share.count;
}

static void bind_part(const hp_device_config *c, const hp_operands *o, hp_bound *b) {
    b->y = element_of(c, o->dst, part_at(c, b->task, o->dst));
    b->x[0] = element_of(c, o->src, part_at(c, b->task, o->src));
    b->count = hp_updated_elems(c->role, b->task);
    b->dtype = (hp_dtype)c->program->dtype;
}

typedef void bind_fn(const hp_device_config *c, const hp_operands *o, hp_bound *b);
static bind_fn *const bind_fns[HP_TASK_OPS] = {
    [HP_TASK_PACK] = bind_pack,       [HP_TASK_STATS] = bind_layer,    [HP_TASK_FWD] = bind_layer,
    [HP_TASK_LOSS] = bind_loss,       [HP_TASK_MAXSUM] = bind_loss,    [HP_TASK_BSTATS] = bind_layer,
    [HP_TASK_BWD] = bind_layer,       [HP_TASK_BWDW] = bind_layer,     [HP_TASK_ACCUM] = bind_accum,
    [HP_TASK_COPY] = bind_copy,       [HP_TASK_ZERO] = bind_zero,      [HP_TASK_UPDATE] = bind_update,
    [HP_TASK_FINITE] = bind_update,   [HP_TASK_ENCODE] = bind_codec,   [HP_TASK_DECODE] = bind_codec,
    [HP_TASK_PROJECT] = bind_factors, [HP_TASK_FACTOR] = bind_factors, [HP_TASK_EXPAND] = bind_factors,
    [HP_TASK_PART] = bind_part,       [HP_TASK_NORM] = bind_norm,
};

hp_bound hp_bind(const hp_device_config *c, int t) {
    const hp_task *task = &c->role->task[t];
    const hp_buffer *scratch = &c->role->buffer[HP_BUF_SCRATCH];
    const hp_program *p = c->program;
    hp_bound b = {.task = task,
                  .layer_id = -1,
                  .scratch = {scratch->bytes > 0 ? buffer_at(c, HP_BUF_SCRATCH) : NULL, scratch->bytes},
                  .step = {.batch = p->batch / (p->local ? p->dp : 1),
                           .pixels = logits_pixels(c->graph),
                           .micro_batch = p->micro_batch,
                           .dp = p->dp,
                           .micro = p->micro,
                           .bn = p->bn,
                           .metric = buffer_at(c, HP_BUF_METRIC)}};
    const hp_operands o = hp_operands_of(c->graph, c->role, task);
    HP_ASSERT(bind_fns[task->op] != NULL);
    bind_fns[task->op](c, &o, &b);
    return b;
}

/* --- independence of results from the split --- */

hp_running hp_running_factors(const hp_bound *b, const hp_step *s) {
    const double keep = 1.0 - (double)b->layer->momentum;
    const int64_t skipped = b->task->forward.skipped, following = b->task->forward.following;
    const bool alone = b->step.bn != HP_BN_ALL; /* the other replicas' groups are not in these statistics */
    const int64_t before = b->task->flags & HP_FLAG_FIRST && alone ? (int64_t)s->replica * b->step.micro : 0;
    const int64_t after = alone ? (int64_t)(b->step.dp - 1 - s->replica) * b->step.micro : 0;
    hp_running r = {pow(keep, (double)(1 + skipped + before)), (double)b->layer->momentum, 1};
    if (b->task->flags & HP_FLAG_LAST) r.after = pow(keep, (double)(following + after));
    return r;
}

hp_clamp hp_clamp_of(const hp_layer *l) {
    const hp_act_bounds r = hp_act_bounds_of(l);
    return (hp_clamp){(float)r.least, (float)r.greatest};
}

/* Keeps or drops elements first .. first+count-1 of a sample of the whole map. */
static void dropout_run(const hp_bound *b, const hp_step *s, uint64_t sample, int64_t first, int64_t count,
                        float *keep) {
    const double p = (double)b->layer->p;
    const uint64_t threshold = (uint64_t)(p * 0x1p32); /* a 32-bit word below it drops the element */
    const float scale = p < 1 ? (float)(1 / (1 - p)) : 0.0f;
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

/* Sample `n` of the box in the global batch. */
static uint64_t global_sample(const hp_bound *b, const hp_step *s, int64_t n) {
    const int64_t group = (int64_t)s->replica * b->step.micro + b->task->micro;
    return (uint64_t)(group * b->step.micro_batch + b->map.sample0 + n);
}

/* First channel of a pixel of the box in its sample of the whole map. */
static int64_t global_element(const hp_shape *g, int y, int x) {
    return ((int64_t)(g->oy0 + y) * g->full.ow + g->ox0 + x) * g->full.oc + g->oc0;
}

void hp_dropout_row(const hp_bound *b, const hp_step *s, int64_t n, int y, float *keep) {
    const hp_shape *g = &b->shape;
    const uint64_t sample = global_sample(b, s, n);
    const int step = g->oc == g->full.oc ? g->ow : 1; /* contiguous pixels */
    for (int x = 0; x < g->ow; x += step, keep += (int64_t)step * g->oc)
        dropout_run(b, s, sample, global_element(g, y, x), (int64_t)step * g->oc, keep);
}

float hp_dropout_at(const hp_bound *b, const hp_step *s, int64_t i) {
    const hp_shape *g = &b->shape;
    const int64_t pixel = i / g->oc, row = pixel / g->ow;
    float keep;
    dropout_run(b, s, global_sample(b, s, row / g->oh),
                global_element(g, (int)(row % g->oh), (int)(pixel % g->ow)) + i % g->oc, 1, &keep);
    return keep;
}
