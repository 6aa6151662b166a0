/* lower_packs.c - weights in the device's layout: packed once in a step, or, where the role keeps only parts
 * of its parameters (zero=3), whenever they are gathered. */
#include "plan/lower/lower_inside.h"
#include "plan/memory/memory_device.h"

typedef struct pack_size {
    hp_shape shape;
    int64_t bytes[2]; /* forward, backward; 0: the device reads the weights as they are */
} pack_size;

static pack_size size_of(const hp_role_builder *c, int slot, int layer) {
    const hp_slot *s = &c->r->slot[slot];
    const hp_layer *l = &c->facts->g->layer[layer];
    const hp_geometry *geo = c->facts->vstage[s->stage].geo;
    const hp_box *out = hp_geometry_have(geo, c->facts->g, s->part, l->out);
    const hp_device_memory *memory = hp_device_memory_of(c->shared->p->device);
    if (layer == 0 || hp_box_empty(out)) return (pack_size){.bytes = {0, 0}};
    pack_size p = {.shape =
                       hp_shape_between(c->facts->g, layer, hp_geometry_need(geo, s->part, layer, 0), out)};
    if (c->facts->g->deployed) {
        p.bytes[0] = memory->infer_pack(c->facts->g, layer, &p.shape, c->facts->o->dtype);
        return p;
    }
    p.bytes[0] = memory->pack(c->facts->g, layer, false, &p.shape, c->facts->o->dtype);
    if (lower_train(c->facts) && lower_wants_gradient(c->facts, l->in[0]))
        p.bytes[1] = memory->pack(c->facts->g, layer, true, &p.shape, c->facts->o->dtype);
    return p;
}

static int32_t buffer_of(hp_role_builder *c, int layer, int64_t bytes) {
    return bytes ? lower_buffer(c, HP_BUF_PACK, HP_U8, bytes, layer, -1) : -1;
}

static void pack_task(hp_role_builder *c, int slot, int layer, const pack_size *p, int32_t forward,
                      int32_t backward, int32_t params) {
    const hp_device_memory *memory = hp_device_memory_of(c->shared->p->device);
    const hp_pass a = {.slot = slot, .micro = -1};
    lower_task(c, lower_layer_task(&a, HP_TASK_PACK, layer, 0), (int32_t[3]){forward, backward, params});
    const int64_t scratch = memory->scratch(c->facts->g, layer, HP_TASK_PACK, &p->shape, c->facts->o->dtype);
    if (scratch > c->scratch_bytes) c->scratch_bytes = scratch;
}

/* Packs of a deployed graph hold constants, filled before the first step: they need no task. */
static void pack_layer(hp_role_builder *c, int slot, int layer) {
    int32_t *forward = &c->r->pack_forward[layer], *backward = &c->r->pack_backward[layer];
    if (*forward >= 0) return;
    const pack_size p = size_of(c, slot, layer);
    const bool shared = hp_device_memory_of(c->shared->p->device)->shares && p.bytes[0] && p.bytes[1];
    *forward = buffer_of(c, layer, p.bytes[0]);
    *backward = shared ? *forward : buffer_of(c, layer, p.bytes[1]);
    if (c->facts->g->deployed || (*forward < 0 && *backward < 0)) return;
    pack_task(c, slot, layer, &p, *forward, shared ? -1 : *backward, -1);
}

void lower_packs(hp_role_builder *c) {
    c->r->pack_forward = HP_NEW(c->facts->arena, int32_t, c->facts->g->n_layer);
    c->r->pack_backward = HP_NEW(c->facts->arena, int32_t, c->facts->g->n_layer);
    for (int layer = 0; layer < c->facts->g->n_layer; layer++)
        c->r->pack_forward[layer] = c->r->pack_backward[layer] = -1;
    for (int slot = 0; slot < c->r->n_slot && !hp_keeps_parts(c->shared->p, HP_BUF_WEIGHTS); slot++) {
        const hp_vstage *v = &c->facts->vstage[c->r->slot[slot].stage];
        for (int layer = v->first; layer < v->end; layer++) pack_layer(c, slot, layer);
    }
}

int32_t lower_pack(hp_role_builder *c, int slot, int layer, bool backward, int32_t params) {
    const pack_size p = size_of(c, slot, layer);
    const int32_t pack = buffer_of(c, layer, p.bytes[backward]);
    if (pack >= 0) pack_task(c, slot, layer, &p, backward ? -1 : pack, backward ? pack : -1, params);
    return pack;
}
