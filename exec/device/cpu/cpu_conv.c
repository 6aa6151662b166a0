/* cpu_conv.c - convolution tasks: Winograd where the rule of plan/memory/memory_device.h says so, else
 * oneDNN's first acceptable kernel, else our own for any shape. The choice depends only on the task's shape
 * and the processor, never on a timing, so reruns give the same bits. A row layer's weights are (I, O)
 * (networks/graph/summands.h): they, or their gradient, are transposed at the end of scratch. */
#include "exec/device/cpu/cpu_train.h"

#include "plan/memory/memory_device.h"

/* --- weights of a row layer --- */

static bool is_turned(const hp_bound *b) {
    return b->layer->tp == (int32_t)HP_TP_ROW;
}

/* Bytes of scratch without the transposed weights. */
static int64_t scratch_of(const hp_bound *b) {
    return b->scratch.bytes - hp_turned_bytes(b->layer, &b->shape);
}

static float *turned_room(const hp_bound *b) {
    return (float *)(void *)((unsigned char *)b->scratch.at + scratch_of(b));
}

/* (O, I). */
static const float *weights_of(const hp_bound *b) {
    const int ins = b->shape.ic, outs = b->shape.oc;
    const float *w = b->param[0];
    float *t = turned_room(b);
    if (!is_turned(b)) return w;
    for (int o = 0; o < outs; o++)
        for (int i = 0; i < ins; i++) t[(int64_t)o * ins + i] = w[(int64_t)i * outs + o];
    return t;
}

/* Where the gradient is computed, as (O, I); a row layer's is then transposed into its place. */
static float *gradient_of(const hp_bound *b) {
    return is_turned(b) ? turned_room(b) : b->grad[0];
}

static void put_gradient(const hp_bound *b) {
    const int ins = b->shape.ic, outs = b->shape.oc;
    const bool add = b->task->flags & HP_FLAG_ADD;
    const float *t = turned_room(b);
    float *to = b->grad[0];
    for (int i = 0; is_turned(b) && i < ins; i++)
        for (int o = 0; o < outs; o++, to++) *to = (add ? *to : 0) + t[(int64_t)o * ins + i];
}

/* --- kernels --- */

static bool has_bias(const hp_bound *b) {
    return b->layer->n_param > 1;
}

/* The shape whose forward pass equals this shape's backward pass (3x3, stride 1). */
static hp_shape reversed(const hp_shape *s) {
    hp_shape r = *s;
    r.ih = s->oh;
    r.iw = s->ow;
    r.ic = s->oc;
    r.oh = s->ih;
    r.ow = s->iw;
    r.oc = s->ic;
    r.ph = 2 - s->ph;
    r.pw = 2 - s->pw;
    return r;
}

/* The plan and this program must agree on our own kernels' scratch. */
static hp_status check_scratch(const hp_device *d, const hp_bound *b, hp_error *err) {
    const int64_t need =
        hp_scratch_bytes(d->config.graph, b->layer_id, (hp_task_op)b->task->op, &b->shape, HP_F32);
    if (need <= b->scratch.bytes) return HP_OK;
    return hp_fail(err, HP_EPLAN,
                   "layer %s needs %lld bytes of scratch, the plan has %lld: plan again with this version",
                   b->layer->name, (long long)need, (long long)b->scratch.bytes);
}

static hp_conv_choice *choice_of(hp_device *d, const hp_bound *b) {
    return &d->conv[hp_cpu_task_of(d, b)];
}

/* Offset in scratch of a repacked task's weights: after the library's own scratch. */
static int64_t repack_at(const hp_onednn_kernel *k) {
    return (hp_onednn_kernel_scratch_bytes(k) + 63) / 64 * 64;
}

/* The layer's pack has the layout of its first task. A task of another geometry may need another layout. */
static void agree_on_pack(hp_device *d, const hp_bound *b, hp_conv_choice *c, bool backward) {
    hp_onednn_kernel **first = &d->packed[backward][b->layer_id];
    if (!*first) *first = c->library;
    c->repack = !hp_onednn_same_layout(*first, c->library);
    if (c->repack && repack_at(c->library) + hp_onednn_kernel_pack_bytes(c->library) > scratch_of(b))
        c->library = NULL;
}

static hp_status find(hp_device *d, const hp_bound *b, hp_onednn_kind kind, hp_error *err) {
    hp_conv_choice *c = choice_of(d, b);
    const bool backward = kind == HP_ONEDNN_BACKWARD_DATA;
    const hp_onednn_limits limits = {backward ? b->pack.backward_bytes : b->pack.forward_bytes,
                                     scratch_of(b)};
    HP_TRY(hp_onednn_kernel_find(d->library, kind, &b->shape, has_bias(b) && !backward, limits, &c->library,
                                 err));
    if (c->library) agree_on_pack(d, b, c, backward);
    return HP_OK;
}

hp_status hp_cpu_conv_prepare(hp_device *d, const hp_bound *b, hp_error *err) {
    const int op = b->task->op;
    hp_conv_choice *c = choice_of(d, b);
    c->winograd = hp_conv_winograd_part(d->config.graph, b->layer_id, &b->shape);
    if (op == HP_TASK_PACK) return HP_OK;
    if (op == HP_TASK_BWDW) {
        HP_TRY(check_scratch(d, b, err));
        return hp_cpu_gradient_prepare(d, b, scratch_of(b), err);
    }
    if (c->winograd) return check_scratch(d, b, err);
    if (op == HP_TASK_FWD) return find(d, b, HP_ONEDNN_FORWARD, err);
    return b->pack.backward ? find(d, b, HP_ONEDNN_BACKWARD_DATA, err) : HP_OK;
}

hp_status hp_cpu_pack(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    float *const packs[2] = {b->pack.forward, b->pack.backward};
    for (int i = 0; i < 2; i++) {
        hp_onednn_kernel *library = d->packed[i][b->layer_id];
        if (!packs[i]) continue;
        if (choice_of(d, b)->winograd)
            d->kernels->conv.wino_pack(packs[i], b->param[0], b->shape.oc, b->shape.ic, i > 0);
        else if (library)
            HP_TRY(hp_onednn_pack(library, weights_of(b), packs[i], err));
    }
    return HP_OK;
}

/* Returns the weights in the layout of the task's kernel. */
static hp_status packed_weights(const hp_conv_choice *c, const hp_bound *b, const float *pack,
                                const float **weights, hp_error *err) {
    *weights = pack;
    if (!c->repack) return HP_OK;
    float *own = (float *)((unsigned char *)b->scratch.at + repack_at(c->library));
    *weights = own;
    return hp_onednn_pack(c->library, weights_of(b), own, err);
}

static hp_status library_forward(const hp_conv_choice *c, const hp_bound *b, const float *bias,
                                 hp_error *err) {
    const float *weights;
    HP_TRY(packed_weights(c, b, b->pack.forward, &weights, err));
    return hp_onednn_forward(c->library, b->y, b->x[0], weights, bias, b->scratch.at, err);
}

hp_status hp_cpu_conv_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    const hp_conv_choice *c = choice_of(d, b);
    const float *bias = has_bias(b) ? b->param[1] : NULL;
    if (c->library) return library_forward(c, b, bias, err);
    if (c->winograd)
        d->kernels->conv.wino(b->y, b->x[0], b->pack.forward, bias, &b->shape, b->scratch.at);
    else
        d->kernels->conv.any(b->y, b->x[0], weights_of(b), bias, &b->shape);
    return HP_OK;
}

static hp_status library_backward(const hp_conv_choice *c, const hp_bound *b, hp_error *err) {
    const float *weights;
    HP_TRY(packed_weights(c, b, b->pack.backward, &weights, err));
    return hp_onednn_backward_data(c->library, b->dx[0], b->dy, weights, b->scratch.at, err);
}

hp_status hp_cpu_conv_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    const hp_conv_choice *c = choice_of(d, b);
    const hp_shape back = reversed(&b->shape);
    if (c->library) return library_backward(c, b, err);
    if (c->winograd)
        d->kernels->conv.wino(b->dx[0], b->dy, b->pack.backward, NULL, &back, b->scratch.at);
    else
        d->kernels->conv.any_bwd(b->dx[0], b->dy, weights_of(b), &b->shape);
    return HP_OK;
}

hp_status hp_cpu_conv_bwdw(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    const hp_shape *g = &b->shape;
    const bool add = b->task->flags & HP_FLAG_ADD;
    HP_TRY(hp_cpu_gradient(d, b, gradient_of(b), add && !is_turned(b), err));
    put_gradient(b);
    if (has_bias(b)) d->kernels->sum.rows(b->grad[1], b->dy, g->n * g->oh * g->ow, g->oc, add);
    return HP_OK;
}

const char *hp_cpu_kernel_name(const hp_device *d, int task) {
    const hp_bound *b = &d->bound[task];
    const hp_conv_choice *c = &d->conv[task];
    if (!b->layer || b->layer->op != HP_CONV) return "own";
    if (c->winograd) return "own winograd F(2x2,3x3)";
    if (c->gemm_gradient) return "own matrix product";
    return c->library ? hp_onednn_kernel_name(c->library) : "own any";
}
