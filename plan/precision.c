/* precision.c - which device computes in which precision, and the stores of a network in training. */
#include "plan/precision.h"
#include "plan/legal.h"

#include <string.h>

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
    return out;
}

bool hp_graph_scales_loss(const hp_graph *g) {
    return !g->deployed && g->prec == HP_PREC_FP16;
}

bool hp_graph_metric_first(const hp_graph *g) {
    const hp_tensor *logits = &g->tensor[g->layer[g->n_layer - 1].out];
    return logits->h * logits->w > 1 || hp_graph_scales_loss(g);
}

/* Devices by precision: in training, in inference. */
enum { CPU = 1, REF = 2, CUDA = 4, ALL = CPU | REF | CUDA };
static const struct {
    unsigned train, infer;
} devices_of[HP_PRECS] = {
    [HP_PREC_FP32] = {ALL, ALL},        [HP_PREC_TF32] = {REF | CUDA, CUDA},
    [HP_PREC_BF16] = {REF | CUDA, ALL}, [HP_PREC_FP16] = {REF | CUDA, ALL},
    [HP_PREC_INT8] = {0, ALL},          [HP_PREC_INT8_DYNAMIC] = {0, ALL},
};

static unsigned bit_of(const char *device) {
    if (!device) return ALL;
    return strcmp(device, "cuda") == 0 ? CUDA : strcmp(device, "ref") == 0 ? REF : CPU;
}

bool hp_prec_allowed(int32_t prec, bool infer, const char *device, hp_reject *why) {
    const unsigned have = infer ? devices_of[prec].infer : devices_of[prec].train;
    if (have & bit_of(device)) return true;
    if (!have) {
        hp_refuse(why, "E-PREC", "nothing trains in %s", hp_prec_names[prec]);
        return hp_fix(why, "prec=fp32, or --mode infer");
    }
    hp_refuse(why, "E-PREC", "device %.20s does not %s in %s", device, infer ? "infer" : "train",
              hp_prec_names[prec]);
    return hp_fix(why, "--device cuda, or prec=fp32");
}
