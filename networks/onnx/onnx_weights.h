/* onnx_weights.h - converts constants to parameters of convolutions and linear layers. */
#ifndef HP_ONNX_WEIGHTS_H
#define HP_ONNX_WEIGHTS_H

#include "networks/onnx/onnx_inside.h"

hp_onnx_param onnx_weights_conv(const onnx_call *c, const onnx_const *k);  /* (O, I/groups, ...) */
hp_onnx_param onnx_weights_convt(const onnx_call *c, const onnx_const *k); /* (I, O/groups, ...) */
/* Converts a matrix, (outs, ins) if outs_first, otherwise (ins, outs), to (O, I) times factor. place[i]:
 * position of input i in the model's order; NULL: i. */
hp_onnx_param onnx_weights_matrix(const onnx_call *c, const onnx_const *k, bool outs_first,
                                  const int32_t *place, double factor);

#endif
