/* simplify.c - rewrites that preserve the network's function: activations written as several nodes
 * (onnx_fold_acts.c), x + x s becomes x (1 + s), and factors and biases are folded into adjacent weights. */
#include "networks/onnx/fold/simplify.h"

#include <math.h>
#include <string.h>

/* --- matching layers --- */

/* The layer that computes the tensor. */
static hp_layer *maker_of(const onnx_passes *p, int32_t tensor) {
    return &p->r->graph->layer[p->r->graph->tensor[tensor].producer];
}

/* The layer that makes the tensor, if it has one reader and the model does not quantise the tensor. */
hp_layer *onnx_sole_maker(const onnx_passes *p, int32_t tensor, hp_layer_op op) {
    hp_layer *l = maker_of(p, tensor);
    return l->op == (int32_t)op && p->uses[tensor] == 1 && !p->r->note[tensor].has_qparam ? l : NULL;
}

static const float *data_of(const onnx_passes *p, const hp_layer *l, int i) {
    return i < l->n_param ? p->r->data[l->param[i]].data : NULL;
}

/* Are all elements of the parameter (nearly) this number? */
bool onnx_all_are(const onnx_passes *p, const hp_layer *l, int i, double value) {
    const float *data = data_of(p, l, i);
    if (!data) return false;
    for (int64_t k = 0; k < p->r->graph->param[l->param[i]].count; k++)
        if (fabs((double)data[k] - value) > 1e-6) return false;
    return true;
}

void onnx_replace_layer(onnx_passes *p, hp_layer *l, hp_layer_op op, hp_act act, int32_t x) {
    for (int i = 0; i < l->n_in; i++) p->uses[l->in[i]]--;
    l->op = op;
    l->act = act;
    l->act_arg.a = l->act_arg.b = 0;
    l->n_in = 1;
    l->in[0] = x;
    l->n_param = 0;
    p->uses[x]++;
}

/* --- x + x s = x (1 + s), s a vector --- */

static float *vector_of_ones(const onnx_passes *p, int64_t n) {
    float *f = HP_NEW(p->r->arena, float, n);
    for (int64_t i = 0; i < n; i++) f[i] = 1;
    return f;
}

static void add_vector(onnx_passes *p, hp_layer *l, hp_param_kind kind, const char *suffix, const float *data,
                       int64_t n) {
    onnx_reader *r = p->r;
    hp_graph *g = r->graph;
    HP_ROOM(r->arena, g->param, g->n_param, r->cap_param);
    HP_ROOM(r->arena, r->data, g->n_param, r->cap_data);
    const char *name = hp_arena_printf(r->scratch, "%s.%s", l->name, suffix);
    g->param[g->n_param] = (hp_param){.name = onnx_unique(r->arena, &r->param_names, name),
                                      .kind = kind,
                                      .n_dim = 1,
                                      .dim = {(int32_t)n},
                                      .count = n,
                                      .fan_in = l->n_param ? g->param[l->param[0]].fan_in : 1};
    r->data[g->n_param] = (hp_onnx_param){data};
    l->param[l->n_param++] = g->n_param++;
}

/* The product's layer becomes 1 + s; the sum's layer becomes the product. */
static bool gated_sum(onnx_passes *p, hp_layer *l) {
    hp_graph *g = p->r->graph;
    if (l->op != HP_ADD || hp_layer_has_act(l)) return false;
    for (int k = 0; k < 2; k++) {
        hp_layer *product = onnx_sole_maker(p, l->in[k], HP_MUL);
        const int32_t x = l->in[1 - k];
        if (!product || hp_layer_has_act(product) || product->in[0] != x) continue;
        const int32_t s = product->in[1], sum = product->out;
        if (g->tensor[s].h * (int64_t)g->tensor[s].w != 1 || g->tensor[x].h * (int64_t)g->tensor[x].w == 1)
            continue;
        onnx_replace_layer(p, product, HP_SCALE, HP_ACT_NONE, s);
        g->tensor[sum].h = g->tensor[sum].w = 1;
        add_vector(p, product, HP_PARAM_FACTOR, "factor", vector_of_ones(p, g->tensor[s].c), g->tensor[s].c);
        add_vector(p, product, HP_PARAM_BIAS, "bias", vector_of_ones(p, g->tensor[s].c), g->tensor[s].c);
        p->r->note[sum].never_negative = p->r->note[s].never_negative;
        l->op = HP_MUL;
        l->in[0] = x;
        l->in[1] = sum;
        return true;
    }
    return false;
}

/* --- folding a scale into the layer before it --- */

bool onnx_is_tied(const onnx_passes *p, const hp_layer *l) {
    return p->r->graph->param[l->param[0]].kind == HP_PARAM_TABLE;
}

float *onnx_own(onnx_passes *p, int32_t param) {
    hp_onnx_param *d = &p->r->data[param];
    const int64_t count = p->r->graph->param[param].count;
    if (!d->data) return NULL;
    if (param >= p->n_owned || !p->owned[param]) {
        d->data = memcpy(HP_NEW(p->r->arena, float, count), d->data, sizeof(float) * (size_t)count);
        if (param < p->n_owned) p->owned[param] = true;
    }
    return (float *)(uintptr_t)d->data;
}

void onnx_add_bias(onnx_passes *p, hp_layer *l, bool known, int64_t channels) {
    add_vector(p, l, HP_PARAM_BIAS, "bias", known ? HP_NEW(p->r->arena, float, channels) : NULL, channels);
}

/* Index of the output channel of element e. */
static int64_t channel_of(const onnx_passes *p, const hp_layer *l, int64_t e) {
    const hp_param *w = &p->r->graph->param[l->param[0]];
    const int64_t last = w->n_dim == 4 ? (int64_t)w->dim[2] * w->dim[3] : 1;
    if (l->op != HP_CONVT) return e / (w->count / w->dim[0]);
    const int64_t row = e / (w->dim[1] * last), rows = w->dim[0] / l->groups; /* (I, O/groups, kh, kw) */
    return row / rows * w->dim[1] + e / last % w->dim[1];
}

static void scale_weights(onnx_passes *p, hp_layer *host, const float *factor, int64_t channels) {
    const int32_t w = host->param[0];
    hp_onnx_param *d = &p->r->data[w];
    float *f = onnx_own(p, w);
    for (int64_t e = 0; f && factor && e < p->r->graph->param[w].count; e++)
        f[e] *= factor[channel_of(p, host, e)];
    if (!f || !factor) *d = (hp_onnx_param){0};
    if (!d->data8_scale) return;
    float *scale = HP_NEW(p->r->arena, float, channels);
    for (int64_t o = 0; o < channels; o++) scale[o] = d->data8_scale[o] * factor[o];
    d->data8_scale = scale;
}

/* bias = bias * factor + more, for the host's parameter `i`; NULL data: unknown. */
static void scale_bias(onnx_passes *p, hp_layer *host, int i, const float *factor, const float *more,
                       bool known, int64_t channels) {
    if (i >= host->n_param && !more && known) return;
    if (i >= host->n_param) {
        onnx_add_bias(p, host, known, channels);
        i = host->n_param - 1;
    }
    float *f = known ? onnx_own(p, host->param[i]) : NULL;
    if (!f) p->r->data[host->param[i]] = (hp_onnx_param){0};
    for (int64_t o = 0; f && o < channels; o++) f[o] = f[o] * factor[o] + (more ? more[o] : 0);
}

static bool fold_into_host(onnx_passes *p, hp_layer *l) {
    static const bool hosts[HP_LAYER_OPS] = {[HP_CONV] = true, [HP_CONVT] = true, [HP_LINEAR] = true,
                                             [HP_BN] = true,   [HP_SCALE] = true, [HP_GROUPNORM] = true};
    if (l->op != HP_SCALE || hp_layer_has_act(l)) return false;
    hp_layer *host = maker_of(p, l->in[0]);
    if (!hosts[host->op] || onnx_is_tied(p, host) || !onnx_sole_maker(p, l->in[0], (hp_layer_op)host->op) ||
        hp_layer_has_act(host))
        return false;
    const int64_t channels = p->r->graph->tensor[l->out].c;
    const float *factor = data_of(p, l, 0), *more = data_of(p, l, 1);
    const bool has_bias = host->n_param > 1 || l->n_param > 1, known = factor && (l->n_param == 1 || more);
    if (!(factor && onnx_all_are(p, l, 0, 1))) scale_weights(p, host, factor, channels);
    if (has_bias) scale_bias(p, host, 1, factor, more, known, channels);
    p->as[l->out] = host->out;
    p->r->note[host->out] = p->r->note[l->out];
    p->uses[host->out] = p->uses[l->out];
    p->uses[l->out] = 0;
    return true;
}

/* --- the passes --- */

static void rewrite(onnx_passes *p) {
    hp_graph *g = p->r->graph;
    for (int l = 0; l < g->n_layer; l++) {
        hp_layer *layer = &g->layer[l];
        for (int k = 0; k < layer->n_in; k++) layer->in[k] = p->as[layer->in[k]];
        if (!onnx_act_pattern(p, layer) && !gated_sum(p, layer)) fold_into_host(p, layer);
    }
}

int32_t onnx_simplify(onnx_reader *r, int32_t output) {
    hp_graph *g = r->graph;
    onnx_passes p = {r, HP_NEW(r->scratch, int32_t, g->n_tensor), HP_NEW(r->scratch, int32_t, g->n_tensor),
                     HP_NEW(r->scratch, bool, g->n_param + 1), g->n_param};
    for (int t = 0; t < g->n_tensor; t++) p.as[t] = t;
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; k < g->layer[l].n_in; k++) p.uses[g->layer[l].in[k]]++;
    p.uses[output] += 2; /* the output itself counts as two readers */
    rewrite(&p);
    output = p.as[output];
    onnx_scales_forward(&p, output);
    return output;
}
