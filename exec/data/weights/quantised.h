/* quantised.h - the file of `hplan quantize`: all constants of a deployed int8 network, in safetensors.
 *
 *     LAYER.weight        I8, the graph's shape, if the layer reads 8 bits; else F32, batch norm folded
 *     LAYER.weight_scale  F32 (output channels), beside I8 weights: real = weight_scale * weight; for a layer
 *                         that reads raw pixels: real * pixel scale
 *     LAYER.bias          F32 (output channels), real units; always beside I8 weights
 *     LAYER.output_scale  F32 (1), for every U8 tensor except the image, under its producer's name
 *     LAYER.output_zero   I32 (1)
 *
 * bn and scale layers that were not folded: weight and bias (channels), F32. Layers that run as trained:
 * their parameters under their own names, F32, as in the graph. Metadata: format "hplan-quantised 1", net,
 * observer, images, mean, std, float_layers, source (hash of the weights' file, or the seed). */
#ifndef HP_QUANTISED_H
#define HP_QUANTISED_H

#include "exec/data/weights/constants.h"
#include "exec/data/weights/differences.h"
#include "exec/data/weights/safetensors.h"

typedef struct hp_quantised_info {
    const char *net;
    const char *observer;
    int64_t images; /* calibration images */
    int32_t n_mean;
    double mean[4], std[4];
    const char *float_layers; /* as hp_deploy_options.float_layers; "" for none */
    const char *source;       /* origin of the weights */
} hp_quantised_info;

/* Is it such a file, of whatever version? */
bool hp_is_quantised_file(const hp_safetensors *st);
/* Reads and checks the metadata; strings live in `arena`. Errors: HP_EDATA (another version, an entry missing
 * or wrong). */
hp_status hp_quantised_info_of(hp_arena *arena, const char *path, const hp_safetensors *st,
                               hp_quantised_info *info, hp_error *err);

/* Text for `source`: hash of the weights' file, or the seed if path is NULL. Errors: HP_EDATA. */
hp_status hp_quantised_source(hp_arena *arena, const char *path, uint64_t seed, const char **text,
                              hp_error *err);

/* The tensors of such a file for a deployed graph, in `arena`; returns their number. */
int hp_quantised_expected(hp_arena *arena, const hp_graph *g, hp_st_expected **want);

/* Writes the file. `c`: calibrated, with a float source. Errors: HP_ECREATE, HP_EIO, HP_EDATA (weights that
 * are not finite). */
hp_status hp_quantised_write(const char *path, hp_constants *c, const hp_quantised_info *info, hp_error *err);

#endif
