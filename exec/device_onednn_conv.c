/* device_onednn_conv.c - convolution tasks: Winograd where the rule of plan/device_memory.h says
 * so, else oneDNN's first acceptable kernel, else our own that takes any shape. The choice depends on the
 * shape and the processor alone, never on a timing, so that reruns give the same bits. */
#include "exec/device_onednn.h"

#include "plan/device_memory.h"

static bool has_bias(const hp_bound *b) {
    return b->layer->n_param > 1;
}

/* The shape whose forward pass is this shape's backward pass (3x3, stride 1). */
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

/* The plan and this program must count our own kernels' scratch alike. */
static hp_status check_scratch(const hp_device *d, const hp_bound *b, hp_error *err) {
    const int64_t need =
        hp_scratch_bytes(d->config.graph, b->layer_id, (hp_task_op)b->task->op, &b->shape, HP_F32);
    if (need <= b->scratch_bytes) return HP_OK;
    return hp_fail(err, HP_EPLAN,
                   "layer %s needs %lld bytes of scratch, the plan has %lld: plan again with this version",
                   b->layer->name, (long long)need, (long long)b->scratch_bytes);
}

static int64_t pack_bytes(const hp_device *d, const hp_bound *b, bool backward) {
    const int32_t *ids = backward ? d->config.role->pack_backward : d->config.role->pack_forward;
    return ids[b->layer_id] < 0 ? 0 : d->config.role->buffer[ids[b->layer_id]].bytes;
}

static hp_status find(hp_device *d, const hp_bound *b, hp_conv_choice *c, hp_onednn_kind kind,
                      hp_error *err) {
    const hp_onednn_limits limits = {pack_bytes(d, b, kind == HP_ONEDNN_BACKWARD_DATA), b->scratch_bytes};
    return hp_onednn_kernel_find(d->library, kind, &b->shape, has_bias(b), limits, &c->library[kind], err);
}

hp_status hp_cpu_conv_prepare(hp_device *d, const hp_bound *b, hp_error *err) {
    hp_conv_choice *c = &d->conv[b->layer_id];
    if (hp_conv_winograd(d->config.graph, b->layer_id)) {
        c->winograd = true;
        return check_scratch(d, b, err);
    }
    c->gemm_gradient = hp_conv_gemm_gradient(d->config.graph, b->layer_id);
    if (c->gemm_gradient && b->task->op == HP_TASK_BWDW) HP_TRY(check_scratch(d, b, err));
    if (c->ready) return HP_OK;
    c->ready = true;
    HP_TRY(find(d, b, c, HP_ONEDNN_FORWARD, err));
    if (d->config.program->mode != HP_MODE_TRAIN) return HP_OK;
    if (!c->gemm_gradient) HP_TRY(find(d, b, c, HP_ONEDNN_BACKWARD_WEIGHTS, err));
    return b->pack_backward ? find(d, b, c, HP_ONEDNN_BACKWARD_DATA, err) : HP_OK;
}

hp_status hp_cpu_pack(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    const hp_conv_choice *c = &d->conv[b->layer_id];
    float *const packs[2] = {b->pack_forward, b->pack_backward};
    for (int i = 0; i < 2; i++) {
        if (!packs[i]) continue;
        if (c->winograd)
            d->kernels->conv.wino_pack(packs[i], b->param[0], b->shape.oc, b->shape.ic, i > 0);
        else if (c->library[i])
            HP_TRY(hp_onednn_pack(c->library[i], b->param[0], packs[i], err));
    }
    return HP_OK;
}

hp_status hp_cpu_conv_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    const hp_conv_choice *c = &d->conv[b->layer_id];
    const float *bias = has_bias(b) ? b->param[1] : NULL;
    if (c->winograd)
        d->kernels->conv.wino(b->y, b->x[0], b->pack_forward, bias, &b->shape, b->scratch);
    else if (c->library[HP_ONEDNN_FORWARD])
        return hp_onednn_forward(c->library[HP_ONEDNN_FORWARD], b->y, b->x[0], b->pack_forward, bias,
                                 b->scratch, err);
    else
        d->kernels->conv.any(b->y, b->x[0], b->param[0], bias, &b->shape);
    return HP_OK;
}

hp_status hp_cpu_conv_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    const hp_conv_choice *c = &d->conv[b->layer_id];
    const hp_shape back = reversed(&b->shape);
    if (c->winograd)
        d->kernels->conv.wino(b->dx[0], b->dy, b->pack_backward, NULL, &back, b->scratch);
    else if (c->library[HP_ONEDNN_BACKWARD_DATA])
        return hp_onednn_backward_data(c->library[HP_ONEDNN_BACKWARD_DATA], b->dx[0], b->dy, b->pack_backward,
                                       b->scratch, err);
    else
        d->kernels->conv.any_bwd(b->dx[0], b->dy, b->param[0], &b->shape);
    return HP_OK;
}

hp_status hp_cpu_conv_bwdw(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    const hp_conv_choice *c = &d->conv[b->layer_id];
    const hp_shape *g = &b->shape;
    const bool add = b->task->flags & HP_FLAG_ADD;
    if (c->library[HP_ONEDNN_BACKWARD_WEIGHTS])
        return hp_onednn_backward_weights(c->library[HP_ONEDNN_BACKWARD_WEIGHTS], b->grad[0],
                                          has_bias(b) ? b->grad[1] : NULL, b->x[0], b->dy, add, b->scratch,
                                          err);
    if (c->winograd)
        d->kernels->conv.wino_bwdw(b->grad[0], b->x[0], b->dy, g, add, b->scratch);
    else if (c->gemm_gradient)
        d->kernels->conv.gemm_bwdw(b->grad[0], b->x[0], b->dy, g, add, b->scratch);
    else
        d->kernels->conv.any_bwdw(b->grad[0], b->x[0], b->dy, g, add);
    if (has_bias(b))
        d->kernels->conv.bias_bwd(b->grad[1], b->dy, g->n * g->oh * g->ow, g->oc, add, b->scratch);
    return HP_OK;
}

const char *hp_cpu_kernel_name(const hp_device *d, int task) {
    static const int kinds[HP_TASK_OPS] = {[HP_TASK_FWD] = 1 + HP_ONEDNN_FORWARD,
                                           [HP_TASK_BWD] = 1 + HP_ONEDNN_BACKWARD_DATA,
                                           [HP_TASK_BWDW] = 1 + HP_ONEDNN_BACKWARD_WEIGHTS};
    const hp_bound *b = &d->bound[task];
    const int kind = kinds[b->task->op] - 1;
    if (kind < 0 || b->layer->op != HP_CONV) return "own";
    const hp_conv_choice *c = &d->conv[b->layer_id];
    if (c->winograd) return "own winograd F(2x2,3x3)";
    if (c->gemm_gradient && kind == HP_ONEDNN_BACKWARD_WEIGHTS) return "own matrix product";
    return c->library[kind] ? hp_onednn_kernel_name(c->library[kind]) : "own any";
}
