/* deploy_store.c - chooses how inference stores each tensor, and inserts the conversions between stores. */
#include "networks/deploy/deploy_inside.h"
#include "base/alloc.h"
#include "networks/graph/shape.h"

#include <string.h>

/* --- peak memory of an order of layers --- */

static int64_t stored_bytes(const hp_graph *g, int tensor) {
    static const int bytes[HP_STORES] = {4, 1, 2, 2};
    return hp_tensor_elems(g, tensor) * bytes[g->tensor[tensor].store];
}

/* The input whose memory the output reuses; -1: none. Same rule as the lowering
 * (plan/lower/lower_layers.c). */
static int replaced_input(const hp_graph *g, int layer, const int32_t *last) {
    const hp_layer *l = &g->layer[layer];
    const bool elementwise = l->op == HP_ACT || l->op == HP_ADD || l->op == HP_BN || l->op == HP_SCALE;
    if (!hp_layer_adds(l) && !elementwise) return -1;
    const int x = l->in[hp_layer_adds(l) ? l->n_in - 1 : 0];
    for (int k = 0, n = 0; k < l->n_in; k++)
        if (l->in[k] == x && n++) return -1; /* the layer reads it twice */
    return last[x] == layer && g->tensor[x].store == g->tensor[l->out].store ? x : -1;
}

int64_t hp_graph_live_bytes(const hp_graph *g) {
    int32_t *last = hp_zeroed((size_t)g->n_tensor, sizeof *last);
    int64_t live = 0, most = 0;
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; k < g->layer[l].n_in; k++) last[g->layer[l].in[k]] = l;
    for (int l = 0; l < g->n_layer; l++) {
        const hp_layer *layer = &g->layer[l];
        const int replaced = l ? replaced_input(g, l, last) : -1;
        if (replaced < 0) live += stored_bytes(g, layer->out);
        if (live > most) most = live;
        for (int k = 0; k < layer->n_in; k++) {
            const int x = layer->in[k];
            bool before = false; /* a tensor read twice counts once */
            for (int i = 0; i < k; i++) before |= layer->in[i] == x;
            if (last[x] == l && x != replaced && !before) live -= stored_bytes(g, x);
        }
    }
    free(last);
    return most;
}

/* --- which store --- */

typedef struct store_state {
    hp_arena *arena;
    const hp_graph *g;
    const hp_deploy_options *o;
    hp_store low;
    hp_graph *out;
    hp_tensor *tensor; /* tensors of the new graph, in order; the first n_tensor are g's */
    int32_t n_tensor, room, layer_room;
    int32_t *other; /* per tensor of g: its copy in the other store; -1: none */
} store_state;

static bool is_map(const hp_graph *g, int tensor) {
    return (int64_t)g->tensor[tensor].h * g->tensor[tensor].w > 1;
}

static bool is_listed(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = list; at && (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == 0)) return true;
    return false;
}

static bool kept_real(const store_state *s, const hp_layer *l) {
    return is_listed(s->o->float_layers, l->name);
}

/* Does a layer that runs as in training, on real numbers, read it? */
static bool read_as_trained(const store_state *s, int32_t tensor) {
    for (int l = s->g->tensor[tensor].producer + 1; l < s->g->n_layer; l++)
        for (int k = 0; k < s->g->layer[l].n_in; k++)
            if (s->g->layer[l].in[k] == tensor && hp_layer_as_trained(&s->g->layer[l])) return true;
    return false;
}

/* Matrix layers read the low store wherever possible, even if other readers need real numbers. */
static bool computes_low(const store_state *s, int layer) {
    static const bool may[HP_LAYER_OPS] = {
        [HP_CONV] = true,    [HP_CONVT] = true,  [HP_BN] = true,     [HP_ACT] = true,
        [HP_ADD] = true,     [HP_MUL] = true,    [HP_SCALE] = true,  [HP_MAXPOOL] = true,
        [HP_AVGPOOL] = true, [HP_CONCAT] = true, [HP_RESIZE] = true, [HP_PAD] = true,
    };
    enum { RAW_CHANNELS = 4 }; /* channels of an image stored as bytes */
    const hp_layer *l = &s->g->layer[layer];
    if (s->low == HP_STORE_REAL || layer == s->g->n_layer - 1 || !is_map(s->g, l->out)) return false;
    if (l->op == HP_INPUT)
        return s->low == HP_STORE_U8 && s->g->image_c <= RAW_CHANNELS && !hp_graph_ids(s->g) &&
               !kept_real(s, l);
    return may[l->op] && !kept_real(s, l);
}

/* Does a matrix layer read real numbers only because the layer before it runs as in training? Such layers
 * convert their input, as all of them but the last do anyway (a GPT's head has a third of the products). */
static bool reads_trained(const store_state *s, int layer) {
    const hp_layer *l = &s->g->layer[layer];
    const int32_t from = s->g->tensor[l->in[0]].producer;
    return is_map(s->g, l->in[0]) && hp_layer_as_trained(&s->g->layer[from]) && !kept_real(s, l);
}

/* The store in which the layer must read input `k`; -1: either. `low`: its output is stored low. */
static int required_store(const store_state *s, int layer, int k, bool low) {
    const hp_layer *l = &s->g->layer[layer];
    const bool matrix = l->op == HP_CONV || l->op == HP_CONVT;
    const bool scales = l->op == HP_CONCAT && (l->n_param || l->act); /* scales each input separately */
    const bool either = matrix && k == 0 && !computes_low(s, layer) && !kept_real(s, l);
    if (matrix && k == 0 && (computes_low(s, layer) || reads_trained(s, layer))) return (int)s->low;
    if (l->op == HP_ADAPTPOOL || scales || either) return -1;
    if (!low || (l->op == HP_MUL && k == 1 && !is_map(s->g, l->in[k]))) return HP_STORE_REAL;
    return (int)s->low;
}

static int32_t append_tensor(store_state *s, hp_tensor t) {
    HP_ROOM(s->arena, s->tensor, s->n_tensor, s->room);
    s->tensor[s->n_tensor] = t;
    return s->n_tensor++;
}

static void append_layer(store_state *s, hp_layer l) {
    HP_ROOM(s->arena, s->out->layer, s->out->n_layer, s->layer_room);
    s->out->layer[s->out->n_layer++] = l;
}

/* Returns the tensor in the other store. It is converted once, before the first layer that reads it so. */
static int32_t converted_tensor(store_state *s, int32_t tensor, hp_store to, int unit) {
    if (s->other[tensor] >= 0) return s->other[tensor];
    const hp_layer *from = &s->g->layer[s->g->tensor[tensor].producer];
    hp_tensor t = s->tensor[tensor];
    t.store = (int32_t)to;
    s->other[tensor] = append_tensor(s, t);
    append_layer(s, (hp_layer){.name = hp_arena_printf(s->arena, "%s.%s", from->name,
                                                       to == HP_STORE_REAL ? "real" : "low"),
                               .op = to == HP_STORE_REAL ? HP_DEQUANT : HP_QUANT,
                               .n_in = 1,
                               .in = {tensor},
                               .out = s->other[tensor],
                               .unit = unit});
    return s->other[tensor];
}

static void store_layer(store_state *s, int layer) {
    hp_layer l = s->g->layer[layer];
    const bool low = computes_low(s, layer) && !read_as_trained(s, l.out);
    s->tensor[l.out].store = low ? (int32_t)s->low : HP_STORE_REAL;
    for (int k = 0; k < l.n_in; k++) {
        const int want = required_store(s, layer, k, low);
        /* raw pixels are not a quantised tensor: only a convolution reads them directly */
        const bool raw = s->g->tensor[l.in[k]].producer == 0 && s->tensor[l.in[k]].store == HP_STORE_U8;
        const bool reads_raw = l.op == HP_CONV && k == 0 && want != HP_STORE_REAL;
        if (raw && !reads_raw) {
            l.in[k] = converted_tensor(s, l.in[k], HP_STORE_REAL, l.unit);
            if (want == (int)s->low) {
                const int32_t real = l.in[k];
                hp_tensor t = s->tensor[real];
                t.store = (int32_t)s->low;
                l.in[k] = append_tensor(s, t);
                append_layer(s, (hp_layer){.name = hp_arena_printf(s->arena, "%s.in%d", l.name, k),
                                           .op = HP_QUANT,
                                           .n_in = 1,
                                           .in = {real},
                                           .out = l.in[k],
                                           .unit = l.unit});
            }
            continue;
        }
        if (want >= 0 && s->tensor[l.in[k]].store != want)
            l.in[k] = converted_tensor(s, l.in[k], (hp_store)want, l.unit);
    }
    append_layer(s, l);
}

static hp_status check_list(const hp_graph *g, const char *list, hp_error *err) {
    for (const char *at = list; at && *at;) {
        const size_t n = strcspn(at, ",");
        bool found = false;
        for (int l = 0; l < g->n_layer; l++)
            found |= strlen(g->layer[l].name) == n && strncmp(g->layer[l].name, at, n) == 0;
        if (!found)
            return hp_fail(err, HP_EUSAGE, "%s has no layer `%.*s` to keep real; `hplan explain` lists them",
                           g->net, (int)n, at);
        at += n + (at[n] == ',');
    }
    return HP_OK;
}

/* Matrix layers quantise their input themselves. */
static void set_dynamic(hp_graph *g, const hp_deploy_options *o) {
    for (int l = 0; l < g->n_layer; l++) {
        hp_layer *layer = &g->layer[l];
        const bool matrix = layer->op == HP_CONV || layer->op == HP_CONVT || layer->op == HP_LINEAR;
        layer->deployed.dynamic =
            o->prec == HP_PREC_INT8_DYNAMIC && matrix && !is_listed(o->float_layers, layer->name);
    }
}

hp_status hp_deploy_stores(hp_arena *arena, hp_graph *g, const hp_deploy_options *o, hp_error *err) {
    HP_TRY(check_list(g, o->float_layers, err));
    set_dynamic(g, o);
    if (hp_prec_store(o->prec) == HP_STORE_REAL) return HP_OK;
    hp_graph out = *g;
    out.layer = NULL;
    out.n_layer = 0;
    store_state s = {.arena = arena, .g = g, .o = o, .low = hp_prec_store(o->prec), .out = &out};
    s.other = HP_NEW(arena, int32_t, g->n_tensor);
    memset(s.other, -1, sizeof *s.other * (size_t)g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) append_tensor(&s, g->tensor[t]);
    HP_ASSERT(s.tensor); /* every graph has some */
    for (int l = 0; l < g->n_layer; l++) store_layer(&s, l);
    hp_deploy_renumber(arena, &out, s.tensor, s.n_tensor);
    *g = out;
    return HP_OK;
}
