/* simplify.h - functions shared by the rewriting passes. */
#ifndef HP_ONNX_SIMPLIFY_H
#define HP_ONNX_SIMPLIFY_H

#include "plan/onnx/inside.h"

typedef struct onnx_passes {
    onnx_reader *r;
    int32_t *uses; /* per tensor: number of layers that read it; the output counts two more */
    int32_t *as;   /* per tensor: the tensor that replaces it */
    bool *owned;   /* per parameter: its data is a copy and may be changed */
    int32_t n_owned;
} onnx_passes;

/* The layer that computes the tensor. */
hp_layer *onnx_maker(const onnx_passes *p, int32_t tensor);
/* The parameter's data, copied so that they may be changed; NULL when they are not known. */
float *onnx_own(onnx_passes *p, int32_t param);
/* Adds a bias of zeros; `known`: with data. */
void onnx_add_bias(onnx_passes *p, hp_layer *l, bool known, int64_t channels);
/* Folds scales into the convolutions and linear layers that read them (fold/forward.c). */
void onnx_scales_forward(onnx_passes *p, int32_t output);

#endif
