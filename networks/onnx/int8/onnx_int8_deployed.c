/* onnx_int8_deployed.c - maps each layer of a deployed graph to the model's tensor that it computes, and so
 * to its scale and zero point. Deploying fuses layers: the fused layer has the first one's name and the last
 * one's output. */
#include "networks/onnx/int8/int8.h"

#include "networks/onnx/onnx_names.h"

#include <string.h>

typedef struct tracing {
    const hp_graph *g;    /* the model's */
    onnx_names kept;      /* names of the deployed graph's layers */
    onnx_names names;     /* names of the model's layers */
    int32_t *uses, *read; /* per tensor of the model: number of reads, and the last layer that reads it */
} tracing;

static tracing start(hp_arena *scratch, const hp_graph *g, const hp_graph *deployed) {
    tracing t = {.g = g, .kept = {.arena = scratch}, .names = {.arena = scratch}};
    bool added;
    t.uses = HP_NEW(scratch, int32_t, g->n_tensor);
    t.read = HP_NEW(scratch, int32_t, g->n_tensor);
    for (int l = 0; l < deployed->n_layer; l++) onnx_names_add(&t.kept, deployed->layer[l].name, &added);
    for (int l = 0; l < g->n_layer; l++) {
        onnx_names_add(&t.names, g->layer[l].name, &added);
        for (int k = 0; k < g->layer[l].n_in; k++) {
            t.uses[g->layer[l].in[k]]++;
            t.read[g->layer[l].in[k]] = l;
        }
    }
    t.uses[g->layer[g->n_layer - 1].out]++;
    return t;
}

/* The layer that reads x and was fused into `host`, or NULL. `adds`: host may contain one addition, which
 * belongs to only one of its two inputs' layers. */
static const hp_layer *fused_reader(const tracing *t, int32_t x, bool *adds) {
    const hp_layer *next = &t->g->layer[t->read[x]];
    if (t->uses[x] != 1 || onnx_names_find(&t->kept, next->name) >= 0) return NULL;
    if (next->n_in < 2) return next;
    if (!*adds) return NULL;
    *adds = false;
    return next;
}

/* The model's tensor that a deployed layer computes; -1: none (the rows of a split pool). */
static int32_t computed_tensor(const tracing *t, const hp_layer *deployed) {
    const int32_t at = onnx_names_find(&t->names, deployed->name);
    if (at < 0) return -1;
    const hp_layer *host = &t->g->layer[at];
    bool adds = deployed->n_in > host->n_in;
    int32_t x = host->out;
    for (const hp_layer *next; (next = fused_reader(t, x, &adds));) x = next->out;
    return x;
}

/* Skips conversions: returns the layer whose output they convert. */
static const hp_layer *skip_conversions(const hp_graph *g, const hp_layer *l) {
    while (l->op == HP_QUANT || l->op == HP_DEQUANT) l = &g->layer[g->tensor[l->in[0]].producer];
    return l;
}

const hp_onnx_qparam **hp_onnx_deployed_qparams(hp_arena *arena, const hp_onnx_model *m, const hp_graph *g) {
    hp_arena *scratch = hp_arena_new();
    const tracing t = start(scratch, m->graph, g);
    const hp_onnx_qparam **of = HP_NEW(scratch, const hp_onnx_qparam *, m->graph->n_tensor),
                         **out = HP_NEW(arena, const hp_onnx_qparam *, g->n_layer);
    for (int i = 0; i < m->n_qparam; i++) of[m->qparam[i].tensor] = &m->qparam[i];
    for (int l = 0; l < g->n_layer; l++) {
        const int32_t x = computed_tensor(&t, skip_conversions(g, &g->layer[l]));
        out[l] = x >= 0 ? of[x] : NULL;
    }
    hp_arena_free(scratch);
    return out;
}
