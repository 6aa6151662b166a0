/* constants.h - what a deployed network multiplies with: folded float weights, or 8-bit weights with their
 * scales, and the quantisation of every tensor.
 *
 * Sources: weights drawn from a seed (the same as training starts from), a safetensors file with the trained
 * network's names (batch norms are folded here: w' = w gamma / sqrt(var + eps), b' = beta + (b - mean) gamma
 * / sqrt(var + eps), in float64, rounded once), or a file of `hplan quantize` (8-bit weights, quantisation
 * parameters). From float sources 8-bit weights are made here: symmetric, per output channel,
 * scale = max|w| / 127. Everything depends on the source alone: all ranks get the same bits. */
#ifndef HP_CONSTANTS_H
#define HP_CONSTANTS_H

#include "plan/base/status.h"
#include "plan/graph/graph.h"

#include <stdbool.h>

/* real = scale * (q - zero), q in 0 .. 255. */
typedef struct hp_qparam {
    float scale;
    int32_t zero;
} hp_qparam;

/* Constants of output channels [first, first + outs) of a layer: conv (outs, I/groups, kh, kw); convt (I,
 * outs, kh, kw), with groups (I, O/groups, kh, kw) and all of them; linear (outs, I); bn, scale (outs): a
 * factor. 8-bit weights of a layer that reads the raw pixels hold their scale: (real weight) * pixel_scale[c]
 * = weight_scale[o] * weight8, so that real product = weight_scale[o] * weight8 * (q - pixel_zero[c]). */
typedef struct hp_filter {
    const float *weight;       /* NULL where weight8 is wanted and there */
    const int8_t *weight8;     /* -127 .. 127; real weight = weight_scale[o] * weight8 */
    const float *weight_scale; /* (outs) > 0 */
    const float *bias;         /* (outs), real units; NULL: none */
} hp_filter;

typedef struct hp_constants hp_constants;

typedef struct hp_constants_options {
    const hp_graph
        *graph;       /* deployed; its parameters in the order of the network's, which the draws follow */
    const char *path; /* safetensors or quantised file; NULL: drawn from `seed` */
    uint64_t seed;
    int32_t n_mean;         /* of mean and std below: 0 (the quantised file's, else 0.5), 1 or image_c */
    double mean[4], std[4]; /* real pixel = (x / 255 - mean) / std */
} hp_constants_options;

/* Errors: HP_EDATA (listing what is missing or has another shape; a quantised file of other mean and std). */
hp_status hp_constants_open(const hp_constants_options *o, hp_constants **c, hp_error *err);
/* The same weights and pixels for another deployment of the network: of another precision or image size. Of a
 * float source; changes are not taken over. Parameters whose size follows from the image's (of a linear layer
 * over the whole map) are drawn where theirs is another. */
hp_status hp_constants_open_as(const hp_constants *c, const hp_graph *graph, hp_constants **other,
                               hp_error *err);
void hp_constants_close(hp_constants *c); /* NULL is fine */
/* Gives back the memory of hp_constants_filter, once all is packed. It may be called again. */
void hp_constants_rest(hp_constants *c);

const hp_graph *hp_constants_graph(const hp_constants *c);

/* Has the tensor quantisation parameters: U8, and not the image? */
bool hp_tensor_wants_qparam(const hp_graph *g, int tensor);
/* Are there quantisation parameters for every U8 tensor of the graph? */
bool hp_constants_calibrated(const hp_constants *c);
void hp_constants_set_qparam(hp_constants *c, int tensor, hp_qparam q);
/* Of a U8 tensor other than the image; it must be there. */
hp_qparam hp_constants_qparam(const hp_constants *c, int tensor);
/* The image's normalisation: real = scale[c] * (q - zero[c]), zero not a whole number in general. */
void hp_constants_pixels(const hp_constants *c, float scale[4], float zero[4]);

/* Does inference hold the layer's weights in 8 bits: a convolution or linear layer of a U8 input, or of one
 * that it quantises itself? */
bool hp_layer_weights8(const hp_graph *g, int layer);

/* `quantised`: weight8 and weight_scale instead of weight. Valid until the next call. Errors: HP_EDATA
 * (cannot be read, not finite; 8-bit weights of a file asked for as floats). */
hp_status hp_constants_filter(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised,
                              hp_filter *f, hp_error *err);

/* --- changes to weights of a float source, before anything is packed (exec/quant) --- */

/* weight[o][i] *= out[o] * in[i], bias[o] *= out[o]; in: per input channel, out: per output channel; NULL: 1.
 * Of conv, convt, linear (in: per channel of the input tensor), bn and scale (in must be NULL). */
void hp_constants_set_factors(hp_constants *c, int layer, const float *in, const float *out);
/* bias[o] += delta[o], after the factors. */
void hp_constants_set_correction(hp_constants *c, int layer, const float *delta);

#endif
