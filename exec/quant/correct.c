/* correct.c - bias correction for the mean error of rounded weights; see correct.h. */
#include "exec/quant/correct.h"

#include "exec/data/weights/weight_walk.h"

#include <stdlib.h>

/* Adds `sign` times the mean output per channel with the weights of `f`. unit: factor of 8-bit weights per
 * input channel, besides their scale. */
static void add_mean_output(const hp_weight_walk *walk, const hp_filter *f, const double *mean,
                            const double *unit, double sign, double *out) {
    for (int64_t run = 0; run < walk->runs; run++) {
        const hp_weight_ends at = hp_weight_ends_of(walk, run);
        const double scale = f->weight ? 1 : (double)f->weight_scale[at.out] * unit[at.in];
        double sum = 0;
        for (int64_t e = run * walk->length; e < (run + 1) * walk->length; e++)
            sum += f->weight ? (double)f->weight[e] : (double)f->weight8[e];
        out[at.out] += sign * scale * sum * mean[at.in];
    }
}

/* 8-bit weights that read the image contain the pixels' scale. */
static void set_units(const hp_constants *c, int layer, double *unit) {
    const hp_graph *g = hp_constants_graph(c);
    const hp_tensor *x = &g->tensor[g->layer[layer].in[0]];
    float scale[4], zero[4];
    hp_constants_pixels(c, scale, zero);
    const bool pixels = g->layer[x->producer].op == HP_INPUT;
    for (int i = 0; i < x->c; i++) unit[i] = pixels ? 1 / (double)scale[i] : 1;
}

static hp_status mean_error(hp_constants *c, int layer, const double *mean, const double *unit, double *out,
                            hp_error *err) {
    const hp_graph *g = hp_constants_graph(c);
    const int64_t outs = g->tensor[g->layer[layer].out].c;
    const hp_weight_walk walk = hp_weight_walk_of(g, layer);
    for (int rounded = 0; rounded < 2; rounded++) {
        hp_filter f;
        HP_TRY(hp_constants_filter(c, layer, 0, outs, rounded, &f, err));
        add_mean_output(&walk, &f, mean, unit, rounded ? -1 : 1, out);
    }
    return HP_OK;
}

hp_status hp_bias_correct(hp_constants *c, int layer, const double *mean, hp_error *err) {
    const hp_graph *g = hp_constants_graph(c);
    HP_ASSERT(hp_layer_weights8(g, layer));
    const int in_c = g->tensor[g->layer[layer].in[0]].c, out_c = g->tensor[g->layer[layer].out].c;
    double *unit = calloc((size_t)(in_c + out_c), sizeof *unit), *error = unit + in_c;
    float *delta = calloc((size_t)out_c, sizeof *delta);
    HP_ASSERT(unit && delta);
    set_units(c, layer, unit);
    const hp_status s = mean_error(c, layer, mean, unit, error, err);
    for (int o = 0; o < out_c; o++) delta[o] = (float)error[o];
    if (s == HP_OK) hp_constants_set_correction(c, layer, delta);
    free(unit);
    free(delta);
    return s;
}
