/* simplify.h - functions shared by the rewriting passes. */
#ifndef HP_SIMPLIFY_H
#define HP_SIMPLIFY_H

#include "networks/onnx/onnx_inside.h"
#include "networks/graph/acts.h"

typedef struct onnx_passes {
    onnx_reader *r;
    int32_t *uses; /* per tensor: number of layers that read it; the output has two more */
    int32_t *as;   /* per tensor: the tensor that replaces it */
    bool *owned;   /* per parameter: its data is a copy and may be changed */
    int32_t n_owned;
} onnx_passes;

/* The maker, if it has this operator, its output has a single reader and the model does not quantise it. */
hp_layer *onnx_sole_maker(const onnx_passes *p, int32_t tensor, hp_layer_op op);
/* Are all elements of the layer's parameter `i` (nearly) this number? */
bool onnx_all_are(const onnx_passes *p, const hp_layer *l, int i, double value);
/* Turns the layer into another one with one input and no parameters; act_a, act_b are 0. */
void onnx_replace_layer(onnx_passes *p, hp_layer *l, hp_layer_op op, hp_act act, int32_t x);
/* A layer that ends an activation's pattern becomes the activation (fold/onnx_fold_acts.c). */
bool onnx_act_pattern(onnx_passes *p, hp_layer *l);
/* Is the layer's weight a table that another layer also reads? */
bool onnx_is_tied(const onnx_passes *p, const hp_layer *l);
/* The parameter's data, copied so that they may be changed; NULL if unknown. */
float *onnx_own(onnx_passes *p, int32_t param);
/* Adds a bias of zeros; `known`: with data. */
void onnx_add_bias(onnx_passes *p, hp_layer *l, bool known, int64_t channels);
/* Folds scales into the convolutions and linear layers that read them (fold/forward.c). */
void onnx_scales_forward(onnx_passes *p, int32_t output);

#endif
