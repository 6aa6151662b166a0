/* legal_training.c - which layers can be trained, and how. Operators that only inference knows have no
 * backward pass. Layers tied to one parameter, such as a head to the table of ids (Press and Wolf 2017),
 * share one copy on each rank, to which all add their gradients. It is not sliced. On several stages its
 * gradient is summed over all their ranks, by an all-reduce after the last backward pass. */
#include "plan/strategy/legal.h"

static const bool forward_only[HP_LAYER_OPS] = {
    [HP_SCALE] = true, [HP_SOFTMAX] = true, [HP_QUANT] = true, [HP_DEQUANT] = true};

/* No gradient passes through a number of a channel. */
static bool has_no_gradient(const hp_layer *l) {
    return l->op == HP_REDUCE && l->reduction == (int32_t)HP_CHANNELS_ARGMAX;
}

/* Kernels with a backward pass take padding and windows as torch.nn's layers do. */
static bool beyond_torch(const hp_layer *l) {
    const bool sized = l->out_h > 0 || l->out_w > 0;
    if (l->op == HP_CONVT) return sized || l->groups > 1 || l->window.dil_h > 1 || l->window.dil_w > 1;
    return l->op == HP_AVGPOOL && sized && l->window.count_include_pad;
}

/* Max-pooling keeps the place of each maximum within its window in a byte (hp_save_bytes). */
static bool beyond_a_byte(const hp_layer *l) {
    return l->op == HP_MAXPOOL && (int64_t)l->window.kh * l->window.kw > 256;
}

/* Names the part of the layer that cannot be trained. NULL: all of it can. */
static const char *untrained(const hp_layer *l, char *out, size_t n) {
    const char *op = hp_layer_infos[l->op].name;
    if (hp_act_reads_x(l) && l->op != HP_ACT)
        snprintf(out, n, "%s", hp_act_names[l->act]);
    else if (forward_only[l->op] || has_no_gradient(l))
        snprintf(out, n, "%s", op);
    else if (beyond_torch(l))
        snprintf(out, n, "%s with such groups, dilation or padding", op);
    else if (beyond_a_byte(l))
        snprintf(out, n, "%s of more than 256 elements", op);
    else
        return NULL;
    return out;
}

bool hp_graph_trains(const hp_graph *g, hp_reject *why) {
    char what[64];
    for (int l = 0; l < g->n_layer; l++) {
        if (!untrained(&g->layer[l], what, sizeof what)) continue;
        hp_refuse(why, HP_REJECT_TRAIN, "layer %.60s (%s) has no backward pass", g->layer[l].name, what);
        return hp_fix(why, "--mode infer, or a network without %s", what);
    }
    if (!g->deployed) return true;
    hp_refuse(why, HP_REJECT_TRAIN, "%.60s is folded for inference", g->net);
    return hp_fix(why, "--mode infer");
}

/* --- tied layers --- */

/* A layer whose parameter another layer holds; -1: none. unlike: only where tensor-parallel ranks split one
 * of the two and not the other. */
static int first_tied(const hp_graph *g, bool unlike) {
    for (int l = 0; l < g->n_layer; l++) {
        const hp_layer *layer = &g->layer[l];
        const int holder = layer->n_param ? g->param[layer->param[0]].layer : l;
        const bool split = g->tensor[layer->out].tp_unit > 0,
                   as_holder = split == (g->tensor[g->layer[holder].out].tp_unit > 0);
        if (holder != l && !(unlike && as_holder)) return l;
    }
    return -1;
}

/* The key that is in the way, as it would have to be; NULL: none is. */
static const char *in_the_way(const hp_strategy *s) {
    const bool stages = s->stages * s->chunks > 1;
    if (s->cp > 1) return "cp=1";
    if (s->bp > 1) return "bp=1";
    if (stages && s->zero.stage > 1) return "zero=1";
    return stages && s->sync.how != HP_SYNC_ALLREDUCE ? "sync=allreduce" : NULL;
}

bool hp_legal_tied(const hp_legal_case *c, hp_reject *why) {
    const bool unlike = c->s->tp > 1 && first_tied(c->g, true) >= 0;
    const char *fix = unlike ? "tp=1" : in_the_way(c->s);
    const int tied = fix ? first_tied(c->g, unlike) : -1;
    if (tied < 0) return true;
    const hp_layer *l = &c->g->layer[tied];
    hp_refuse(why, HP_REJECT_TIED, "layer %.60s has the parameter of layer %.60s, which is kept whole",
              l->name, c->g->layer[c->g->param[l->param[0]].layer].name);
    return hp_fix(why, "%s", fix);
}
