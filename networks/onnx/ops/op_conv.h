/* op_conv.h - convolutions and linear layers, also used for quantised ones. */
#ifndef HP_OP_CONV_H
#define HP_OP_CONV_H

#include "networks/onnx/onnx_inside.h"

/* The node's convolution of `tensor`, which has x's layout. w: (O, I/groups, k...); bias may be NULL. */
hp_status onnx_conv_with(onnx_call *c, const onnx_value *x, int32_t tensor, const onnx_const *w,
                         const onnx_const *bias);
/* x w + bias over x's last dimension(s). w: (I, O), or (O, I) if outs_first; times factor. */
hp_status onnx_linear_with(onnx_call *c, const onnx_value *x, int32_t tensor, const onnx_const *w,
                           bool outs_first, double factor, const onnx_const *bias);

#endif
