/* onnx_tokens_share.c - pairs of linear layers that tensor-parallel ranks may split
 * (networks/graph/summands.h): queries, keys and values with the layer after attention, the two layers of a
 * perceptron, and a text's table of ids with its head. */
#include "networks/onnx/onnx_inside.h"

typedef struct pairs {
    const hp_graph *g;
    int32_t *uses, *reader; /* per tensor: number of layers that read it, and the last one */
    int8_t *tp;
} pairs;

/* Is it a matrix product per pixel whose weights no other layer shares? */
static bool is_linear(const pairs *p, const hp_layer *l) {
    return l->op == HP_CONV && !hp_layer_has_act(l) && p->g->param[l->param[0]].kind == HP_PARAM_LINEAR_W;
}

static int32_t only_reader(const pairs *p, int32_t tensor) {
    return p->uses[tensor] == 1 ? p->reader[tensor] : -1;
}

/* The linear layer that is the tensor's only reader, possibly through an activation; -1 if none. */
static int32_t second_of(const pairs *p, int32_t tensor) {
    int32_t l = only_reader(p, tensor);
    if (l >= 0 && p->g->layer[l].op == HP_ACT) l = only_reader(p, p->g->layer[l].out);
    return l >= 0 && is_linear(p, &p->g->layer[l]) && p->tp[l] == HP_TP_NONE ? l : -1;
}

static bool first_of(const pairs *p, int32_t tensor) {
    const int32_t l = p->g->tensor[tensor].producer;
    return is_linear(p, &p->g->layer[l]) && p->uses[tensor] == 1 && p->tp[l] == HP_TP_NONE;
}

static void mark_attention(const pairs *p, const hp_layer *l) {
    const int32_t second = second_of(p, l->out);
    bool all = second >= 0;
    for (int k = 0; k < l->n_in && all; k++) all = first_of(p, l->in[k]);
    if (!all) return;
    for (int k = 0; k < l->n_in; k++) p->tp[p->g->tensor[l->in[k]].producer] = HP_TP_COLUMN;
    p->tp[second] = HP_TP_ROW;
}

static void mark_perceptron(const pairs *p, const hp_layer *act) {
    const int32_t second = only_reader(p, act->out);
    if (!first_of(p, act->in[0]) || second < 0 || second_of(p, act->out) != second) return;
    p->tp[p->g->tensor[act->in[0]].producer] = HP_TP_COLUMN;
    p->tp[second] = HP_TP_ROW;
}

/* Text models: splits the rows of the table, and the logits of these rows. */
static void mark_vocabulary(const pairs *p, const hp_layer *table, int32_t output) {
    const int32_t head = p->g->tensor[output].producer;
    const hp_layer *l = &p->g->layer[head];
    const bool pixels = l->op == HP_CONV && !hp_layer_has_act(l) && p->g->param[l->param[0]].n_dim == 2;
    const bool tied = pixels && l->param[0] == table->param[0];
    if (!tied || table->in[0] != 0 || p->tp[head] != HP_TP_NONE) return;
    p->tp[head] = HP_TP_COLUMN;
    p->tp[p->g->tensor[table->out].producer] = HP_TP_ROW;
}

const int8_t *onnx_shared(const onnx_reader *r, const bool *live, int32_t output) {
    const hp_graph *g = r->graph;
    const pairs p = {g, HP_NEW(r->scratch, int32_t, g->n_tensor), HP_NEW(r->scratch, int32_t, g->n_tensor),
                     HP_NEW(r->scratch, int8_t, g->n_layer)};
    p.uses[output]++;
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; live[l] && k < g->layer[l].n_in; k++) {
            p.uses[g->layer[l].in[k]]++;
            p.reader[g->layer[l].in[k]] = l;
        }
    for (int l = 0; l < g->n_layer; l++) {
        if (live[l] && g->layer[l].op == HP_ATTENTION) mark_attention(&p, &g->layer[l]);
        if (live[l] && g->layer[l].op == HP_ACT) mark_perceptron(&p, &g->layer[l]);
        if (live[l] && g->layer[l].op == HP_EMBEDDING) mark_vocabulary(&p, &g->layer[l], output);
    }
    return p.tp;
}
