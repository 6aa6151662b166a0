/* op_window.h - the windows of convolutions and pools, from the nodes' attributes. */
#ifndef HP_OP_WINDOW_H
#define HP_OP_WINDOW_H

#include "networks/onnx/onnx_inside.h"

/* Along H and W; a model with one spatial dimension has windows of 1 along W. */
typedef struct onnx_window {
    int n; /* spatial dimensions of the model: 1 or 2 */
    int64_t in[2], k[2], stride[2], dil[2], begin[2], end[2], out[2];
} onnx_window;

/* Reads strides, dilations and kernel_shape. `kernel` is the weights' shape; if NULL, the attribute is
 * required. */
hp_status onnx_window_read(const onnx_call *c, const onnx_value *x, const int64_t *kernel, onnx_window *w);
/* Paddings and output sizes of a convolution or pool. */
hp_status onnx_window_pads(const onnx_call *c, bool ceil_mode, onnx_window *w);
/* The same for a transposed convolution. */
hp_status onnx_window_transposed(const onnx_call *c, onnx_window *w);
/* A layer with these windows; output sizes are set if symmetric padding does not give them. */
hp_layer onnx_window_layer(hp_layer_op op, int32_t x, const onnx_window *w);

#endif
