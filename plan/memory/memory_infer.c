/* memory_infer.c - bytes that a layer of a deployed graph needs beyond its tensors: constants in the device's
 * layout, and scratch. */
#include "plan/memory/memory_device.h"
#include "plan/memory/panels.h"
#include "networks/deploy/deploy.h"
#include "networks/graph/layer.h"

/* A factor and a bias, in float32. */
static int64_t affine_bytes(const hp_layer *l, const hp_shape *s) {
    enum { WHOLE = 16 }; /* bytes */
    return l->n_param ? (8 * (int64_t)s->oc + WHOLE - 1) / WHOLE * WHOLE : 0;
}

int64_t hp_infer_pack_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real) {
    const hp_layer *l = &g->layer[layer];
    if (hp_layer_as_trained(l)) return hp_constant_at(g, l, l->n_param, real);
    if (s->oc < 1 || !hp_layer_is_matrix(l)) return affine_bytes(l, s);
    const hp_panels p = hp_panels_of(g, layer, s, real);
    return hp_panels_place(&p).bytes;
}

int64_t hp_infer_scratch_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real) {
    if (hp_layer_as_trained(&g->layer[layer])) return hp_scratch_bytes(g, layer, HP_TASK_FWD, s, real);
    if (s->oc < 1 || !hp_layer_is_matrix(&g->layer[layer])) return 0;
    const hp_panels p = hp_panels_of(g, layer, s, real);
    return hp_panels_scratch_of(&p).bytes;
}
