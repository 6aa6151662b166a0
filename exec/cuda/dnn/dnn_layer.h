/* dnn_layer.h - a layer's task as a cuDNN convolution. */
#ifndef HP_DNN_LAYER_H
#define HP_DNN_LAYER_H

#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "exec/cuda/dnn/dnn.h"

/* Rows or columns of padding after the last window; negative: trailing inputs that no window reads. */
static inline int32_t hp_dnn_behind(int out, int stride, int kernel, int dilation, int before, int in) {
    return (out - 1) * stride + (kernel - 1) * dilation + 1 - before - in;
}

/* A transposed convolution maps its output to its input: its forward pass is that convolution's
 * data gradient, its backward pass the forward convolution. op: the task's. The caller sets dtype,
 * bias, add and act. */
static inline hp_dnn_conv hp_dnn_conv_of(const hp_device *d, const hp_bound *b, int op) {
    static const hp_dnn_kind kinds[2][HP_TASK_OPS] = {
        {[HP_TASK_FWD] = HP_DNN_FORWARD, [HP_TASK_BWD] = HP_DNN_DGRAD, [HP_TASK_BWDW] = HP_DNN_WGRAD},
        {[HP_TASK_FWD] = HP_DNN_DGRAD, [HP_TASK_BWD] = HP_DNN_FORWARD, [HP_TASK_BWDW] = HP_DNN_WGRAD}};
    const hp_shape *s = &b->shape;
    const bool back = b->layer->op == HP_CONVT;
    hp_dnn_conv c = {.kind = (int32_t)kinds[back][op],
                     .math = (int32_t)hp_dnn_math_of(d->config.graph->prec),
                     .n = s->n,
                     .ih = back ? s->oh : s->ih,
                     .iw = back ? s->ow : s->iw,
                     .ic = back ? s->oc : s->ic,
                     .oh = back ? s->ih : s->oh,
                     .ow = back ? s->iw : s->ow,
                     .oc = back ? s->ic : s->oc,
                     .kh = s->kh,
                     .kw = s->kw,
                     .stride_h = s->sh,
                     .stride_w = s->sw,
                     .dil_h = s->dh,
                     .dil_w = s->dw,
                     .groups = s->groups > 0 ? s->groups : 1,
                     .pad.top = s->ph,
                     .pad.left = s->pw};
    c.pad.bottom = hp_dnn_behind(c.oh, s->sh, s->kh, s->dh, s->ph, c.ih);
    c.pad.right = hp_dnn_behind(c.ow, s->sw, s->kw, s->dw, s->pw, c.iw);
    return c;
}

#endif
