/* precision.c - the precisions, and how a network in training stores its tensors. */
#include "networks/graph/precision.h"

const char *const hp_prec_names[] = {"fp32", "tf32", "bf16", "fp16", "int8", "int8-dynamic", NULL};

hp_store hp_prec_store(int32_t prec) {
    static const hp_store stores[HP_PRECS] = {
        [HP_PREC_BF16] = HP_STORE_BF16, [HP_PREC_FP16] = HP_STORE_F16, [HP_PREC_INT8] = HP_STORE_U8};
    return stores[prec];
}

hp_graph *hp_graph_train_in(hp_arena *arena, const hp_graph *g, int32_t prec) {
    hp_graph *out = HP_NEW(arena, hp_graph, 1);
    *out = *g;
    out->prec = prec;
    out->tensor = HP_NEW(arena, hp_tensor, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) {
        out->tensor[t] = g->tensor[t];
        out->tensor[t].store = hp_prec_store(prec);
    }
    for (int l = 0; l < g->n_layer; l++) /* ids stay exact */
        if (g->layer[l].op == HP_EMBEDDING) out->tensor[g->layer[l].in[0]].store = HP_STORE_REAL;
    return out;
}

bool hp_graph_scales_loss(const hp_graph *g) {
    return !g->deployed && g->prec == HP_PREC_FP16;
}

bool hp_graph_metric_first(const hp_graph *g) {
    const hp_tensor *logits = &g->tensor[g->layer[g->n_layer - 1].out];
    return logits->h * logits->w > 1 || hp_graph_scales_loss(g) || (g->clips && !g->deployed);
}
