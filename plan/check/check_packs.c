/* check_packs.c - packed weights belong to layers with local weights and have the size that the device
 * wants. */
#include "plan/memory/memory_device.h"
#include "plan/check/check_inside.h"

void hp_pack_rows(const hp_check_at *at, const hp_layer *l, hp_box *out) {
    if (at->g->deployed) return; /* has all weights: see plan/strategy/axes/axis_cp.c */
    const hp_param_place *place = &at->p->role[at->role].place[l->param[0]];
    const hp_extent here = hp_param_channels(at->g, l, (hp_elements){place->first, place->count});
    out->lo[HP_AXIS_C] = here.lo;
    out->hi[HP_AXIS_C] = here.hi;
}

int64_t hp_pack_wanted(const hp_check_at *at, int layer, bool backward) {
    const hp_graph *g = at->g;
    const hp_layer *l = &g->layer[layer];
    const hp_dtype real = (hp_dtype)at->p->dtype;
    hp_box out = hp_box_whole(g, l->out, at->p->micro_batch),
           in = hp_box_whole(g, l->in[0], at->p->micro_batch);
    hp_pack_rows(at, l, &out);
    const hp_box need = hp_layer_need(g, layer, 0, &out);
    in.lo[HP_AXIS_C] = need.lo[HP_AXIS_C];
    in.hi[HP_AXIS_C] = need.hi[HP_AXIS_C];
    const hp_shape s = hp_shape_between(g, layer, &in, &out);
    const hp_device_memory *memory = hp_device_memory_of(at->p->device);
    if (g->deployed) return backward ? 0 : memory->infer_pack(g, layer, &s, real);
    return memory->pack(g, layer, backward, &s, real);
}

static hp_status check_pack(const hp_check_at *at, int layer, int32_t pack, bool backward) {
    const hp_role *r = &at->p->role[at->role];
    const hp_layer *l = &at->g->layer[layer];
    if (l->n_param == 0 || (!at->g->deployed && !r->place[l->param[0]].here))
        return hp_check_refuse(at, "E-BOX", "layer %s has packed weights and no weights", l->name);
    const int64_t bytes = hp_pack_wanted(at, layer, backward);
    if (r->buffer[pack].bytes >= bytes) return HP_OK;
    return hp_check_refuse(at, "E-BOX", "the packed weights of layer %s have %lld bytes, %lld are needed",
                           l->name, (long long)r->buffer[pack].bytes, (long long)bytes);
}

hp_status hp_check_packs(const hp_check_at *at) {
    const hp_role *r = &at->p->role[at->role];
    for (int layer = 1; layer < at->g->n_layer; layer++) {
        if (r->pack_forward[layer] >= 0) HP_TRY(check_pack(at, layer, r->pack_forward[layer], false));
        if (r->pack_backward[layer] >= 0) HP_TRY(check_pack(at, layer, r->pack_backward[layer], true));
    }
    return HP_OK;
}
