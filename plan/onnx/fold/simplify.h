/* simplify.h - what the rewriting passes share. */
#ifndef HP_ONNX_SIMPLIFY_H
#define HP_ONNX_SIMPLIFY_H

#include "plan/onnx/inside.h"

typedef struct onnx_passes {
    onnx_reader *r;
    int32_t *uses; /* per tensor: layers that read it; of the output two more */
    int32_t *as;   /* per tensor: the one that stands for it now */
    bool *owned;   /* per parameter: its data may be changed */
    int32_t n_owned;
} onnx_passes;

hp_layer *onnx_maker(const onnx_passes *p, int32_t tensor);
/* The parameter's data, ours to change; NULL when they are not known. */
float *onnx_own(onnx_passes *p, int32_t param);
/* A bias of zeros, if it is to be `known`. */
void onnx_add_bias(onnx_passes *p, hp_layer *l, bool known, int64_t channels);
/* Scales into the convolutions and linear layers behind them (fold/forward.c). */
void onnx_scales_forward(onnx_passes *p, int32_t output);

#endif
