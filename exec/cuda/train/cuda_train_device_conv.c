/* cuda_train_device_conv.c - convolutions, transposed convolutions and dense layers: a library's plan for
 * each task, weights in the layout that it reads, and the weights' gradient back in the canonical layout.
 *
 * A transposed convolution maps its output to its input: its forward pass is that convolution's data
 * gradient, its backward pass the forward convolution. A dense layer's weights are packed as those of a
 * convolution whose kernel covers the whole input, so that it multiplies (N, H*W*C) in place. */
#include "exec/cuda/train/cuda_train_device.h"
#include "exec/cuda/dnn/dnn_layer.h"
#include "exec/cuda/dnn/lt.h"

typedef struct product {
    hp_dnn_plan *conv; /* one of the two */
    hp_lt_plan *dense;
    hp_dtype dtype, gradient; /* type of activations, and of the library's weight gradient */
    bool add_bias;            /* after the plan, which does not add it */
    int64_t own;              /* bytes of own scratch, in front of the workspace */
} product;

static bool has_bias(const hp_bound *b) {
    return b->layer->n_param > 1;
}

static bool is_forward(const hp_bound *b) {
    return b->task->op == HP_TASK_FWD;
}

/* --- weights --- */

static hp_status run_pack(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_gpu_weights w = hp_gpu_weights_of(b->layer, &b->shape);
    void *const packs[2] = {b->pack.forward, b->pack.backward};
    for (int i = 0; i < 2; i++)
        if (packs[i] && (i == 0 || packs[1] != packs[0]))
            HP_CUDA(hp_cuda_pack(hp_cuda_elements(d, b), packs[i], b->param[0], w.outer, w.ins, w.taps,
                                 d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_prepare_pack(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    const int64_t bytes = hp_gpu_weight_elems(b->layer, &b->shape) * hp_dtype_bytes(hp_cuda_elements(d, b));
    const int64_t room[2] = {b->pack.forward_bytes, b->pack.backward_bytes};
    for (int i = 0; i < 2; i++)
        if (room[i] > 0 && room[i] < bytes)
            return hp_fail(err, HP_EPLAN,
                           "the packed weights of layer %s need %lld bytes: plan again for cuda",
                           b->layer->name, (long long)bytes);
    *l = (hp_cuda_launch){.run = run_pack, .name = "own"};
    return HP_OK;
}

/* Both directions read the same layout. */
static void *weights_of(const hp_bound *b) {
    return !is_forward(b) && b->pack.backward ? b->pack.backward : b->pack.forward;
}

static hp_status check_pack(const hp_bound *b, hp_error *err) {
    if (b->task->op == HP_TASK_BWDW || weights_of(b)) return HP_OK;
    return hp_fail(err, HP_EPLAN, "layer %s has no packed weights: plan again for cuda", b->layer->name);
}

/* --- running --- */

static hp_status run_plan(const product *p, hp_dnn_data *data, const hp_bound *b, hp_error *err) {
    data->workspace = (unsigned char *)b->scratch.at + p->own;
    return p->dense ? hp_lt_run(p->dense, data, err) : hp_dnn_run(p->conv, data, err);
}

static hp_status run_forward(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const product *p = self;
    const bool back = b->layer->op == HP_CONVT;
    const float *bias = has_bias(b) ? b->param[1] : NULL;
    hp_dnn_data data = {.x = back ? b->y : b->x[0],
                        .w = weights_of(b),
                        .y = back ? b->x[0] : b->y,
                        .bias = has_bias(b) ? b->param[1] : NULL};
    HP_TRY(run_plan(p, &data, b, err));
    if (p->add_bias)
        HP_CUDA(hp_cuda_bias(p->dtype, b->y, bias, hp_cuda_pixels(&b->shape), b->shape.oc, d->cuda->compute));
    return HP_OK;
}

static hp_status run_backward(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)d;
    const bool back = b->layer->op == HP_CONVT;
    hp_dnn_data data = {.x = back ? b->dy : b->dx[0], .w = weights_of(b), .y = back ? b->dx[0] : b->dy};
    return run_plan(self, &data, b, err);
}

static hp_status run_backward_weights(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const product *p = self;
    const hp_gpu_weights w = hp_gpu_weights_of(b->layer, &b->shape);
    const bool back = b->layer->op == HP_CONVT, add = b->task->flags & HP_FLAG_ADD;
    hp_dnn_data data = {.x = back ? b->dy : b->x[0], .w = b->scratch.at, .y = back ? b->x[0] : b->dy};
    HP_TRY(run_plan(p, &data, b, err));
    HP_CUDA(hp_cuda_unpack(p->gradient, b->grad[0], b->scratch.at, w.outer, w.ins, w.taps, add,
                           d->cuda->compute));
    if (has_bias(b)) /* reuses the scratch of the weights' gradient */
        HP_CUDA(hp_cuda_bias_gradient(p->dtype, b->grad[1], b->dy, hp_cuda_pixels(&b->shape), b->shape.oc,
                                      add, b->scratch.at, d->cuda->compute));
    return HP_OK;
}

static hp_cuda_launch_fn *const runs[HP_TASK_OPS] = {
    [HP_TASK_FWD] = run_forward, [HP_TASK_BWD] = run_backward, [HP_TASK_BWDW] = run_backward_weights};

/* --- preparing --- */

static hp_status new_product(hp_device *d, const hp_bound *b, product **p, hp_error *err) {
    *p = HP_NEW(d->arena, product, 1);
    (*p)->dtype = (*p)->gradient = hp_cuda_elements(d, b);
    (*p)->own = hp_cuda_own_scratch(d, b);
    HP_TRY(hp_cuda_check_scratch(b, (*p)->own, err));
    return check_pack(b, err);
}

/* `m`: rows of inputs, one per sample or per pixel. */
static hp_status prepare_dense(hp_device *d, const hp_bound *b, product *p, int64_t m, int64_t k,
                               hp_cuda_launch *l, hp_error *err) {
    static const hp_lt_kind kinds[HP_TASK_OPS] = {
        [HP_TASK_FWD] = HP_LT_FORWARD, [HP_TASK_BWD] = HP_LT_DGRAD, [HP_TASK_BWDW] = HP_LT_WGRAD};
    if (b->task->op == HP_TASK_BWDW) p->gradient = HP_F32;
    const hp_lt_product c = {.kind = kinds[b->task->op],
                             .dtype = p->dtype,
                             .result = p->gradient,
                             .math = hp_dnn_math_of(d->config.graph->prec),
                             .m = m,
                             .n = b->shape.oc,
                             .k = k};
    HP_TRY(hp_lt_plan_product(d->lt, &c, b->scratch.bytes - p->own, &p->dense, err));
    p->add_bias = is_forward(b) && has_bias(b);
    *l = (hp_cuda_launch){runs[b->task->op], p, "cublasLt"};
    return HP_OK;
}

/* Is it a 16-bit matrix product whose rows are not multiples of 16 bytes, such as scores over 50257 words?
 * For its weight gradient cuDNN 9.19 names only the generic engine on an H100. */
static bool is_odd_matrix(const hp_dnn_conv *c) {
    return c->kh == 1 && c->kw == 1 && c->stride_h == 1 && c->stride_w == 1 && c->groups == 1 &&
           c->ih == c->oh && c->iw == c->ow && c->pad.top == 0 && c->pad.left == 0 && c->dtype != HP_F32 &&
           (c->ic % 8 != 0 || c->oc % 8 != 0);
}

hp_status hp_cuda_prepare_conv(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    product *p;
    HP_TRY(new_product(d, b, &p, err));
    hp_dnn_conv c = hp_dnn_conv_of(d, b, b->task->op);
    c.dtype = p->dtype;
    if (b->layer->op == HP_CONV && is_odd_matrix(&c))
        return prepare_dense(d, b, p, hp_cuda_pixels(&b->shape), c.ic, l, err);
    c.bias = c.kind == HP_DNN_FORWARD && is_forward(b) && has_bias(b);
    HP_TRY(hp_dnn_plan_conv(d->dnn, &c, b->scratch.bytes - p->own, &p->conv, err));
    p->add_bias = is_forward(b) && has_bias(b) && !(c.bias && hp_dnn_plan_fused(p->conv));
    *l = (hp_cuda_launch){runs[b->task->op], p, hp_dnn_plan_name(p->conv)};
    return HP_OK;
}

hp_status hp_cuda_prepare_linear(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    const hp_shape *s = &b->shape;
    product *p;
    HP_TRY(new_product(d, b, &p, err));
    return prepare_dense(d, b, p, s->n, (int64_t)s->ih * s->iw * s->ic, l, err);
}
