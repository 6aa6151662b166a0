/* onnx.h - reads ONNX models (opsets 7 to 24 of the operators in onnx/onnx_ops.def) as network graphs.
 *
 * The model has one image, (N, C, H, W), also (N, C, L), (N, C) or (N). N is free; the caller gives H and W
 * if the model leaves them open. Its first output is the network's. Layers are named after nodes (or their
 * outputs), parameters after initializers. Affine layers next to a matrix product are folded into it, and
 * hard swish written as four nodes becomes one activation. Files are untrusted. */
#ifndef HP_ONNX_H
#define HP_ONNX_H

#include "networks/graph/graph.h"

/* Data of a graph parameter. */
typedef struct hp_onnx_param {
    const float *data; /* in the layout of graph.h */
    /* 8-bit weights of a quantised model, or NULL: data = data8_scale[output channel] * data8 */
    const int8_t *data8;
    const float *data8_scale;
} hp_onnx_param;

/* A tensor that the model quantises: real = scale * (q - zero), q of 0 .. 255 (signed 8-bit numbers are
 * shifted by 128). */
typedef struct hp_onnx_qparam {
    int32_t tensor;
    float scale;
    int32_t zero;
} hp_onnx_qparam;

/* How ONNX lays out the input or output: its dimensions, and hplan's axes (HP_AXIS_N … of
 * networks/graph/graph.h) in memory order, outermost first. If `quantised`, ONNX's output is the integers
 * round(real / scale) + zero within low .. high; n_scale is 1 or the number of channels. */
typedef struct hp_onnx_layout {
    int32_t n_dim, order[4];
    int64_t dim[8];
    int32_t quantised, n_scale, low, high;
    const double *scale, *zero;
} hp_onnx_layout;

typedef struct hp_onnx_model {
    hp_graph *graph;      /* unfused; net = "onnx:<file>" */
    hp_onnx_param *param; /* per graph parameter; NULL if weights were not requested */
    hp_onnx_qparam *qparam;
    int32_t n_qparam;
    hp_onnx_layout input, output;
    const char *input_name, *output_name;
    int32_t declared_h, declared_w; /* image size in the model; 0: left open */
    int64_t opset, n_node;
    int32_t n_output; /* outputs of the model; the first is the network's */
} hp_onnx_model;

/* image_h, image_w: 0 keeps the model's size. weights: also read parameters. The result lives in `arena`.
 * Errors: HP_EDATA with the file, the node and the fix; HP_EPLAN for an image too small for the network;
 * HP_EUSAGE if neither the model nor the caller gives the image size. */
hp_status hp_onnx_read(hp_arena *arena, const char *path, int image_h, int image_w, bool weights,
                       hp_onnx_model *model, hp_error *err);
/* The same from memory. `structure`: large constants may be missing (onnx_strip); then there are no
 * weights. */
hp_status hp_onnx_parse(hp_arena *arena, const char *name, const void *data, size_t size, bool structure,
                        int image_h, int image_w, bool weights, hp_onnx_model *model, hp_error *err);
/* The model without its large constants: all that hp_onnx_parse needs to build the graph for any image
 * size. */
hp_status hp_onnx_strip(hp_arena *arena, const char *path, void **data, size_t *size, hp_error *err);

#endif
