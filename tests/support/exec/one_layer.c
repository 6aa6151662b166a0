/* one_layer.c - a program of one layer, its tasks and buffers laid out by hand, to run on any device. */
#include "tests/support/exec/one_layer.h"

#include "networks/graph/optimizer.h"

static int32_t rig_buffer(rig *r, hp_buffer_kind kind, int64_t bytes) {
    hp_buffer *b = &r->buffer[r->role.n_buffer];
    *b = (hp_buffer){.kind = (uint8_t)kind,
                     .dtype = (uint8_t)r->program.dtype,
                     .what = -1,
                     .micro = -1,
                     .bytes = bytes,
                     .offset = r->role.arena_bytes};
    r->role.arena_bytes += (bytes + 63) / 64 * 64;
    return r->role.n_buffer++;
}

/* Does the device have memory of its own? Then it is a GPU, with requirements of its own. */
static bool rig_gpu(const rig *r) {
    return !r->ops->memory->host;
}

/* Type of a map's buffer, or the program's for all other buffers. */
static hp_dtype rig_dtype(const rig *r, int32_t buffer) {
    const int32_t t = r->buffer[buffer].dtype;
    return (hp_dtype)(t == HP_BF16 || t == HP_F16 ? t : r->program.dtype);
}

int64_t rig_elems(const rig *r, int32_t buffer) {
    return r->buffer[buffer].bytes / hp_dtype_bytes(rig_dtype(r, buffer));
}

void *rig_at(const rig *r, int32_t buffer) {
    return r->memory + r->buffer[buffer].offset;
}

double rig_get(const rig *r, int32_t buffer, int64_t i) {
    const void *p = rig_at(r, buffer);
    if (rig_dtype(r, buffer) == HP_BF16) return (double)from_bf16(((const uint16_t *)p)[i]);
    if (rig_dtype(r, buffer) == HP_F16) return (double)from_f16(((const uint16_t *)p)[i]);
    return r->program.dtype == HP_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

void rig_set(rig *r, int32_t buffer, int64_t i, double v) {
    void *p = rig_at(r, buffer);
    if (rig_dtype(r, buffer) == HP_BF16)
        ((uint16_t *)p)[i] = to_bf16((float)v);
    else if (rig_dtype(r, buffer) == HP_F16)
        ((uint16_t *)p)[i] = to_f16((float)v);
    else if (r->program.dtype == HP_F64)
        ((double *)p)[i] = v;
    else
        ((float *)p)[i] = (float)v;
}

void rig_fill(rig *r, int32_t buffer, uint64_t stream, double low, double high) {
    for (int64_t i = 0; i < rig_elems(r, buffer); i++)
        rig_set(r, buffer, i, (double)(float)(low + (high - low) * hp_rng_uniform(7, stream, (uint64_t)i)));
}

/* Adds a parameter with `rows` output channels, or one for all; those of the output's box are here. */
static void rig_param(rig *r, hp_param_kind kind, int64_t rows, int64_t row) {
    const int p = r->graph.n_param++;
    const hp_box *out = &r->boxes.out;
    const int64_t count = rows == 1 ? row : row * hp_box_len(out, HP_AXIS_C);
    int64_t *end =
        kind == HP_PARAM_BN_MEAN || kind == HP_PARAM_BN_VAR ? &r->role.live_bytes : &r->role.trained_elems;
    r->param[p] = (hp_param){.name = "p",
                             .kind = kind,
                             .layer = 1,
                             .n_dim = kind == HP_PARAM_CONV_W || kind == HP_PARAM_LINEAR_W ? 2 : 1,
                             .dim = {(int32_t)rows, (int32_t)row},
                             .count = rows * row};
    r->place[p] = (hp_param_place){.here = HP_HERE,
                                   .group = -1,
                                   .offset = *end,
                                   .first = rows == 1 ? 0 : row * out->lo[HP_AXIS_C],
                                   .count = count};
    *end += (count + 15) / 16 * 16;
    r->layer[1].param[r->layer[1].n_param++] = p;
}

static void rig_task(rig *r, int id, hp_task_op op, int flags, const int32_t *operand, int n) {
    hp_task *t = &r->task[id];
    *t = (hp_task){.op = (uint8_t)op,
                   .flags = (uint8_t)flags,
                   .layer = 1,
                   .micro = 0,
                   .operand = r->role.n_operand,
                   .n_operand = n};
    for (int i = 0; i < n; i++) r->operand[r->role.n_operand + i] = operand[i];
    r->role.n_operand += n;
}

static bool rig_matrix(const hp_layer *l) {
    return l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR;
}

static void rig_params(rig *r, bool bias) {
    const hp_layer *l = &r->layer[1];
    const hp_tensor *x = &r->tensor[0], *y = &r->tensor[l->n_in];
    if (l->op == HP_CONV || l->op == HP_CONVT)
        rig_param(r, HP_PARAM_CONV_W, y->c, (int64_t)(x->c / l->groups) * l->window.kh * l->window.kw);
    if (l->op == HP_LINEAR) rig_param(r, HP_PARAM_LINEAR_W, y->c, (int64_t)x->h * x->w * x->c);
    if (bias && rig_matrix(l)) rig_param(r, HP_PARAM_BIAS, y->c, 1);
    if (l->op == HP_PRELU) rig_param(r, HP_PARAM_FACTOR, l->groups == 1 ? 1 : y->c, 1);
    for (int k = HP_PARAM_BN_GAMMA; l->op == HP_BN && k <= HP_PARAM_BN_VAR; k++)
        rig_param(r, (hp_param_kind)k, y->c, 1);
    if (l->op == HP_GROUPNORM) rig_param(r, HP_PARAM_BN_GAMMA, y->c, 1);
    if (l->op == HP_GROUPNORM && bias) rig_param(r, HP_PARAM_BN_BETA, y->c, 1);
}

static hp_shape rig_shape(const rig *r) {
    return hp_shape_between(&r->graph, 1, &r->boxes.in[0], &r->boxes.out);
}

static int64_t rig_scratch(const rig *r) {
    const hp_task_op ops[] = {HP_TASK_PACK, HP_TASK_FWD, HP_TASK_BWD, HP_TASK_BWDW};
    const hp_shape shape = rig_shape(r);
    const hp_dtype t = (hp_dtype)r->program.dtype;
    int64_t most = rig_gpu(r) ? hp_gpu_loss_bytes() : 0;
    for (int i = 0; i < 4; i++) {
        const int64_t n = rig_gpu(r) ? hp_gpu_task_scratch_bytes(&r->graph, 1, ops[i], &shape, t)
                                     : hp_scratch_bytes(&r->graph, 1, ops[i], &shape, t);
        most = n > most ? n : most;
    }
    return most;
}

static hp_dtype rig_map_dtype(const rig *r, int tensor) {
    return hp_tensor_dtype(&r->tensor[tensor], (hp_dtype)r->program.dtype);
}

static int64_t rig_pack(const rig *r, bool backward) {
    const hp_shape shape = rig_shape(r);
    const hp_dtype t = (hp_dtype)r->program.dtype;
    return rig_gpu(r) ? hp_gpu_pack_bytes(&r->graph, 1, backward, &shape, t)
                      : hp_pack_bytes(&r->graph, 1, backward, &shape, t);
}

/* A buffer for `box` of a tensor. */
static int32_t rig_map(rig *r, hp_buffer_kind kind, int tensor, const hp_box *box) {
    const hp_dtype t = rig_map_dtype(r, tensor);
    const int32_t b = rig_buffer(r, kind, hp_box_elems(box) * hp_dtype_bytes(t));
    r->buffer[b].dtype = (uint8_t)t;
    r->buffer[b].what = tensor;
    r->buffer[b].box = *box;
    return b;
}

static int32_t rig_save(rig *r) {
    const hp_shape shape = rig_shape(r);
    const int64_t bytes = hp_save_bytes(&r->graph, 1, &shape, (hp_dtype)r->program.dtype);
    if (bytes == 0) return -1;
    const int32_t b = rig_buffer(r, HP_BUF_SAVE, bytes);
    r->buffer[b].box = r->boxes.own;
    return b;
}

static void rig_buffers(rig *r) {
    const int64_t e = hp_dtype_bytes((hp_dtype)r->program.dtype);
    rig_buffer(r, HP_BUF_WEIGHTS, r->role.trained_elems * e);
    rig_buffer(r, HP_BUF_GRADS, r->role.trained_elems * e);
    rig_buffer(r, HP_BUF_OPTIMIZER, HP_MAX_OPTIMIZER_STATES * r->role.trained_elems * e);
    rig_buffer(r, HP_BUF_STATE, r->role.live_bytes * e);
    rig_buffer(r, HP_BUF_METRIC, HP_METRICS * 8);
    rig_buffer(r, HP_BUF_SCRATCH, rig_scratch(r));
    const hp_shape shape = rig_shape(r);
    const int64_t pack[2] = {rig_pack(r, false), rig_pack(r, true)};
    r->pack_forward[1] = pack[0] ? rig_buffer(r, HP_BUF_PACK, pack[0]) : -1;
    r->pack_backward[1] = pack[1] ? rig_buffer(r, HP_BUF_PACK, pack[1]) : -1;
    r->save = rig_save(r);
    r->sums = rig_buffer(r, HP_BUF_SUMS, 2 * 8 * (int64_t)shape.oc);
    r->buffer[r->sums].dtype = HP_F64;
    const hp_box *out = &r->boxes.out;
    r->y = rig_map(r, HP_BUF_TENSOR, r->layer[1].out, out);
    r->dy = rig_map(r, HP_BUF_GRADIENT, r->layer[1].out, out);
    r->logits_grad = rig_map(r, HP_BUF_GRADIENT, r->layer[1].out, out);
    r->labels = rig_buffer(r, HP_BUF_LABELS, hp_box_elems(out) * 4);
    for (int i = 0; i < r->layer[1].n_in; i++) {
        const bool here =
            !hp_box_empty(&r->boxes.in[i]); /* a slice of a concatenation may not need all inputs */
        r->x[i] = here ? rig_map(r, HP_BUF_TENSOR, i, &r->boxes.in[i]) : -1;
        r->dx[i] = here ? rig_map(r, HP_BUF_GRADIENT, i, &r->boxes.in[i]) : -1;
    }
}

/* Tasks of a layer whose statistics are not shared. */
static void rig_own_tasks(rig *r, int flags) {
    const int n = r->layer[1].n_in;
    int32_t fwd[2 + HP_MAX_IN] = {r->y, r->save}, bwd[3 + 2 * HP_MAX_IN] = {r->dy, r->y, r->save};
    const int32_t pack[2] = {r->pack_forward[1], r->pack_backward[1]}, bwdw[2] = {r->dy, r->x[0]};
    const int32_t loss[3] = {r->logits_grad, r->y, r->labels}, sum[2] = {r->dy, r->y};
    for (int i = 0; i < n; i++) {
        fwd[2 + i] = bwd[3 + i] = r->x[i];
        bwd[3 + n + i] = r->dx[i];
    }
    const int ends = HP_FLAG_FIRST | HP_FLAG_LAST; /* the only group of the step */
    rig_task(r, RIG_PACK, HP_TASK_PACK, 0, pack, 2);
    rig_task(r, RIG_FWD, HP_TASK_FWD, (flags & HP_FLAG_RECOMPUTE) | ends, fwd, 2 + n);
    rig_task(r, RIG_BWD, HP_TASK_BWD, flags & HP_FLAG_ADD, bwd, 3 + 2 * n);
    rig_task(r, RIG_BWDW, HP_TASK_BWDW, flags & HP_FLAG_ADD, bwdw, 2);
    rig_task(r, RIG_EVAL, HP_TASK_FWD, HP_FLAG_EVAL, fwd, 2 + n);
    rig_task(r, RIG_SGD, HP_TASK_UPDATE, 0, NULL, 0);
    rig_task(r, RIG_NORM, HP_TASK_NORM, 0, NULL, 0);
    rig_task(r, RIG_ACCUM, HP_TASK_ACCUM, 0, sum, 2);
    rig_task(r, RIG_LOSS, HP_TASK_LOSS, 0, loss, 3);
    rig_task(r, RIG_LOSS_EVAL, HP_TASK_LOSS, HP_FLAG_EVAL, (const int32_t[]){-1, r->y, r->labels}, 3);
    r->task[RIG_SGD].update.elems = r->task[RIG_NORM].update.elems = r->role.trained_elems;
    r->bucket = (hp_bucket){.count = r->role.trained_elems, .group = -1, .parts = 1};
    r->role.bucket = &r->bucket;
    r->role.n_bucket = 1;
}

/* The same tasks with the sums as their last operand, and the tasks that compute these. */
static void rig_shared_tasks(rig *r, int flags) {
    const int n = r->layer[1].n_in;
    int32_t fwd[3 + HP_MAX_IN], bwd[4 + 2 * HP_MAX_IN];
    const int32_t stats[3] = {r->sums, r->x[0], r->save},
                  bstats[5] = {r->sums, r->dy, r->y, r->save, r->x[0]};
    memcpy(fwd, r->operand + r->task[RIG_FWD].operand, sizeof(int32_t) * (size_t)(2 + n));
    memcpy(bwd, r->operand + r->task[RIG_BWD].operand, sizeof(int32_t) * (size_t)(3 + 2 * n));
    fwd[2 + n] = bwd[3 + 2 * n] = r->sums;
    rig_task(r, RIG_STATS, HP_TASK_STATS, 0, stats, 3);
    rig_task(r, RIG_FWD_SHARED, HP_TASK_FWD, r->task[RIG_FWD].flags, fwd, 3 + n);
    rig_task(r, RIG_BSTATS, HP_TASK_BSTATS, flags & HP_FLAG_ADD, bstats, 5);
    rig_task(r, RIG_BWD_SHARED, HP_TASK_BWD, 0, bwd, 4 + 2 * n);
    const hp_tensor *y = &r->tensor[n];
    r->task[RIG_FWD_SHARED].forward.pixels = r->task[RIG_BWD_SHARED].backward.pixels =
        r->samples * y->h * y->w;
}

/* Keeps the tasks that the layer has, because a device prepares every task. */
static void rig_keep_tasks(rig *r) {
    const bool matrix = rig_matrix(&r->layer[1]);
    for (int t = 0; t < RIG_USED; t++) {
        const bool weights = t == RIG_PACK || t == RIG_BWDW, shared = t >= RIG_STATS;
        if ((weights && !matrix) || (shared && r->layer[1].op != HP_BN))
            r->task[t].op = HP_TASK_LOAD; /* not the device's */
    }
    r->role.n_task = RIG_USED;
}

static void rig_graph(rig *r, const hp_layer *layer, const hp_tensor *in, hp_tensor out) {
    r->layer[0] = (hp_layer){.name = "image", .op = HP_INPUT};
    r->layer[1] = *layer;
    r->layer[1].name = "layer";
    r->layer[1].out = layer->n_in;
    for (int i = 0; i < layer->n_in; i++) {
        r->tensor[i] = in[i];
        r->tensor[i].producer = 1; /* not the image: gradients are wanted */
        r->layer[1].in[i] = i;
    }
    r->tensor[layer->n_in] = out;
    r->graph = (hp_graph){.net = "one",
                          .n_layer = 2,
                          .n_tensor = layer->n_in + 1,
                          .layer = r->layer,
                          .tensor = r->tensor,
                          .param = r->param};
}

static void rig_program(rig *r, const hp_device_ops *ops) {
    r->program = (hp_program){.mode = HP_MODE_TRAIN,
                              .dtype = ops->dtype,
                              .dp = 1,
                              .micro = 1,
                              .batch = r->samples,
                              .micro_batch = r->samples,
                              .n_role = 1,
                              .role = &r->role};
    r->role = (hp_role){.task = r->task,
                        .operand = r->operand,
                        .buffer = r->buffer,
                        .place = r->place,
                        .pack_forward = r->pack_forward,
                        .pack_backward = r->pack_backward};
    r->pack_forward[0] = r->pack_backward[0] = -1;
}

/* Allocates memory for the buffers laid out so far. */
static void rig_allocate(rig *r) {
    free(r->memory);
    r->memory = aligned_alloc(64, (size_t)(r->role.arena_bytes + 64));
    memset(r->memory, 0x5a, (size_t)r->role.arena_bytes); /* results must not depend on it */
    memset(rig_at(r, HP_BUF_METRIC), 0, HP_METRICS * 8);
}

rig *rig_new_part(const hp_device_ops *ops, const hp_layer *layer, const hp_tensor *in, hp_tensor out,
                  int64_t samples, bool bias, int flags, const rig_boxes *boxes) {
    hp_arena *arena = hp_arena_new();
    rig *r = HP_NEW(arena, rig, 1);
    r->arena = arena;
    r->samples = samples;
    r->ops = ops;
    rig_graph(r, layer, in, out);
    rig_program(r, ops);
    if (boxes) r->boxes = *boxes;
    for (int i = 0; !boxes && i < layer->n_in; i++) r->boxes.in[i] = hp_box_whole(&r->graph, i, samples);
    if (!boxes) r->boxes.out = r->boxes.own = hp_box_whole(&r->graph, layer->n_in, samples);
    rig_params(r, bias);
    rig_buffers(r);
    rig_own_tasks(r, flags);
    rig_shared_tasks(r, flags);
    rig_keep_tasks(r);
    rig_allocate(r);
    return r;
}

rig *rig_new(const hp_device_ops *ops, const hp_layer *layer, const hp_tensor *in, hp_tensor out,
             int64_t samples, bool bias, int flags) {
    return rig_new_part(ops, layer, in, out, samples, bias, flags, NULL);
}

void rig_add_part(rig *r, const rig_boxes *boxes, int32_t *y2, int32_t *dy2) {
    const rig_boxes first = r->boxes;
    r->boxes = *boxes;
    const int64_t scratch = rig_scratch(r);
    r->boxes = first;
    if (scratch > r->buffer[HP_BUF_SCRATCH].bytes) {
        r->buffer[HP_BUF_SCRATCH].bytes = scratch;
        r->buffer[HP_BUF_SCRATCH].offset = r->role.arena_bytes;
        r->role.arena_bytes += (scratch + 63) / 64 * 64;
    }
    r->x[1] = rig_map(r, HP_BUF_TENSOR, 0, &boxes->in[0]);
    r->dx[1] = rig_map(r, HP_BUF_GRADIENT, 0, &boxes->in[0]);
    *y2 = rig_map(r, HP_BUF_TENSOR, 1, &boxes->out);
    *dy2 = rig_map(r, HP_BUF_GRADIENT, 1, &boxes->out);
    rig_task(r, RIG_MORE_FWD, HP_TASK_FWD, 0, (const int32_t[]){*y2, -1, r->x[1]}, 3);
    rig_task(r, RIG_MORE_BWD, HP_TASK_BWD, 0, (const int32_t[]){*dy2, *y2, -1, r->x[1], r->dx[1]}, 5);
    r->role.n_task = RIG_MORE_BWD + 1;
    rig_allocate(r);
}

hp_status rig_open(rig *r, hp_error *err) {
    HP_TRY(hp_memory_open(r->ops->memory, NULL, &r->gpu, err));
    if (rig_gpu(r)) HP_TRY(r->gpu.ops->alloc(&r->gpu, r->role.arena_bytes, (void **)&r->there, err));
    const hp_device_config c = {.program = &r->program,
                                .graph = &r->graph,
                                .role = &r->role,
                                .arena = rig_gpu(r) ? r->there : r->memory,
                                .threads = 1,
                                .memory = &r->gpu};
    return r->ops->open(&c, &r->device, err);
}

/* Copies the buffers to the device, runs the task, and copies them back. */
static hp_status rig_run_there(rig *r, int task, const hp_step *step, hp_error *err) {
    const hp_memory *m = &r->gpu;
    if (rig_gpu(r)) HP_TRY(m->ops->put(m, r->there, r->memory, r->role.arena_bytes, err));
    HP_TRY(r->ops->run(r->device, task, step, err));
    return rig_gpu(r) ? m->ops->get(m, r->memory, r->there, r->role.arena_bytes, err) : HP_OK;
}

hp_status rig_run(rig *r, int task) {
    const hp_step step = {.step = 3,
                          .replica = 0,
                          .seed = 11,
                          .dropout = true,
                          .lr = RIG_LR,
                          .momentum = 0.9,
                          .weight_decay = RIG_DECAY,
                          .beta1 = RIG_BETA1,
                          .beta2 = RIG_BETA2,
                          .eps = RIG_EPS,
                          .updates = RIG_UPDATES};
    hp_error err = {0};
    const hp_status s = rig_run_there(r, task, &step, &err);
    if (s != HP_OK) fprintf(stderr, "%s\n", err.text);
    return s;
}

void rig_free(rig *r) {
    if (r->device) r->ops->close(r->device);
    if (r->there) r->gpu.ops->free(&r->gpu, r->there, r->role.arena_bytes);
    hp_memory_close(&r->gpu);
    free(r->memory);
    hp_arena_free(r->arena);
}
