/* finish.c - the final form of the graph: only layers that the output needs, tensors and parameters in the
 * order of layers, and units between which a pipeline may cut. */
#include "plan/onnx/inside.h"

#include "plan/graph/shape.h"

#include <string.h>

const bool *onnx_live(const onnx_reader *r, int32_t output) {
    const hp_graph *g = r->graph;
    bool *live = HP_NEW(r->scratch, bool, g->n_layer);
    live[0] = live[g->tensor[output].producer] = true;
    for (int l = g->n_layer - 1; l > 0; l--)
        for (int k = 0; live[l] && k < g->layer[l].n_in; k++)
            live[g->tensor[g->layer[l].in[k]].producer] = true;
    return live;
}

/* --- numbering --- */

/* For runs without the model's weights: initialisations under which no activation vanishes. */
static const hp_init inits[] = {
    [HP_PARAM_CONV_W] = HP_INIT_KAIMING_FAN_IN,
    [HP_PARAM_LINEAR_W] = HP_INIT_KAIMING_FAN_IN,
    [HP_PARAM_BIAS] = HP_INIT_ZERO,
    [HP_PARAM_BN_GAMMA] = HP_INIT_ONE,
    [HP_PARAM_BN_BETA] = HP_INIT_ZERO,
    [HP_PARAM_BN_MEAN] = HP_INIT_ZERO,
    [HP_PARAM_BN_VAR] = HP_INIT_ONE,
    [HP_PARAM_FACTOR] = HP_INIT_ONE,
};

static void number_params(onnx_reader *r, hp_layer *l, int layer, const hp_param *old,
                          const hp_onnx_param *old_data) {
    hp_graph *g = r->graph;
    for (int i = 0; i < l->n_param; i++) {
        g->param[g->n_param] = old[l->param[i]];
        g->param[g->n_param].layer = layer;
        g->param[g->n_param].init = inits[g->param[g->n_param].kind];
        r->data[g->n_param] = old_data[l->param[i]];
        l->param[i] = g->n_param++;
    }
}

/* Drops layers that the output does not need, with their parameters, which no other layer shares. */
static void drop_dead(onnx_reader *r, const bool *live) {
    hp_graph *g = r->graph;
    const hp_graph old = *g;
    const hp_onnx_param *old_data = r->data;
    const onnx_note *old_note = r->note;
    int32_t *id = HP_NEW(r->scratch, int32_t, old.n_tensor);
    g->tensor = HP_NEW(r->arena, hp_tensor, old.n_layer);
    g->param = HP_NEW(r->arena, hp_param, old.n_param + 1);
    r->data = HP_NEW(r->arena, hp_onnx_param, old.n_param + 1);
    r->note = HP_NEW(r->scratch, onnx_note, old.n_layer);
    g->n_layer = g->n_param = 0;
    for (int l = 0; l < old.n_layer; l++) {
        if (!live[l]) continue;
        const int n = g->n_layer++;
        hp_layer *layer = &g->layer[n];
        *layer = old.layer[l];
        for (int k = 0; k < layer->n_in; k++) layer->in[k] = id[layer->in[k]];
        g->tensor[n] = old.tensor[layer->out];
        g->tensor[n].producer = n;
        r->note[n] = old_note[layer->out];
        id[layer->out] = n;
        layer->out = n;
        number_params(r, layer, n, old.param, old_data);
    }
    g->n_tensor = g->n_layer;
}

/* --- units --- */

/* Tensors read again more than this many layers later are skips across units. */
enum { FAR = 16, LONG = 32 };

static bool begins_unit(const hp_layer *l) {
    static const bool begins[HP_LAYER_OPS] = {
        [HP_CONV] = true,    [HP_CONVT] = true,   [HP_LINEAR] = true,
        [HP_MAXPOOL] = true, [HP_AVGPOOL] = true, [HP_RESIZE] = true,
    };
    return begins[l->op];
}

/* A unit ends where a single tensor passes, not counting skips; in long stretches without such a place,
 * anywhere. */
static void set_units(onnx_reader *r) {
    hp_graph *g = r->graph;
    int32_t *last = HP_NEW(r->scratch, int32_t, g->n_layer),
            *ends = HP_NEW(r->scratch, int32_t, g->n_layer + 1);
    int unit = 0, first = 0, live = 0;
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; k < g->layer[l].n_in; k++) last[g->layer[l].in[k]] = l;
    for (int l = 0; l < g->n_layer; l++)
        if (last[l] - l <= FAR) ends[last[l] > l ? last[l] : l]++;
    for (int l = 0; l < g->n_layer; l++) {
        const bool passes = live == 1 || l - first >= LONG;
        if (l > 1 && passes && begins_unit(&g->layer[l])) {
            unit++;
            first = l;
        }
        g->layer[l].unit = unit;
        if (last[l] - l <= FAR) live++;
        live -= ends[l];
    }
    hp_graph_index_units(r->arena, g);
}

/* --- all --- */

static void list_qparams(onnx_reader *r, hp_onnx_model *m) {
    m->qparam = HP_NEW(r->arena, hp_onnx_qparam, r->graph->n_tensor);
    for (int t = 0; t < r->graph->n_tensor; t++)
        if (r->note[t].has_qparam)
            m->qparam[m->n_qparam++] = (hp_onnx_qparam){t, r->note[t].scale, r->note[t].zero};
}

/* "a_model.onnx": "onnx:a_model" */
static const char *net_name(const onnx_reader *r) {
    const char *dot = strrchr(r->file, '.');
    const int n = dot && dot > r->file ? (int)(dot - r->file) : (int)strlen(r->file);
    return hp_arena_printf(r->arena, "onnx:%.*s", n < 56 ? n : 56, r->file);
}

hp_status onnx_finish(onnx_reader *r, int32_t output, hp_onnx_model *m) {
    hp_graph *g = r->graph;
    output = onnx_simplify(r, output);
    if (output == 0) { /* a graph has at least one layer after its image */
        const onnx_call c = {.r = r};
        HP_TRY(onnx_emit(&c, (hp_layer){.op = HP_ACT, .n_in = 1, .in = {0}}, 0, &output));
    }
    drop_dead(r, onnx_live(r, output));
    set_units(r);
    list_qparams(r, m);
    g->net = net_name(r);
    g->classes = g->tensor[g->n_tensor - 1].c;
    m->graph = g;
    m->param = r->weights ? r->data : NULL;
    return HP_OK;
}
