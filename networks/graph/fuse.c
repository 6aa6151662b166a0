/* fuse.c - fuses batch norm (+ add) (+ activation) and add (+ activation) into one layer each, so that both
 * interpreters see the tasks that actually run. */
#include "networks/graph/fuse.h"

#include "networks/graph/shape.h"

#include <string.h>

typedef struct fuse_state {
    const hp_graph *g;
    hp_layer *layer; /* copies of g's layers; a host absorbs others */
    int32_t *uses;   /* per tensor: number of reads */
    int32_t *reader; /* per tensor: a layer that reads it */
    bool *absorbed;  /* per layer: fused into a host */
} fuse_state;

static void count_uses(fuse_state *s) {
    for (int l = 0; l < s->g->n_layer; l++)
        for (int i = 0; i < s->layer[l].n_in; i++) {
            s->uses[s->layer[l].in[i]]++;
            s->reader[s->layer[l].in[i]] = l;
        }
}

/* The only reader of the layer's output, if it has this operator and is in the same unit; otherwise NULL. */
static hp_layer *sole_reader(fuse_state *s, const hp_layer *host, int op) {
    if (s->uses[host->out] != 1) return NULL;
    hp_layer *r = &s->layer[s->reader[host->out]];
    return r->op == op && r->unit == host->unit ? r : NULL;
}

static void absorb_layer(fuse_state *s, hp_layer *host, const hp_layer *taken) {
    s->absorbed[taken - s->layer] = true;
    host->out = taken->out;
    host->act = taken->act;
    host->act_arg.a = taken->act_arg.a;
    host->act_arg.b = taken->act_arg.b;
}

static void absorb_add(fuse_state *s, hp_layer *bn) {
    const hp_layer *add = sole_reader(s, bn, HP_ADD);
    if (!add || bn->n_in != 1 || hp_act_reads_x(add)) return;
    const int other = add->in[0] == bn->out ? add->in[1] : add->in[0];
    if (s->g->tensor[other].producer > bn - s->layer)
        return; /* the other summand is not computed yet: its own norm may absorb the add */
    bn->in[bn->n_in++] = other;
    absorb_layer(s, bn, add);
}

static void absorb_act(fuse_state *s, hp_layer *host) {
    const hp_layer *act = sole_reader(s, host, HP_ACT);
    if (act && !hp_act_reads_x(act)) absorb_layer(s, host, act);
}

static void fuse_layer(fuse_state *s, int l) {
    hp_layer *host = &s->layer[l];
    if (s->absorbed[l] || hp_layer_has_act(host)) return;
    if (host->op == HP_BN) absorb_add(s, host);
    if ((host->op == HP_BN || host->op == HP_ADD) && !hp_layer_has_act(host)) absorb_act(s, host);
}

/* Emits the remaining layers, renumbered, with tensors in the order of their producers. */
static void emit_layers(const fuse_state *s, hp_graph *out) {
    int32_t *tensor_id = s->uses; /* reused as: old tensor -> new tensor */
    for (int l = 0; l < s->g->n_layer; l++) {
        if (s->absorbed[l]) continue;
        const int id = out->n_layer++;
        hp_layer *layer = &out->layer[id];
        *layer = s->layer[l];
        for (int i = 0; i < layer->n_in; i++) layer->in[i] = tensor_id[layer->in[i]];
        tensor_id[layer->out] = id;
        out->tensor[id] = s->g->tensor[layer->out];
        out->tensor[id].producer = id;
        layer->out = id;
        for (int i = 0; i < layer->n_param; i++)
            if (s->g->param[layer->param[i]].layer == l) out->param[layer->param[i]].layer = id;
    }
    out->n_tensor = out->n_layer;
}

hp_graph *hp_graph_fuse(hp_arena *arena, const hp_graph *g) {
    hp_arena *scratch = hp_arena_new();
    fuse_state s = {.g = g,
                    .layer = HP_NEW(scratch, hp_layer, g->n_layer),
                    .uses = HP_NEW(scratch, int32_t, g->n_tensor),
                    .reader = HP_NEW(scratch, int32_t, g->n_tensor),
                    .absorbed = HP_NEW(scratch, bool, g->n_layer)};
    memcpy(s.layer, g->layer, sizeof *g->layer * (size_t)g->n_layer);
    count_uses(&s);
    for (int l = 0; l < g->n_layer; l++) fuse_layer(&s, l);

    hp_graph *out = HP_NEW(arena, hp_graph, 1);
    *out = *g;
    out->n_layer = 0;
    out->layer = HP_NEW(arena, hp_layer, g->n_layer);
    out->tensor = HP_NEW(arena, hp_tensor, g->n_layer);
    out->param = HP_NEW(arena, hp_param, g->n_param);
    if (g->n_param) memcpy(out->param, g->param, sizeof *g->param * (size_t)g->n_param);
    emit_layers(&s, out);
    hp_graph_index_units(arena, out);
    hp_arena_free(scratch);
    return out;
}
