/* write.c - writes a quantised model's integers, scales and biases in the format of `hplan quantize`
 * (exec/data/weights/quantised.h), with the remaining batch norms folded in. One layer's constants are in
 * memory at a time. */
#include "networks/onnx/int8/int8.h"

#include "base/st_write.h"

#include <math.h>
#include <string.h>

typedef enum part { WEIGHT, WEIGHT_SCALE, BIAS, OUTPUT_SCALE, OUTPUT_ZERO, PARTS } part;
static const char *const suffixes[PARTS] = {"weight", "weight_scale", "bias", "output_scale", "output_zero"};

typedef struct int8_writer {
    hp_arena *arena, *room; /* room: one layer's constants */
    const hp_onnx_model *m;
    const hp_graph *g;
    const hp_onnx_qparam **q;
    hp_st_tensor *tensor;
    int n, cap, at_cap;
    struct item {
        part what;
        int layer;
    } * at;
} int8_writer;

/* --- which tensors --- */

static void add_tensor(int8_writer *w, int layer, part what, int dtype, int n_dim, const int32_t *dim) {
    HP_ROOM(w->arena, w->tensor, w->n, w->cap);
    HP_ROOM(w->arena, w->at, w->n, w->at_cap);
    hp_st_tensor *t = &w->tensor[w->n];
    *t = (hp_st_tensor){.dtype = dtype, .n_dim = n_dim};
    t->name = hp_arena_printf(w->arena, "%s.%s", w->g->layer[layer].name, suffixes[what]);
    for (int d = 0; d < n_dim; d++) t->dim[d] = dim[d];
    w->at[w->n++] = (struct item){what, layer};
}

static bool has_bias(const hp_layer *l) {
    return l->op == HP_BN || l->deployed.n_norm > 0 || l->n_param > 1;
}

static void add_floats(int8_writer *w, int layer) {
    const hp_layer *l = &w->g->layer[layer];
    const hp_param *p = &w->g->param[l->param[0]];
    const int32_t channels = w->g->tensor[l->out].c;
    const bool eight = hp_onnx_weights8(w->g, layer);
    if (eight)
        add_tensor(w, layer, WEIGHT_SCALE, HP_ST_F32, 1, &channels);
    else
        add_tensor(w, layer, WEIGHT, HP_ST_F32, p->n_dim, p->dim);
    if (eight || has_bias(l)) add_tensor(w, layer, BIAS, HP_ST_F32, 1, &channels);
}

/* Bytes come last, so that all floats are aligned. */
static void list_tensors(int8_writer *w) {
    static const int32_t one = 1;
    const hp_graph *g = w->g;
    for (int l = 0; l < g->n_layer; l++) {
        if (g->layer[l].n_param > 0) add_floats(w, l);
        if (l == 0 || g->tensor[g->layer[l].out].store != HP_STORE_U8) continue;
        add_tensor(w, l, OUTPUT_SCALE, HP_ST_F32, 1, &one);
        add_tensor(w, l, OUTPUT_ZERO, HP_ST_I32, 1, &one);
    }
    for (int l = 0; l < g->n_layer; l++) {
        if (g->layer[l].n_param == 0 || !hp_onnx_weights8(g, l)) continue;
        const hp_param *p = &g->param[g->layer[l].param[0]];
        add_tensor(w, l, WEIGHT, HP_ST_I8, p->n_dim, p->dim);
    }
}

/* --- constants of a layer --- */

static double param_at(const int8_writer *w, int32_t param, int64_t i) {
    return (double)w->m->param[param].data[i];
}

/* The batch norm's factor of output channel o. */
static double factor_of(const int8_writer *w, const hp_layer *l, int64_t o) {
    const int32_t *norm = l->op == HP_BN ? l->param : l->deployed.norm;
    if (l->op != HP_BN && !l->deployed.n_norm) return 1;
    return param_at(w, norm[0], o) / sqrt(param_at(w, norm[3], o) + l->eps);
}

static double bias_at(const int8_writer *w, const hp_layer *l, int64_t o) {
    const int32_t *norm = l->op == HP_BN ? l->param : l->deployed.norm;
    const double own = l->op != HP_BN && l->n_param > 1 ? param_at(w, l->param[1], o) : 0;
    if (l->op != HP_BN && !l->deployed.n_norm) return own;
    return param_at(w, norm[1], o) + (own - param_at(w, norm[2], o)) * factor_of(w, l, o);
}

/* Output channel of weight e. */
static int64_t channel_of(const int8_writer *w, const hp_layer *l, int64_t e) {
    const hp_param *p = &w->g->param[l->param[0]];
    if (l->op != HP_CONVT) return e / (p->count / p->dim[0]);
    const int64_t taps = (int64_t)p->dim[2] * p->dim[3], groups = l->groups > 1 ? l->groups : 1;
    return e / taps / p->dim[1] / (p->dim[0] / groups) * p->dim[1] + e / taps % p->dim[1];
}

static double scale_at(const int8_writer *w, const hp_layer *l, int64_t o) {
    return (double)w->m->param[l->param[0]].data8_scale[o] * factor_of(w, l, o);
}

static const void *weights8(const int8_writer *w, const hp_layer *l) {
    const hp_param *p = &w->g->param[l->param[0]];
    const int8_t *q = w->m->param[l->param[0]].data8;
    int8_t *out = HP_NEW(w->room, int8_t, p->count);
    for (int64_t e = 0; e < p->count; e++) {
        const double scale = scale_at(w, l, channel_of(w, l, e));
        out[e] = (int8_t)(scale > 0 ? q[e] : scale < 0 ? -q[e] : 0);
    }
    return out;
}

static const void *floats(const int8_writer *w, const hp_layer *l, part what, int64_t n) {
    float *out = HP_NEW(w->room, float, n);
    for (int64_t i = 0; i < n; i++) {
        const double scale = what == WEIGHT_SCALE ? fabs(scale_at(w, l, i)) : 1;
        if (what == WEIGHT)
            out[i] =
                (float)(l->op == HP_BN ? factor_of(w, l, i)
                                       : param_at(w, l->param[0], i) * factor_of(w, l, channel_of(w, l, i)));
        else
            out[i] = (float)(what == BIAS ? bias_at(w, l, i) : scale > 0 ? scale : 1);
    }
    return out;
}

static bool all_finite(const float *v, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

static const void *data_of(void *self, int i, hp_error *err) {
    int8_writer *w = self;
    const struct item *at = &w->at[i];
    const hp_st_tensor *t = &w->tensor[i];
    const hp_layer *l = &w->g->layer[at->layer];
    int64_t n = 1;
    if (at->what == OUTPUT_SCALE) return &w->q[at->layer]->scale;
    if (at->what == OUTPUT_ZERO) return &w->q[at->layer]->zero;
    hp_arena_free(w->room);
    w->room = hp_arena_new();
    for (int d = 0; d < t->n_dim; d++) n *= t->dim[d];
    if (t->dtype == HP_ST_I8) return weights8(w, l);
    const void *v = floats(w, l, at->what, n);
    if (all_finite(v, n)) return v;
    hp_fail(err, HP_EDATA, "%s: the weights of layer %s are not all finite numbers", w->g->net, l->name);
    return NULL;
}

/* --- the file --- */

static const char *numbers(hp_arena *a, const double *value, int n) {
    const char *text = "";
    for (int i = 0; i < n; i++) text = hp_arena_printf(a, "%s%s%.17g", text, i ? "," : "", value[i]);
    return text;
}

hp_status hp_onnx_write_int8(const char *path, const hp_onnx_model *m, const hp_onnx_int8 *p,
                             const hp_onnx_pixels *pixels, const char *source, hp_error *err) {
    HP_ASSERT(pixels->n >= 1 && pixels->n <= 4);
    hp_arena *a = hp_arena_new();
    int8_writer w = {.arena = a, .m = m, .g = p->graph};
    w.q = hp_onnx_deployed_qparams(a, m, p->graph);
    list_tensors(&w);
    const hp_st_note note[] = {{"format", "hplan-quantised 1"},
                               {"net", m->graph->net},
                               {"observer", "the model's own"},
                               {"images", "0"},
                               {"mean", numbers(a, pixels->mean, pixels->n)},
                               {"std", numbers(a, pixels->std, pixels->n)},
                               {"float_layers", p->float_layers},
                               {"source", source}};
    const hp_st_source bytes = {.data = data_of, .self = &w};
    const hp_status s =
        hp_safetensors_write_noted(path, note, (int)(sizeof note / sizeof *note), w.tensor, w.n, &bytes, err);
    hp_arena_free(w.room);
    hp_arena_free(a);
    return s;
}
