/* onnx_finish.c - the final form of the graph: only layers that the output needs, tensors and parameters in
 * layer order, and units between which a pipeline may cut. */
#include "networks/onnx/onnx_inside.h"

#include "networks/graph/shape.h"

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

/* Without the model's weights: initialisations that keep activations from vanishing. */
static const hp_init inits[] = {
    [HP_PARAM_CONV_W] = HP_INIT_KAIMING_FAN_IN,
    [HP_PARAM_LINEAR_W] = HP_INIT_KAIMING_FAN_IN,
    [HP_PARAM_BIAS] = HP_INIT_ZERO,
    [HP_PARAM_BN_GAMMA] = HP_INIT_ONE,
    [HP_PARAM_BN_BETA] = HP_INIT_ZERO,
    [HP_PARAM_BN_MEAN] = HP_INIT_ZERO,
    [HP_PARAM_BN_VAR] = HP_INIT_ONE,
    [HP_PARAM_FACTOR] = HP_INIT_ONE,
    [HP_PARAM_TABLE] = HP_INIT_NORMAL,
    [HP_PARAM_TOKEN] = HP_INIT_ZERO,
};
static const double prelu_slope = 0.25; /* as torch.nn.PReLU's */
static const double table_std = 0.02;   /* as in the tables of GPT-2 and torchvision's ViT */

/* The graph and its data before renumbering; `now` is a parameter's new number plus 1. */
typedef struct renumbering {
    hp_graph old;
    const hp_onnx_param *data;
    const onnx_note *note;
    int32_t *tensor, *now;
} renumbering;

/* Moves parameter i of the layer; a tied one has moved already. */
static void number_param(onnx_reader *r, const renumbering *n, hp_layer *l, int i) {
    hp_graph *g = r->graph;
    const int32_t from = l->param[i];
    if (n->now[from] == 0) {
        hp_param *p = &g->param[g->n_param];
        *p = n->old.param[from];
        p->layer = g->n_layer - 1;
        p->init = l->op == HP_PRELU ? HP_INIT_CONSTANT : inits[p->kind];
        p->init_scale = p->kind == HP_PARAM_TABLE ? table_std : l->op == HP_PRELU ? prelu_slope : 0;
        r->data[g->n_param] = n->data[from];
        n->now[from] = ++g->n_param;
    }
    l->param[i] = n->now[from] - 1;
}

static void append(onnx_reader *r, const renumbering *n, const hp_layer *l, hp_tensor t, onnx_note note) {
    hp_graph *g = r->graph;
    const int at = g->n_layer++;
    hp_layer *layer = &g->layer[at];
    *layer = *l;
    layer->out = at;
    g->tensor[at] = t;
    g->tensor[at].producer = at;
    r->note[at] = note;
    for (int i = 0; i < layer->n_param; i++) number_param(r, n, layer, i);
}

/* (O, I) becomes (I, O). */
static void turn_weight(onnx_reader *r, hp_param *p, hp_onnx_param *d) {
    const int64_t outs = p->dim[0], ins = p->dim[1];
    float *f = d->data ? HP_NEW(r->arena, float, p->count) : NULL;
    for (int64_t i = 0; f && i < p->count; i++) f[i % ins * outs + i / ins] = d->data[i];
    *d = (hp_onnx_param){.data = f};
    p->dim[0] = (int32_t)ins;
    p->dim[1] = (int32_t)outs;
}

/* Appends a table, or the second of a pair that ranks may split. Its bias moves to the layer that adds up. */
static void append_row(onnx_reader *r, const renumbering *n, const hp_layer *l, hp_tensor t, onnx_note note) {
    hp_graph *g = r->graph;
    hp_layer row = *l;
    row.n_param = 1;
    append(r, n, &row, t, (onnx_note){0});
    if (l->op == HP_CONV) turn_weight(r, &g->param[g->n_param - 1], &r->data[g->n_param - 1]);
    const char *name = hp_arena_printf(r->scratch, "%s.sum", l->name);
    const hp_layer sum = {.name = onnx_unique(r->arena, &r->layer_names, name),
                          .op = HP_SUM,
                          .n_in = 1,
                          .in = {g->n_layer - 1},
                          .n_param = l->n_param - 1,
                          .param = {l->n_param > 1 ? l->param[1] : 0}};
    append(r, n, &sum, t, note);
}

/* Drops layers that the output does not need, with their parameters. */
static void drop_dead(onnx_reader *r, const bool *live, const int8_t *tp) {
    hp_graph *g = r->graph;
    const renumbering n = {*g, r->data, r->note, HP_NEW(r->scratch, int32_t, g->n_tensor),
                           HP_NEW(r->scratch, int32_t, g->n_param + 1)};
    g->layer = HP_NEW(r->arena, hp_layer, 2 * g->n_layer);
    g->tensor = HP_NEW(r->arena, hp_tensor, 2 * g->n_layer);
    g->param = HP_NEW(r->arena, hp_param, g->n_param + 1);
    r->data = HP_NEW(r->arena, hp_onnx_param, g->n_param + 1);
    r->note = HP_NEW(r->scratch, onnx_note, 2 * g->n_layer);
    g->n_layer = g->n_param = 0;
    for (int l = 0; l < n.old.n_layer; l++) {
        hp_layer layer = n.old.layer[l];
        if (!live[l]) continue;
        for (int k = 0; k < layer.n_in; k++) layer.in[k] = n.tensor[layer.in[k]];
        layer.tp = tp[l];
        (tp[l] == HP_TP_ROW ? append_row : append)(r, &n, &layer, n.old.tensor[layer.out], n.note[layer.out]);
        n.tensor[layer.out] = g->n_layer - 1;
    }
    g->n_tensor = g->n_layer;
}

/* --- units --- */

/* A tensor that is read again more than this many layers later is a skip across units. */
enum { FAR = 16, LONG = 32 };

static bool begins_unit(const hp_layer *l) {
    static const bool begins[HP_LAYER_OPS] = {
        [HP_CONV] = true,    [HP_CONVT] = true,  [HP_LINEAR] = true,    [HP_MAXPOOL] = true,
        [HP_AVGPOOL] = true, [HP_RESIZE] = true, [HP_LAYERNORM] = true, [HP_GROUPNORM] = true,
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
    const bool *live = onnx_live(r, output);
    drop_dead(r, live, onnx_shared(r, live, output));
    set_units(r);
    list_qparams(r, m);
    g->net = net_name(r);
    g->classes = g->tensor[g->n_tensor - 1].c;
    m->graph = g;
    m->param = r->weights ? r->data : NULL;
    return HP_OK;
}
