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
#include "plan/graph.h"

#include <stdbool.h>

/* real = scale * (q - zero), q in 0 .. 255. */
typedef struct hp_qparam {
    float scale;
    int32_t zero;
} hp_qparam;

/* Constants of output channels [first, first + outs) of a layer. conv, convt, linear: weights (outs,
 * I/groups, kh, kw) resp. (I, outs, kh, kw), (outs, I); bn, scale: weight (outs) is a factor. */
typedef struct hp_filter {
    const float *weight;       /* NULL where weight8 is wanted and there */
    const int8_t *weight8;     /* real weight = weight_scale[o] * weight8 */
    const float *weight_scale; /* (outs) */
    const float *bias;         /* (outs), real units; NULL: none */
} hp_filter;

typedef struct hp_constants hp_constants;

typedef struct hp_constants_options {
    const hp_graph *graph; /* deployed */
    const char *path;      /* safetensors or quantised file; NULL: drawn from `seed` */
    uint64_t seed;
    int32_t n_mean;         /* of mean and std below: channels of the image */
    double mean[4], std[4]; /* real pixel = (x / 255 - mean) / std */
} hp_constants_options;

/* Errors: HP_EDATA (listing what is missing or has another shape). */
hp_status hp_constants_open(const hp_constants_options *o, hp_constants **c, hp_error *err);
void hp_constants_close(hp_constants *c);

/* Are there quantisation parameters for every U8 tensor of the graph? */
bool hp_constants_calibrated(const hp_constants *c);
void hp_constants_set_qparam(hp_constants *c, int tensor, hp_qparam q);
/* Of a U8 tensor other than the image. */
hp_qparam hp_constants_qparam(const hp_constants *c, int tensor);
/* The image's normalisation: real = scale[c] * (q - zero[c]), zero not a whole number in general. */
void hp_constants_pixels(const hp_constants *c, float scale[4], float zero[4]);

/* `quantised`: weight8 and weight_scale instead of weight. Valid until the next call. Errors: HP_EDATA
 * (cannot be read). */
hp_status hp_constants_filter(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised,
                              hp_filter *f, hp_error *err);

#endif
