/* summands.c - see summands.h. */
#include "networks/graph/summands.h"

#include <string.h>

/* --- marking --- */

/* Does each output channel depend only on the same channel of the inputs? */
static bool keeps_channels(const hp_layer *l) {
    return l->op == HP_ACT || l->op == HP_DROPOUT || (l->op == HP_MUL && l->n_in == 2);
}

/* Channels of queries, keys and values are split by head. */
static void mark_heads(hp_graph *g, const hp_layer *l) {
    for (int k = 0; k < l->n_in; k++) {
        hp_tensor *x = &g->tensor[l->in[k]];
        if (x->tp_unit > 0) x->tp_unit = x->c / (k ? l->attention.kv_heads : l->groups);
    }
}

static int32_t unit_of(const hp_graph *g, const hp_layer *l) {
    if (l->tp == (int32_t)HP_TP_COLUMN) return 1;
    if (l->tp == (int32_t)HP_TP_ROW) return g->tensor[l->out].c / hp_summands(l);
    const int32_t in = l->n_in > 0 ? g->tensor[l->in[0]].tp_unit : 0;
    if (l->op == HP_ATTENTION) return in > 0 ? hp_head_channels(g, l) : 0;
    return keeps_channels(l) && g->layer[g->tensor[l->in[0]].producer].tp != (int32_t)HP_TP_ROW ? in : 0;
}

void hp_graph_mark_split(hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++) {
        if (g->layer[l].op == HP_ATTENTION) mark_heads(g, &g->layer[l]);
        g->tensor[g->layer[l].out].tp_unit = unit_of(g, &g->layer[l]);
    }
}

/* --- the network for n ranks --- */

int hp_graph_summands(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].tp == (int32_t)HP_TP_ROW) return hp_summands(&g->layer[l]);
    return 0;
}

hp_graph *hp_graph_with_summands(hp_arena *arena, const hp_graph *g, int n) {
    hp_graph *out = HP_NEW(arena, hp_graph, 1);
    *out = *g;
    out->layer = HP_NEW(arena, hp_layer, g->n_layer);
    out->tensor = HP_NEW(arena, hp_tensor, g->n_tensor);
    memcpy(out->layer, g->layer, sizeof *g->layer * (size_t)g->n_layer);
    memcpy(out->tensor, g->tensor, sizeof *g->tensor * (size_t)g->n_tensor);
    for (int l = 0; l < g->n_layer; l++) {
        hp_layer *layer = &out->layer[l];
        const bool row = layer->tp == (int32_t)HP_TP_ROW;
        if (row) out->tensor[layer->out].c = g->tensor[layer->out].c / hp_summands(layer) * n;
        if (row || layer->op == HP_SUM) layer->summands = n;
    }
    return out;
}

/* --- summands --- */

hp_summand hp_summand_at(const hp_graph *g, const hp_layer *l, int k) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    const bool table = l->op == HP_EMBEDDING;
    const int n = hp_summands(l), width = g->tensor[l->out].c / n;
    const int64_t unit = !table && x->tp_unit > 0 ? x->tp_unit : 1,
                  units = table ? g->param[l->param[0]].dim[0] : x->c / unit;
    return (hp_summand){.in_lo = (int32_t)(units * k / n * unit),
                        .in_hi = (int32_t)(units * (k + 1) / n * unit),
                        .out_lo = k * width,
                        .out_hi = (k + 1) * width};
}
