/* cuda_infer_device_real.c - prepares matrix layers of floats.
 *
 * cuDNN computes them; cuBLASLt does if the layer is a plain matrix product for which cuDNN has no engine, or
 * only slow ones (strict float32). Own kernels then do what the library does not fuse. If neither library
 * computes it as asked, infer/real.cu does. The pack holds weights as a library reads them, (outer, taps,
 * inner) in the input's type, then the biases. */
#include "exec/cuda/infer/cuda_infer_device.h"
#include "exec/cuda/dnn/dnn_layer.h"
#include "exec/cuda/dnn/lt.h"
#include "exec/base/half.h"
#include "networks/graph/acts.h"

#include <stdlib.h>
#include <string.h>

typedef struct product {
    hp_dnn_plan *conv; /* at most one of these; both NULL: own kernel */
    hp_lt_plan *dense;
    hp_dnn_data data;
    hp_cuda_real own;
    bool finishes;          /* after the library */
    const float *left_bias; /* bias that the library did not add, or NULL */
} product;

/* --- running --- */

static hp_status run_library(const product *p, hp_error *err) {
    return p->dense ? hp_lt_run(p->dense, &p->data, err) : hp_dnn_run(p->conv, &p->data, err);
}

static hp_status run_real(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const product *p = self;
    const hp_shape *s = &b->shape;
    if (b->out_elems == 0) return HP_OK;
    if (!p->conv && !p->dense) {
        HP_CUDA(hp_cuda_conv_real(&p->own, d->cuda->compute));
        return HP_OK;
    }
    HP_TRY(run_library(p, err));
    if (p->finishes)
        HP_CUDA(
            hp_cuda_finish_real(&p->own.finish, p->left_bias, s->n * s->oh * s->ow, s->oc, d->cuda->compute));
    return HP_OK;
}

/* --- constants --- */

static void store_weight(unsigned char *to, int64_t at, float v, hp_dtype dtype) {
    if (dtype == HP_BF16)
        ((uint16_t *)(void *)to)[at] = to_bf16(v);
    else if (dtype == HP_F16)
        ((uint16_t *)(void *)to)[at] = to_f16(v);
    else
        memcpy(to + at * (int64_t)sizeof v, &v, sizeof v);
}

/* Canonical layout: (outer, inner, taps); transposed layers: (inputs, outputs of a group, taps). */
static void pack_weights(const hp_bound *b, unsigned char *to, const float *from) {
    const hp_cuda_taps t = hp_cuda_taps_of(b);
    const int64_t outer = t.transposed ? b->shape.ic : b->shape.oc, taps = (int64_t)t.shape.kh * t.shape.kw;
    const int32_t inner = t.transposed ? t.outs : t.ins;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t tap = 0; tap < taps; tap++)
            for (int32_t i = 0; i < inner; i++)
                store_weight(to, (o * taps + tap) * inner + i, from[(o * inner + i) * taps + tap],
                             b->stored.x[0]);
}

static int64_t bias_place(const hp_bound *b) {
    enum { LINE = 64 };
    const hp_cuda_taps t = hp_cuda_taps_of(b);
    const int64_t bytes = t.groups * t.outs * t.weight_row * hp_dtype_bytes(b->stored.x[0]);
    return (bytes + LINE - 1) / LINE * LINE;
}

static hp_status pack_all(hp_device *d, const hp_bound *b, hp_error *err) {
    const int64_t at = bias_place(b), outs = 4 * (int64_t)b->shape.oc;
    hp_filter f;
    if (d->packed[b->layer_id]) return hp_cuda_upload(d, b, NULL, at + outs, err);
    HP_TRY(hp_constants_filter(d->config.constants, b->layer_id, b->shape.oc0, b->shape.oc, false, &f, err));
    unsigned char *pack = calloc(1, (size_t)(at + outs));
    HP_ASSERT(pack);
    pack_weights(b, pack, f.weight);
    if (f.bias) memcpy(pack + at, f.bias, (size_t)outs);
    const hp_status s = hp_cuda_upload(d, b, pack, at + outs, err);
    free(pack);
    return s;
}

/* --- libraries --- */

static hp_dnn_conv convolution_of(const hp_device *d, const hp_bound *b) {
    hp_dnn_conv c = hp_dnn_conv_of(d, b, HP_TASK_FWD);
    c.dtype = (int32_t)b->stored.x[0];
    c.bias = b->layer->op != HP_CONVT;
    c.add = b->layer->op != HP_CONVT && hp_layer_adds(b->layer);
    return c;
}

static bool fused_act(int act) {
    return act == HP_ACT_NONE || act == HP_ACT_RELU || act == HP_ACT_RELU6;
}

/* Own kernels handle an output type other than the input's, negative padding, and additions to a
 * transposed convolution. */
static bool is_for_dnn(const hp_bound *b, const hp_dnn_conv *c) {
    const bool padded = c->pad.top >= 0 && c->pad.left >= 0 && c->pad.bottom > -c->stride_h &&
                        c->pad.right > -c->stride_w && c->pad.top <= (c->kh - 1) * c->dil_h &&
                        c->pad.left <= (c->kw - 1) * c->dil_w;
    return padded && b->stored.x[0] == b->stored.y && !(c->kind == HP_DNN_DGRAD && hp_layer_adds(b->layer));
}

static int32_t alignment_of(const hp_bound *b) {
    enum { MOST = 16 };
    const uintptr_t at = (uintptr_t)b->x[0] | (uintptr_t)b->y | MOST;
    return (int32_t)(at & (~at + 1));
}

/* The library must fuse an addition, because its result overwrites the addend. */
static void try_dnn(hp_device *d, const hp_bound *b, product *p) {
    hp_error refused;
    hp_dnn_conv c = convolution_of(d, b);
    const bool acts = fused_act(b->layer->act) && c.kind == HP_DNN_FORWARD;
    if (!is_for_dnn(b, &c)) return;
    c.act = acts ? b->layer->act : HP_ACT_NONE;
    c.alignment = alignment_of(b);
    if (hp_dnn_plan_conv(d->dnn, &c, b->scratch.bytes, &p->conv, &refused) != HP_OK) {
        p->conv = NULL;
        return;
    }
    const bool fused = c.kind == HP_DNN_FORWARD && hp_dnn_plan_fused(p->conv);
    if (c.add && !fused) p->conv = NULL;
    p->left_bias = fused ? NULL : p->own.bias;
    p->finishes = !fused || !acts;
    const bool back = c.kind == HP_DNN_DGRAD;
    p->data = (hp_dnn_data){.x = back ? b->y : b->x[0],
                            .w = b->pack.forward,
                            .y = back ? b->x[0] : b->y,
                            .z = c.add ? b->y : NULL,
                            .bias = back ? NULL : (void *)(uintptr_t)p->own.bias,
                            .workspace = b->scratch.at};
}

/* The addend is in the result, to which the library adds the product: only in float32, where
 * nothing is rounded twice. */
static void try_lt(hp_device *d, const hp_bound *b, product *p) {
    const hp_shape *s = &b->shape;
    const bool wide = b->stored.y == HP_F32, adds = hp_layer_adds(b->layer);
    hp_error refused;
    const hp_lt_product c = {.kind = HP_LT_FORWARD,
                             .dtype = b->stored.x[0],
                             .result = b->stored.y,
                             .math = hp_dnn_math_of(d->config.graph->prec),
                             .m = s->n * s->oh * s->ow,
                             .n = s->oc,
                             .k = (int64_t)s->kh * s->kw * s->ic,
                             .bias = wide,
                             .add = adds,
                             .inputs_first = b->layer->op == HP_CONVT};
    if (!hp_cuda_is_product(b) || alignment_of(b) != 16 || (!wide && (adds || b->stored.x[0] != b->stored.y)))
        return;
    if (hp_lt_plan_product(d->lt, &c, b->scratch.bytes, &p->dense, &refused) != HP_OK) {
        p->dense = NULL;
        return;
    }
    p->left_bias = wide ? NULL : p->own.bias;
    p->finishes = !wide || b->layer->act != HP_ACT_NONE;
    p->data = (hp_dnn_data){.x = b->x[0],
                            .w = b->pack.forward,
                            .y = b->y,
                            .bias = (void *)(uintptr_t)p->own.bias,
                            .workspace = b->scratch.at};
}

/* cuDNN's strict float32 engines reach only 13 to 28 Tflop/s in 1 x 1 products on an H100 (cuDNN 9.19). */
static bool is_strict(const hp_device *d, const hp_bound *b) {
    return b->stored.x[0] == HP_F32 && b->stored.y == HP_F32 &&
           hp_dnn_math_of(d->config.graph->prec) == HP_DNN_STRICT;
}

/* --- preparing --- */

static void set_own(hp_device *d, const hp_bound *b, product *p) {
    const hp_infer in = hp_cuda_infer_of(d);
    const hp_infer_op op = hp_matrix_op(&in, b);
    p->own.taps = hp_cuda_taps_of(b);
    p->own.x_dtype = b->stored.x[0];
    p->own.bias = (const float *)(void *)((unsigned char *)b->pack.forward + bias_place(b));
    p->own.finish = hp_cuda_finish_of(b, &op, &(hp_matrix_units){.hi8 = 255});
}

static const char *name_of(const product *p) {
    return p->dense ? "cublasLt" : p->conv ? hp_dnn_plan_name(p->conv) : "own";
}

hp_status hp_cuda_infer_real(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    product *p = HP_NEW(d->arena, product, 1);
    *l = (hp_cuda_launch){run_real, p, "own"};
    if (b->out_elems == 0) return HP_OK;
    if (b->stored.y == HP_U8)
        return hp_fail(err, HP_EUNAVAIL, "layer %s: the cuda device makes no bytes of numbers in one layer",
                       b->layer->name);
    HP_TRY(pack_all(d, b, err));
    set_own(d, b, p);
    const bool dense_first = is_strict(d, b) || b->layer->op == HP_LINEAR;
    if (dense_first) try_lt(d, b, p);
    if (!p->dense && b->layer->op != HP_LINEAR) try_dnn(d, b, p);
    if (!p->dense && !p->conv && !dense_first) try_lt(d, b, p);
    l->name = name_of(p);
    return HP_OK;
}
