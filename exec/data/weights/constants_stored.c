/* constants_stored.c - constants stored ready for use in a quantised file; see quantised.h. */
#include "exec/data/weights/constants_state.h"

#include "exec/data/weights/quantised.h"

#include <math.h>
#include <string.h>

static const hp_st_tensor *find(const hp_constants *c, int layer, const char *what) {
    return hp_safetensors_find(c->st, hp_arena_printf(c->arena, "%s.%s", c->graph->layer[layer].name, what));
}

/* --- opening: does the file match the graph; qparams of its tensors; pixels --- */

static hp_status compare(const hp_constants *c, const hp_quantised_info *info, hp_error *err) {
    hp_arena *a = hp_arena_new();
    hp_st_expected *want;
    hp_differences d = {0};
    const int n = hp_quantised_expected(a, c->graph, &want);
    hp_st_differences(c->st, want, n, &d);
    hp_arena_free(a);
    if (d.n == 0) return HP_OK;
    char net[64];
    return hp_fail(
        err, HP_EDATA,
        "%s is a quantised %s and does not fit the int8 program of %s with %d classes: %s (%d in all); "
        "plan with --prec int8 for its network and float layers, or make it again with `hplan "
        "quantize`",
        c->o.path, hp_st_printable(info->net, net), c->graph->net, c->graph->classes, d.text, d.n);
}

static hp_status read_qparam(hp_constants *c, int tensor, hp_error *err) {
    const int layer = c->graph->tensor[tensor].producer;
    hp_qparam q;
    memcpy(&q.scale, find(c, layer, "output_scale")->data, sizeof q.scale);
    memcpy(&q.zero, find(c, layer, "output_zero")->data, sizeof q.zero);
    if (!isnormal(q.scale) || q.scale < 0 || q.zero < 0 || q.zero > 255)
        return hp_fail(
            err, HP_EDATA,
            "%s: the output of layer %s has scale %g and zero point %d, no quantisation to 0 .. 255; "
            "make the file again with `hplan quantize`",
            c->o.path, c->graph->layer[layer].name, (double)q.scale, q.zero);
    hp_constants_set_qparam(c, tensor, q);
    return HP_OK;
}

/* Equal up to a conversion to float and back. */
static bool nearly_equal(double a, double b) {
    return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
}

/* Uses the file's normalisation, with which its weights were calibrated; different options are an error. */
static hp_status read_pixels(hp_constants *c, const hp_quantised_info *info, hp_error *err) {
    for (int i = 0; i < c->graph->image_c && i < 4; i++) {
        const int k = info->n_mean == 1 ? 0 : i, m = c->o.n_mean == 1 ? 0 : i;
        if (k >= info->n_mean)
            return hp_fail(err, HP_EDATA, "%s has mean and std of %d channels, the image has %d", c->o.path,
                           info->n_mean, c->graph->image_c);
        if (m < c->o.n_mean &&
            !(nearly_equal(c->o.mean[m], info->mean[k]) && nearly_equal(c->o.std[m], info->std[k])))
            return hp_fail(err, HP_EDATA,
                           "%s was quantised for pixels of mean %g and std %g (channel %d), not %g and %g; "
                           "leave out --mean and --std, or quantise again",
                           c->o.path, info->mean[k], info->std[k], i, c->o.mean[m], c->o.std[m]);
    }
    c->o.n_mean = info->n_mean;
    memcpy(c->o.mean, info->mean, sizeof c->o.mean);
    memcpy(c->o.std, info->std, sizeof c->o.std);
    return HP_OK;
}

hp_status constants_stored_open(hp_constants *c, hp_error *err) {
    hp_quantised_info info = {0};
    HP_TRY(hp_quantised_info_of(c->arena, c->o.path, c->st, &info, err));
    HP_TRY(compare(c, &info, err));
    for (int t = 0; t < c->graph->n_tensor; t++)
        if (hp_tensor_wants_qparam(c->graph, t)) HP_TRY(read_qparam(c, t, err));
    return read_pixels(c, &info, err);
}

/* --- weights --- */

/* Copies a range of channels, in elements of `bytes`. */
static void copy_channels(const constants_shape *whole, const constants_shape *part, int64_t first,
                          const unsigned char *from, size_t bytes, void *to) {
    const int64_t run = part->outs * part->per, skip = whole->groups == 1 ? first * whole->per : 0;
    for (int64_t i = 0; i < whole->lead; i++)
        memcpy((char *)to + (size_t)(i * run) * bytes,
               from + (size_t)(i * whole->outs * whole->per + skip) * bytes, (size_t)run * bytes);
}

static float *read_floats(constants_scratch *room, const hp_st_tensor *t, int64_t first, int64_t n) {
    float *out = constants_reserve(room, (size_t)n * sizeof *out);
    memcpy(out, t->data + (size_t)first * sizeof *out, (size_t)n * sizeof *out);
    return out;
}

static bool all_numbers(const float *v, int64_t n, bool positive) {
    for (int64_t i = 0; v && i < n; i++)
        if (!isfinite(v[i]) || (positive && v[i] <= 0)) return false;
    return true;
}

static bool symmetric(const int8_t *w, size_t n) {
    for (size_t i = 0; w && i < n; i++)
        if (w[i] == INT8_MIN) return false;
    return true;
}

hp_status constants_stored(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised,
                           hp_filter *f, hp_error *err) {
    const char *name = c->graph->layer[layer].name;
    const constants_shape whole = constants_shape_of(c->graph, layer),
                          part = constants_slice_shape(&whole, first, outs);
    const size_t n = (size_t)(part.lead * part.outs * part.per);
    const hp_st_tensor *w = find(c, layer, "weight"), *bias = find(c, layer, "bias");
    if ((w->dtype == HP_ST_I8) != quantised)
        return hp_fail(err, HP_EDATA, "%s holds layer %s in %s", c->o.path, name, hp_st_infos[w->dtype].name);
    *f = (hp_filter){.bias = bias ? read_floats(&c->bias, bias, first, outs) : NULL};
    if (quantised) {
        f->weight8 = constants_reserve(&c->weight8, n);
        f->weight_scale = read_floats(&c->scale, find(c, layer, "weight_scale"), first, outs);
        copy_channels(&whole, &part, first, w->data, 1, c->weight8.at);
    } else {
        f->weight = constants_reserve(&c->weight, n * sizeof(float));
        copy_channels(&whole, &part, first, w->data, sizeof(float), c->weight.at);
    }
    if (symmetric(f->weight8, n) && all_numbers(f->weight, (int64_t)n, false) &&
        all_numbers(f->weight_scale, outs, true) && all_numbers(f->bias, outs, false))
        return HP_OK;
    return hp_fail(err, HP_EDATA,
                   "%s: the constants of layer %s are out of range; make the file again with "
                   "`hplan quantize`",
                   c->o.path, name);
}
