/* lower_layers.c - one pass of one micro-batch through a virtual stage: receive, compute layer by layer,
 * send.
 *
 * Gradients of a tensor with several readers are summed in the order the backward pass meets them.
 * Elementwise layers work in place where nobody needs the old value. With recomputation, the backward pass
 * first runs a group of layers (a unit, or the whole stage) forward again from the group's kept inputs. */
#include "plan/device_memory.h"
#include "plan/lower.h"

#include <string.h>

static hp_task layer_task(hp_task_op op, int layer, int chunk, int micro, int flags) {
    return (hp_task){.op = (uint8_t)op,
                     .layer = layer,
                     .chunk = (int16_t)chunk,
                     .micro = micro,
                     .tag = -1,
                     .flags = (uint8_t)flags};
}

static int64_t tensor_elems(const hp_lower_ctx *c, int tensor) {
    return hp_tensor_elems(c->g, tensor) * c->p->micro_batch;
}

static int32_t tensor_buffer(hp_lower_ctx *c, hp_buffer_kind kind, int tensor, int micro) {
    return lower_buffer(c, kind, c->o->dtype, tensor_elems(c, tensor), tensor, micro);
}

static void clear_frame(hp_lower_ctx *c, hp_frame *f) {
    memset(f->act, -1, sizeof(int32_t) * (size_t)c->g->n_tensor);
    memset(f->save, -1, sizeof(int32_t) * (size_t)c->g->n_layer);
    memset(f->grad, -1, sizeof(int32_t) * (size_t)c->g->n_tensor);
}

static bool keeps_output(const hp_layer *l) {
    return hp_layer_infos[l->op].backward_needs_y && l->act != HP_ACT_NONE;
}

/* May layer l overwrite its first input? */
static bool in_place(const hp_lower_ctx *c, int layer) {
    const hp_layer *l = &c->g->layer[layer];
    const int x = l->in[0];
    const bool elementwise = l->op == HP_ACT || l->op == HP_ADD || l->op == HP_DROPOUT || l->op == HP_BN;
    if (!elementwise || c->last_use[x] != layer || (l->n_in > 1 && l->in[1] == x)) return false;
    if (!lower_train(c)) return true;
    const hp_layer *producer = &c->g->layer[c->g->tensor[x].producer];
    if (c->s->recompute != HP_RECOMPUTE_NONE && producer->unit != l->unit) return false; /* a kept input */
    return l->op != HP_BN && !keeps_output(producer);
}

/* The task reads a layer's packed weights, an operand by way of role->pack_forward or pack_backward. */
static void use_pack(hp_lower_ctx *c, int task, int32_t pack) {
    if (pack < 0) return;
    lower_touch(c, pack);
    lower_dep(c, task, c->writer[pack]);
}

static void forward_layer(hp_lower_ctx *c, hp_frame *f, int layer, int chunk, int micro, int flags) {
    const hp_layer *l = &c->g->layer[layer];
    if (!lower_train(c)) flags |= HP_FLAG_EVAL;
    int32_t operand[2 + HP_MAX_IN];
    char access[3 + HP_MAX_IN] = "ww";
    operand[0] = in_place(c, layer) ? f->act[l->in[0]] : tensor_buffer(c, HP_BUF_TENSOR, l->out, micro);
    const hp_shape shape = hp_shape_of(c->g, layer, c->p->micro_batch);
    const int64_t save = lower_train(c) ? hp_save_bytes(c->g, layer, &shape, c->o->dtype) : 0;
    operand[1] = save ? lower_buffer(c, HP_BUF_SAVE, HP_U8, save, layer, micro) : -1;
    for (int i = 0; i < l->n_in; i++) {
        operand[2 + i] = f->act[l->in[i]];
        access[2 + i] = 'r';
    }
    access[2 + l->n_in] = 0;
    const int task = lower_task(c, layer_task(HP_TASK_FWD, layer, chunk, micro, flags), access, operand);
    f->act[l->out] = operand[0];
    f->save[layer] = operand[1];
    use_pack(c, task, c->r->pack_forward[layer]);
}

static void transfer(hp_lower_ctx *c, hp_task_op op, int chunk, int micro, int vpeer, int channel, int tag,
                     int tensor, int32_t buffer) {
    hp_task t = layer_task(op, c->g->tensor[tensor].producer, chunk, micro, 0);
    t.queue = (int16_t)lower_queue(c, hp_task_infos[op].queue, vpeer % c->s->stages, channel);
    t.tag = tag;
    t.dtype = (uint8_t)c->o->dtype;
    t.count = tensor_elems(c, tensor);
    lower_task(c, t, op == HP_TASK_SEND ? "r" : "w", &buffer);
    if (op == HP_TASK_SEND) {
        HP_ROOM(c->arena, c->sent, c->n_sent, c->sent_room);
        c->sent[c->n_sent++] = buffer;
    }
}

/* Input pixels and labels, where this virtual stage needs them. Returns the labels' buffer or -1. */
static int32_t load(hp_lower_ctx *c, hp_frame *f, int virtual_stage, int chunk, int micro) {
    int32_t operand[2] = {-1, -1};
    if (virtual_stage == 0) {
        const int x = c->g->layer[0].out;
        operand[0] = f->act[x] = tensor_buffer(c, HP_BUF_TENSOR, x, micro);
    }
    if (virtual_stage == c->n_vstage - 1)
        operand[1] = lower_buffer(c, HP_BUF_LABELS, HP_I32, c->p->micro_batch, -1, micro);
    if (operand[0] >= 0 || operand[1] >= 0)
        lower_task(c, layer_task(HP_TASK_LOAD, -1, chunk, micro, 0), "ww", operand);
    return operand[1];
}

static void loss(hp_lower_ctx *c, hp_frame *f, int chunk, int micro, int32_t labels) {
    const int logits = c->g->layer[c->g->n_layer - 1].out;
    int32_t operand[3] = {-1, f->act[logits], labels};
    if (lower_train(c)) operand[0] = f->grad[logits] = tensor_buffer(c, HP_BUF_GRADIENT, logits, micro);
    c->metric_writer = lower_task(
        c, layer_task(HP_TASK_LOSS, -1, chunk, micro, lower_train(c) ? 0 : HP_FLAG_EVAL), "wrr", operand);
}

void lower_forward(hp_lower_ctx *c, hp_frame *f, const hp_vstage *v, int chunk, int micro) {
    const int id = (int)(v - c->vstage);
    clear_frame(c, f);
    for (int i = 0; i < v->n_in; i++) {
        f->act[v->in[i]] = tensor_buffer(c, HP_BUF_TENSOR, v->in[i], micro);
        transfer(c, HP_TASK_RECV, chunk, micro, id - 1, 2 * (id - 1), micro * v->n_in + i, v->in[i],
                 f->act[v->in[i]]);
    }
    const int32_t labels = load(c, f, id, chunk, micro);
    for (int layer = v->first ? v->first : 1; layer < v->end; layer++)
        forward_layer(c, f, layer, chunk, micro, 0);
    if (labels >= 0) loss(c, f, chunk, micro, labels);
    for (int i = 0; i < v->n_out; i++)
        transfer(c, HP_TASK_SEND, chunk, micro, id + 1, 2 * id, micro * v->n_out + i, v->out[i],
                 f->act[v->out[i]]);
}

/* --- backward --- */

/* Adds the gradient in `buffer` to what tensor x has so far. */
static void contribute(hp_lower_ctx *c, hp_frame *f, int x, int32_t buffer, int layer, int chunk, int micro) {
    if (f->grad[x] < 0) {
        f->grad[x] = buffer;
        return;
    }
    const int32_t operand[2] = {f->grad[x], buffer};
    lower_task(c, layer_task(HP_TASK_ACCUM, layer, chunk, micro, 0), "mr", operand);
}

/* Which input's gradient may take dy's place: the first, or for bn with a second input that one; -1 for none.
 */
static int gradient_in_place(const hp_layer *l) {
    if (l->op == HP_BN) return l->n_in > 1 ? 1 : 0;
    return l->op == HP_ACT || l->op == HP_ADD || l->op == HP_DROPOUT ? 0 : -1;
}

static bool wants_gradient(const hp_lower_ctx *c, int tensor) {
    return c->g->tensor[tensor].producer != 0; /* the image needs none */
}

static int gradient_flags(hp_lower_ctx *c, int layer) {
    const int flags = c->touched[layer] ? HP_FLAG_ADD : 0;
    c->touched[layer] = true;
    return flags;
}

static void backward_weights(hp_lower_ctx *c, const hp_frame *f, int layer, int32_t dy, int chunk,
                             int micro) {
    const int32_t operand[2] = {dy, f->act[c->g->layer[layer].in[0]]};
    c->grad_task[layer] =
        lower_task(c, layer_task(HP_TASK_BWDW, layer, chunk, micro, gradient_flags(c, layer)), "rr", operand);
}

/* The bwd task of a layer: operands dy, y, save, x.., dx.. */
static void backward_data(hp_lower_ctx *c, hp_frame *f, int layer, int32_t dy, int chunk, int micro) {
    const hp_layer *l = &c->g->layer[layer];
    const int n = l->n_in, replace = gradient_in_place(l);
    int32_t operand[3 + 2 * HP_MAX_IN];
    char access[4 + 2 * HP_MAX_IN] = "rrr";
    operand[0] = dy;
    operand[1] = keeps_output(l) ? f->act[l->out] : -1;
    operand[2] = f->save[layer];
    bool any = l->op == HP_BN; /* its parameters need the task even where no gradient goes on */
    for (int i = 0; i < n; i++) {
        operand[3 + i] =
            hp_layer_infos[l->op].backward_needs_x && l->op != HP_CONV && l->op != HP_LINEAR && i == 0
                ? f->act[l->in[i]]
                : -1;
        const bool wanted = wants_gradient(c, l->in[i]);
        any |= wanted;
        operand[3 + n + i] = !wanted        ? -1
                             : i == replace ? dy
                                            : tensor_buffer(c, HP_BUF_GRADIENT, l->in[i], micro);
        access[3 + i] = 'r';
        access[3 + n + i] = 'w';
    }
    access[3 + 2 * n] = 0;
    if (!any) return;
    const int flags = l->op == HP_BN ? gradient_flags(c, layer) : 0;
    const int task = lower_task(c, layer_task(HP_TASK_BWD, layer, chunk, micro, flags), access, operand);
    if (l->op == HP_BN) c->grad_task[layer] = task;
    use_pack(c, task, c->r->pack_backward[layer]);
    for (int i = 0; i < n; i++)
        if (operand[3 + n + i] >= 0) contribute(c, f, l->in[i], operand[3 + n + i], layer, chunk, micro);
}

static void backward_layer(hp_lower_ctx *c, hp_frame *f, int layer, int chunk, int micro) {
    const hp_layer *l = &c->g->layer[layer];
    const int32_t dy = f->grad[l->out];
    if (dy < 0) return; /* nobody used this layer's output */
    if (l->op == HP_CONV || l->op == HP_LINEAR) backward_weights(c, f, layer, dy, chunk, micro);
    backward_data(c, f, layer, dy, chunk, micro);
}

/* First layer of the group that is recomputed together with `layer`. */
static int group_first(const hp_lower_ctx *c, const hp_vstage *v, int layer) {
    if (c->s->recompute != HP_RECOMPUTE_BOUNDARY) return v->first;
    const int unit = c->g->unit_first[c->g->layer[layer].unit];
    return unit > v->first ? unit : v->first;
}

static bool recomputes(const hp_lower_ctx *c, int micro) {
    if (c->s->recompute == HP_RECOMPUTE_EXCEPT_LAST) return micro < c->s->micro - 1;
    return c->s->recompute != HP_RECOMPUTE_NONE;
}

void lower_backward(hp_lower_ctx *c, hp_frame *f, const hp_vstage *v, int chunk, int micro) {
    const int id = (int)(v - c->vstage);
    for (int i = 0; i < v->n_out; i++) {
        const int t = v->out[i];
        f->grad[t] = tensor_buffer(c, HP_BUF_GRADIENT, t, micro);
        transfer(c, HP_TASK_RECV, chunk, micro, id + 1, 2 * id + 1, micro * v->n_out + i, t, f->grad[t]);
    }
    for (int end = v->end; end > v->first;) {
        const int first = group_first(c, v, end - 1);
        if (recomputes(c, micro))
            for (int layer = first ? first : 1; layer < end; layer++)
                forward_layer(c, f, layer, chunk, micro, HP_FLAG_RECOMPUTE);
        for (int layer = end - 1; layer >= (first ? first : 1); layer--)
            backward_layer(c, f, layer, chunk, micro);
        end = first;
    }
    for (int i = 0; i < v->n_in; i++) {
        HP_ASSERT(f->grad[v->in[i]] >= 0);
        transfer(c, HP_TASK_SEND, chunk, micro, id - 1, 2 * (id - 1) + 1, micro * v->n_in + i, v->in[i],
                 f->grad[v->in[i]]);
    }
}
