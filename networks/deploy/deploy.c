/* deploy.c - folding and fusing for inference, and the order of layers; see deploy.h. deploy_store.c chooses
 * the stores. */
#include "networks/deploy/deploy.h"

#include "base/round.h"
#include "networks/deploy/deploy_inside.h"
#include "networks/graph/shape.h"
#include "networks/graph/layer.h"
#include "networks/graph/summands.h"

#include <string.h>

typedef struct fold_state {
    const hp_graph *g;
    hp_layer *layer;      /* copies of g's layers; a host absorbs others and moves to their place */
    int32_t *uses;        /* per tensor: number of reads; the logits have one more */
    int32_t *replaced_by; /* per tensor: the tensor that replaces it (dropout's input for its output) */
    int32_t *at;          /* per layer: the layer at whose place it is now computed; -1: removed */
} fold_state;

static int32_t replacement_of(const fold_state *s, int32_t tensor) {
    while (s->replaced_by[tensor] != tensor) tensor = s->replaced_by[tensor];
    return tensor;
}

static bool can_fuse_anywhere(const hp_layer *l) {
    return hp_act_infos[l->act].kind != HP_ACT_IS_ALONE;
}

/* The layer that produces the tensor, if `reader` is its only user and no activation has been fused into it
 * yet. */
static hp_layer *fusable_producer(const fold_state *s, int32_t tensor) {
    hp_layer *h = &s->layer[s->g->tensor[tensor].producer];
    return s->uses[tensor] == 1 && h->op != HP_INPUT && !hp_layer_has_act(h) ? h : NULL;
}

/* The host also computes layer `l`, at that layer's place. */
static void absorb_layer(fold_state *s, hp_layer *host, int l) {
    const hp_layer *taken = &s->layer[l];
    const int h = (int)(host - s->layer);
    host->act = taken->act;
    host->act_arg.a = taken->act_arg.a;
    host->act_arg.b = taken->act_arg.b;
    s->at[h] = l;
    s->at[l] = -1;
    s->replaced_by[taken->out] = host->out;
    s->uses[host->out] = s->uses[taken->out];
}

static void fold_norm(fold_state *s, int l) {
    hp_layer *bn = &s->layer[l], *host = fusable_producer(s, bn->in[0]);
    if (!host || !hp_layer_is_matrix(host) || host->deployed.n_norm || host->n_in > 1) return;
    if (bn->n_in > 1 && host->op == HP_LINEAR) return;
    if (!can_fuse_anywhere(bn)) return;
    memcpy(host->deployed.norm, bn->param, sizeof host->deployed.norm);
    host->deployed.n_norm = HP_NORM_PARAMS;
    host->eps = bn->eps;
    if (bn->n_in > 1) host->in[host->n_in++] = bn->in[1];
    absorb_layer(s, host, l);
}

static void fold_add(fold_state *s, int l) {
    hp_layer *add = &s->layer[l];
    if (add->in[0] == add->in[1] || !can_fuse_anywhere(add)) return;
    /* the later of the two is more likely to have absorbed the other already */
    for (int k = 1; k >= 0; k--) {
        hp_layer *host = fusable_producer(s, add->in[k]);
        if (!host || (host->op != HP_CONV && host->op != HP_CONVT) || host->n_in > 1) continue;
        host->in[host->n_in++] = add->in[1 - k];
        absorb_layer(s, host, l);
        return;
    }
}

static void fold_act(fold_state *s, int l) {
    hp_layer *host = fusable_producer(s, s->layer[l].in[0]);
    const bool takes = host && (hp_layer_is_matrix(host) || host->op == HP_BN || host->op == HP_ADD ||
                                host->op == HP_MUL || host->op == HP_SCALE);
    if (takes && can_fuse_anywhere(&s->layer[l])) absorb_layer(s, host, l);
}

/* All ranks hold the whole linear layer. A row layer's weights (I, O) are those of a 1x1 transposed
 * convolution. */
static void join_shares(hp_layer *layer) {
    HP_ASSERT(hp_summands(layer) == 1);
    if (layer->tp == (int32_t)HP_TP_ROW && layer->op == HP_CONV) layer->op = HP_CONVT;
    layer->tp = HP_TP_NONE;
}

/* A row layer with a single block takes the sum's bias. */
static void fold_sum(fold_state *s, int l) {
    const hp_layer *sum = &s->layer[l];
    hp_layer *host = fusable_producer(s, sum->in[0]);
    const bool table = host && host->op == HP_EMBEDDING && sum->n_param == 0;
    if (!host || (host->op != HP_CONVT && !table) || host->n_param > 1) return;
    if (sum->n_param > 0) host->param[host->n_param++] = sum->param[0];
    absorb_layer(s, host, l);
}

static void fold_layer(fold_state *s, int l) {
    hp_layer *layer = &s->layer[l];
    join_shares(layer);
    for (int k = 0; k < layer->n_in; k++) layer->in[k] = replacement_of(s, layer->in[k]);
    if (layer->op == HP_DROPOUT) {
        s->replaced_by[layer->out] = layer->in[0];
        s->uses[layer->in[0]] += s->uses[layer->out] - 1;
        s->at[l] = -1;
    }
    if (layer->op == HP_BN) fold_norm(s, l);
    if (layer->op == HP_ADD) fold_add(s, l);
    if (layer->op == HP_SUM) fold_sum(s, l);
    if (layer->op == HP_ACT) fold_act(s, l);
}

static void count_uses(fold_state *s) {
    for (int l = 0; l < s->g->n_layer; l++)
        for (int k = 0; k < s->g->layer[l].n_in; k++) s->uses[s->g->layer[l].in[k]]++;
    s->uses[s->g->layer[s->g->n_layer - 1].out]++;
}

/* Emits the layers in the order of their new places. A host keeps the unit of the layer it absorbed, so units
 * stay contiguous. */
static hp_graph *emit_layers(hp_arena *arena, const fold_state *s) {
    const hp_graph *g = s->g;
    hp_graph *out = HP_NEW(arena, hp_graph, 1);
    *out = *g;
    out->deployed = 1;
    out->layer = HP_NEW(arena, hp_layer, g->n_layer);
    out->n_layer = 0;
    int32_t *here = HP_NEW(arena, int32_t, g->n_layer); /* per place: the layer computed there */
    memset(here, -1, sizeof *here * (size_t)g->n_layer);
    for (int l = 0; l < g->n_layer; l++)
        if (s->at[l] >= 0) here[s->at[l]] = l;
    for (int l = 0; l < g->n_layer; l++) {
        if (here[l] < 0) continue;
        out->layer[out->n_layer] = s->layer[here[l]];
        out->layer[out->n_layer++].unit = g->layer[l].unit;
    }
    return out;
}

static hp_graph *fold_layers(hp_arena *arena, const hp_graph *g) {
    hp_arena *scratch = hp_arena_new();
    fold_state s = {g, HP_NEW(scratch, hp_layer, g->n_layer), HP_NEW(scratch, int32_t, g->n_tensor),
                    HP_NEW(scratch, int32_t, g->n_tensor), HP_NEW(scratch, int32_t, g->n_layer)};
    memcpy(s.layer, g->layer, sizeof *g->layer * (size_t)g->n_layer);
    for (int t = 0; t < g->n_tensor; t++) s.replaced_by[t] = t;
    for (int l = 0; l < g->n_layer; l++) s.at[l] = l;
    count_uses(&s);
    for (int l = 0; l < g->n_layer; l++) fold_layer(&s, l);
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; k < s.layer[l].n_in; k++) s.layer[l].in[k] = replacement_of(&s, s.layer[l].in[k]);
    hp_graph *out = emit_layers(arena, &s);
    hp_arena_free(scratch);
    return out;
}

/* Renumbers tensors and parameters in the order of layers; drops units left without a layer. */
void hp_deploy_renumber(hp_arena *arena, hp_graph *g, const hp_tensor *old, int n_old) {
    int32_t *id = HP_NEW(arena, int32_t, n_old);
    int unit = -1, last = -1;
    g->tensor = HP_NEW(arena, hp_tensor, g->n_layer);
    for (int l = 0; l < g->n_layer; l++) {
        hp_layer *layer = &g->layer[l];
        for (int k = 0; k < layer->n_in; k++) layer->in[k] = id[layer->in[k]];
        g->tensor[l] = old[layer->out];
        g->tensor[l].producer = l;
        id[layer->out] = l;
        layer->out = l;
        if (layer->unit != last) unit++;
        last = layer->unit;
        layer->unit = unit;
    }
    g->n_tensor = g->n_layer;
    hp_graph_index_units(arena, g);
}

/* --- global pools --- */

static bool is_global_pool(const hp_graph *g, const hp_layer *l) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    return l->op == HP_ADAPTPOOL && l->out_h == 1 && l->out_w == 1 && x->h > 1 && x->w > 1;
}

static void split_pools(hp_arena *arena, hp_graph *g) {
    int pools = 0;
    for (int l = 1; l < g->n_layer; l++) pools += is_global_pool(g, &g->layer[l]);
    if (!pools) return;
    const hp_layer *old = g->layer;
    const int n = g->n_layer;
    hp_tensor *tensor = HP_NEW(arena, hp_tensor, g->n_tensor + pools);
    int n_tensor = g->n_tensor;
    memcpy(tensor, g->tensor, sizeof *tensor * (size_t)n_tensor);
    g->layer = HP_NEW(arena, hp_layer, n + pools);
    g->n_layer = 0;
    for (int l = 0; l < n; l++) {
        hp_layer layer = old[l];
        if (l > 0 && is_global_pool(g, &layer)) {
            hp_layer rows = layer;
            rows.name = hp_arena_printf(arena, "%s.rows", layer.name);
            rows.out_h = tensor[layer.in[0]].h;
            rows.out = n_tensor;
            tensor[n_tensor] = tensor[layer.out];
            tensor[n_tensor++].h = rows.out_h;
            layer.in[0] = rows.out;
            g->layer[g->n_layer++] = rows;
        }
        g->layer[g->n_layer++] = layer;
    }
    hp_deploy_renumber(arena, g, tensor, n_tensor);
}

static void copy_params(hp_arena *arena, hp_graph *g) {
    hp_param *param = HP_NEW(arena, hp_param, g->n_param + 1);
    if (g->n_param) memcpy(param, g->param, sizeof *param * (size_t)g->n_param);
    g->param = param;
    for (int l = g->n_layer - 1; l >= 0; l--) { /* a tied parameter belongs to the first of its layers */
        for (int i = 0; i < g->layer[l].n_param; i++) param[g->layer[l].param[i]].layer = l;
        for (int i = 0; i < g->layer[l].deployed.n_norm; i++) param[g->layer[l].deployed.norm[i]].layer = l;
    }
}

/* --- order --- */

typedef struct order_state {
    const hp_graph *g;
    const int32_t *producer; /* per tensor: layer */
    int32_t *rank;           /* per layer: position; -1: not placed yet */
    int n;
} order_state;

static void visit(order_state *s, int l) {
    if (s->rank[l] >= 0) return;
    s->rank[l] = INT32_MAX; /* being visited; graphs have no cycles */
    for (int k = 0; k < s->g->layer[l].n_in; k++) visit(s, s->producer[s->g->layer[l].in[k]]);
    s->rank[l] = s->n++;
}

/* Depth first from the output, first inputs first, sorted by unit: every branch runs as late as its reader
 * allows. */
static hp_graph *late_branches(hp_arena *arena, const hp_graph *g, const int32_t *producer) {
    enum { MOST = 8192 }; /* layers: visit() recurses once per layer on a path */
    order_state s = {g, producer, HP_NEW(arena, int32_t, g->n_layer), 0};
    if (g->n_layer > MOST) return NULL;
    memset(s.rank, -1, sizeof *s.rank * (size_t)g->n_layer);
    visit(&s, 0);
    visit(&s, g->n_layer - 1);
    for (int l = 0; l < g->n_layer; l++) visit(&s, l); /* layers that no output needs */
    hp_graph *out = HP_NEW(arena, hp_graph, 1);
    *out = *g;
    out->layer = HP_NEW(arena, hp_layer, g->n_layer);
    int32_t *by_rank = HP_NEW(arena, int32_t, g->n_layer);
    for (int l = 0; l < g->n_layer; l++) by_rank[s.rank[l]] = l;
    int32_t *next = HP_NEW(arena, int32_t, g->n_layer + 1); /* per unit: place of its next layer */
    for (int l = 0; l < g->n_layer; l++) next[g->layer[l].unit + 1]++;
    for (int u = 0; u < g->n_layer; u++) next[u + 1] += next[u];
    for (int r = 0; r < g->n_layer; r++) {
        const hp_layer *layer = &g->layer[by_rank[r]];
        out->layer[next[layer->unit]++] = *layer;
    }
    return out->layer[g->n_layer - 1].out == g->layer[g->n_layer - 1].out ? out : NULL;
}

static int32_t *producers(hp_arena *arena, const hp_graph *g, int n_tensor) {
    int32_t *p = HP_NEW(arena, int32_t, n_tensor);
    for (int l = 0; l < g->n_layer; l++) p[g->layer[l].out] = l;
    return p;
}

bool hp_layer_as_trained(const hp_layer *l) {
    static const bool kept[HP_LAYER_OPS] = {
        [HP_LAYERNORM] = true, [HP_RMSNORM] = true,    [HP_ATTENTION] = true, [HP_EMBEDDING] = true,
        [HP_POSITION] = true,  [HP_CLASSTOKEN] = true, [HP_CROP] = true,      [HP_MERGE] = true,
        [HP_PRELU] = true,     [HP_GATHER] = true,     [HP_REDUCE] = true,    [HP_GROUPNORM] = true};
    return kept[l->op];
}

int64_t hp_constant_at(const hp_graph *g, const hp_layer *l, int i, hp_dtype real) {
    enum { LINES = 64 };
    int64_t at = 0;
    for (int k = 0; k < i; k++) at += hp_round_up(g->param[l->param[k]].count * hp_dtype_bytes(real), LINES);
    return at;
}

hp_status hp_graph_deploy(hp_arena *arena, const hp_graph *g, const hp_deploy_options *o, hp_graph **out,
                          hp_error *err) {
    hp_graph *folded = fold_layers(arena, g);
    hp_deploy_concats(folded);
    hp_graph *late = late_branches(arena, folded, producers(arena, folded, g->n_tensor));
    hp_deploy_renumber(arena, folded, g->tensor, g->n_tensor);
    if (late) {
        hp_deploy_renumber(arena, late, g->tensor, g->n_tensor);
        if (hp_graph_live_bytes(late) < hp_graph_live_bytes(folded)) folded = late;
    }
    split_pools(arena, folded);
    folded->prec = o->prec;
    HP_TRY(hp_deploy_stores(arena, folded, o, err));
    copy_params(arena, folded);
    hp_graph_mark_split(folded);
    *out = folded;
    return HP_OK;
}
