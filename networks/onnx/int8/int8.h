/* int8.h - a quantised model as an int8 program with its own integers, scales and zero points, without
 * calibration.
 *
 * Tensors that the model quantises are stored in 8 bits; everything else stays real. A layer stays real if
 * its output has no scale in the model, its weights are not symmetric 8-bit numbers (-127 .. 127, per output
 * channel), or its input is not quantised. The image stays real if the model rounds it itself. */
#ifndef HP_INT8_H
#define HP_INT8_H

#include "networks/onnx/onnx.h"

typedef struct hp_onnx_int8 {
    const hp_graph *graph;    /* deployed */
    const char *float_layers; /* as hp_deploy_options.float_layers; "" for none */
    int32_t n_weights8;       /* number of layers with the model's integers */
    int32_t n_float;          /* layers in the list */
} hp_onnx_int8;

/* The int8 program's graph of a model that was read with its weights. Lives in `arena`. Errors: HP_EDATA (the
 * model quantises nothing, or nothing that an int8 program can store in 8 bits). */
hp_status hp_onnx_deploy_int8(hp_arena *arena, const hp_onnx_model *m, hp_onnx_int8 *out, hp_error *err);

/* Normalisation of images: real pixel = (x / 255 - mean) / std. */
typedef struct hp_onnx_pixels {
    int32_t n;
    double mean[4], std[4];
} hp_onnx_pixels;

/* Writes the same file as `hplan quantize` (exec/data/weights/quantised.h). `source`: a note on the model's
 * origin. Errors: HP_ECREATE, HP_EIO, HP_EDATA (weights that are not finite). */
hp_status hp_onnx_write_int8(const char *path, const hp_onnx_model *m, const hp_onnx_int8 *p,
                             const hp_onnx_pixels *pixels, const char *source, hp_error *err);

/* Per layer of the deployed graph: its output's scale and zero point in the model; NULL: none. */
const hp_onnx_qparam **hp_onnx_deployed_qparams(hp_arena *arena, const hp_onnx_model *m, const hp_graph *g);
/* Does the int8 file store this layer's weights in 8 bits? */
bool hp_onnx_weights8(const hp_graph *g, int layer);

#endif
