/* constants.h - the constants of a deployed network: folded float weights, or 8-bit weights with their
 * scales, and the qparams of every tensor.
 *
 * Sources: weights drawn from a seed (the same as training starts from); a safetensors file with the trained
 * network's names; or a file of `hplan quantize` (8-bit weights, qparams). Batch norms of a safetensors file
 * are folded here: w' = w gamma / sqrt(var + eps), b' = beta + (b - mean) gamma / sqrt(var + eps), in
 * float64, rounded once. 8-bit weights are computed from float sources here: symmetric, per output channel,
 * scale = max|w| / 127. Constants depend only on the source: all ranks get the same bits. */
#ifndef HP_CONSTANTS_H
#define HP_CONSTANTS_H

#include "base/status.h"
#include "networks/graph/dtype.h"
#include "networks/graph/graph.h"

#include <stdbool.h>

/* real = scale * (q - zero), q in 0 .. 255. */
typedef struct hp_qparam {
    float scale;
    int32_t zero;
} hp_qparam;

/* Constants of output channels [first, first + outs) of a layer: conv (outs, I/groups, kh, kw); convt
 * (I, outs, kh, kw), with groups (I, O/groups, kh, kw) and always all channels; linear (outs, I); bn,
 * scale (outs): a factor. If the layer reads raw pixels, 8-bit weights include their scale: (real
 * weight) * pixel_scale[c] = weight_scale[o] * weight8, so real product = weight_scale[o] * weight8 *
 * (q - pixel_zero[c]). */
typedef struct hp_filter {
    const float *weight;       /* NULL if weight8 was requested and exists */
    const int8_t *weight8;     /* -127 .. 127; real weight = weight_scale[o] * weight8 */
    const float *weight_scale; /* (outs) > 0 */
    const float *bias;         /* (outs), real units; NULL: none */
} hp_filter;

typedef struct hp_constants hp_constants;

typedef struct hp_constants_options {
    const hp_graph *graph; /* deployed graph; its parameters are in the network's order, which
                            * determines the draws */
    const char *path;      /* safetensors or quantised file; NULL: drawn from `seed` */
    uint64_t seed;
    int32_t n_mean;         /* length of mean and std: 0 (the quantised file's, otherwise
                             * 0.5), 1 or image_c */
    double mean[4], std[4]; /* real pixel = (x / 255 - mean) / std */
} hp_constants_options;

/* Opens the source. Errors: HP_EDATA (lists what is missing or has another shape; a quantised file with
 * another mean or std). */
hp_status hp_constants_open(const hp_constants_options *o, hp_constants **c, hp_error *err);
/* The same weights and pixels for another deployment of the network, with another precision or image size.
 * The source must be float; changes to weights are not copied. Parameters whose size depends on the image (a
 * linear layer over the whole map) are drawn if it differs. */
hp_status hp_constants_open_as(const hp_constants *c, const hp_graph *graph, hp_constants **other,
                               hp_error *err);
void hp_constants_close(hp_constants *c); /* NULL is fine */
/* Frees the memory used by hp_constants_filter, once all weights are packed. The filter may be read again
 * later. */
void hp_constants_release(hp_constants *c);

/* The deployed graph. */
const hp_graph *hp_constants_graph(const hp_constants *c);

/* Does the tensor have qparams? That is: U8, and not the image. */
bool hp_tensor_wants_qparam(const hp_graph *g, int tensor);
/* Does every U8 tensor of the graph have qparams? */
bool hp_constants_calibrated(const hp_constants *c);
/* Sets the qparams of a U8 tensor other than the image. */
void hp_constants_set_qparam(hp_constants *c, int tensor, hp_qparam q);
/* For a U8 tensor other than the image; its qparams must be set. */
hp_qparam hp_constants_qparam(const hp_constants *c, int tensor);
/* The image's normalisation: real = scale[c] * (q - zero[c]); zero need not be an integer. */
void hp_constants_pixels(const hp_constants *c, float scale[4], float zero[4]);

/* Does inference use 8-bit weights in this layer? That is: a convolution or linear layer whose input is U8,
 * or that quantises its input. */
bool hp_layer_weights8(const hp_graph *g, int layer);

/* `quantised`: weight8 and weight_scale instead of weight. Valid until the next call. Errors: HP_EDATA
 * (cannot be read, not finite; a file's 8-bit weights requested as floats). */
hp_status hp_constants_filter(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised,
                              hp_filter *f, hp_error *err);

/* Reads a parameter unchanged, as float32 or float64, for layers that run as trained
 * (networks/deploy/deploy.h). Errors: HP_EDATA (not finite). */
hp_status hp_constants_param(hp_constants *c, int param, hp_dtype dtype, void *to, hp_error *err);

/* --- changes to weights of a float source, before anything is packed (exec/quant) --- */

/* weight[o][i] *= out[o] * in[i], bias[o] *= out[o]; in: per input channel, out: per output channel; NULL: 1.
 * For conv, convt, linear (in: per channel of the input tensor), bn and scale (in must be NULL). */
void hp_constants_set_factors(hp_constants *c, int layer, const float *in, const float *out);
/* bias[o] += delta[o], after the factors. */
void hp_constants_set_correction(hp_constants *c, int layer, const float *delta);

#endif
