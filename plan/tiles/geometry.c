/* geometry.c - the box of every tensor that each part of a stage holds, and the boxes that its layers read.
 *
 * Layers are visited backwards. Parts exchange a tensor if its consumers include `halo` halo-bearing layers
 * in a row; each computes only its own box of it. A tensor between two such layers is computed as far as
 * later layers need (communication-avoiding, Demmel et al. 2008). */
#include "networks/graph/branch.h"
#include "networks/graph/reads.h"
#include "plan/tiles/tile.h"

#include <string.h>

typedef struct build {
    hp_geometry *geo;
    const hp_graph *g;
    int halo, deep;
    int32_t *depth; /* per tensor: number of later halo-bearing layers that share the exchange before it */
    int32_t *reach; /* per tensor: union of the boxes that its consumers need */
} build;

static hp_box *box_at(hp_box *boxes, const build *b, int part, int tensor) {
    return &boxes[(int64_t)part * b->g->n_tensor + tensor];
}

static hp_box *need_at(const build *b, int part, int layer, int k) {
    const hp_geometry *geo = b->geo;
    return &geo->need[(int64_t)part * geo->n_need + geo->need_first[layer - geo->first] + k];
}

/* Does any output read the whole input, or another place of it? Then the parts must exchange it. */
static bool gathers(const hp_graph *g, const hp_layer *l, int k) {
    const hp_tensor *x = &g->tensor[l->in[k]];
    const bool vector = l->op == HP_MUL && k == 1 && (int64_t)x->h * x->w == 1;
    const bool attends = l->op == HP_ATTENTION && k > 0 && !hp_layer_is_windowed(l);
    return l->op == HP_LINEAR || l->op == HP_ADAPTPOOL || l->op == HP_CLASSTOKEN || l->op == HP_CROP ||
           l->op == HP_GATHER || l->op == HP_GROUPNORM || vector || attends;
}

static bool enters(const build *b, int tensor) {
    const int producer = b->g->tensor[tensor].producer;
    return producer < b->geo->first || producer == 0;
}

/* Do only pointwise layers lie between this tensor and an earlier one that other layers read with a halo?
 * Exchanging the earlier one then serves both: the norm and the shortcut of a pre-activation block read the
 * same tensor. */
static bool shares_halo(const build *b, int tensor) {
    while (!enters(b, tensor)) {
        const hp_layer *l = &b->g->layer[b->g->tensor[tensor].producer];
        if (l->n_in != 1 || (l->op != HP_BN && l->op != HP_ACT && l->op != HP_DROPOUT)) return false;
        tensor = l->in[0];
        if (b->reach[tensor] > 0) return true;
    }
    return false;
}

/* Fixes the boxes that the parts hold of a tensor, once all its consumers in the stage are known; `have`
 * contains own and the needs. */
static void set_held_boxes(build *b, int tensor) {
    if (b->g->tensor[tensor].producer < b->deep) return; /* never exchanged: holds what its consumers need */
    const bool full = b->reach[tensor] == b->halo && b->halo > 1;
    const bool extend = b->reach[tensor] > 0 && (full ? shares_halo(b, tensor) : b->reach[tensor] < b->halo);
    b->depth[tensor] = extend ? b->reach[tensor] : 0;
    if (extend) return;
    for (int p = 0; p < b->geo->n_part; p++)
        *box_at(b->geo->have, b, p, tensor) = *box_at(b->geo->own, b, p, tensor);
}

static void request_inputs(build *b, int layer) {
    const hp_layer *l = &b->g->layer[layer];
    const int reach = b->depth[l->out] + (hp_layer_has_halo(b->g, layer) ? 1 : 0);
    for (int k = 0; k < l->n_in; k++) {
        const int x = l->in[k], asked = gathers(b->g, l, k) ? b->halo : reach;
        if (asked > b->reach[x]) b->reach[x] = asked;
        for (int p = 0; p < b->geo->n_part; p++) {
            hp_box *need = need_at(b, p, layer, k), *have = box_at(b->geo->have, b, p, x);
            *need = hp_layer_need(b->g, layer, k, box_at(b->geo->have, b, p, l->out));
            const bool never_exchanged = layer >= b->deep && b->g->tensor[x].producer < b->deep;
            if (!never_exchanged) *have = hp_box_around(have, need);
        }
    }
}

/* The loss reads all channels of the pixels that a part owns, on its first channel slice. If tensor-parallel
 * ranks split the logits, each reads its own. */
static void request_loss(build *b) {
    const int logits = b->g->layer[b->g->n_layer - 1].out;
    for (int p = 0; p < b->geo->n_part; p++) {
        hp_box need = *box_at(b->geo->own, b, p, logits);
        const bool split = b->geo->layout.tp > 1 && b->g->tensor[logits].tp_unit > 0;
        if (!split) {
            need.lo[HP_AXIS_C] = 0;
            need.hi[HP_AXIS_C] = b->g->tensor[logits].c;
        }
        const bool speaks =
            p / b->geo->branches / b->geo->layout.tp % b->geo->layout.channels == 0 && !hp_box_empty(&need);
        *need_at(b, p, b->g->n_layer, 0) = speaks ? need : (hp_box){{0}, {0}};
    }
}

static void count_needs(hp_arena *arena, build *b) {
    hp_geometry *geo = b->geo;
    const bool last = geo->end == b->g->n_layer;
    geo->need_first = HP_NEW(arena, int32_t, geo->end - geo->first + 1);
    for (int l = geo->first; l < geo->end; l++) {
        geo->need_first[l - geo->first] = geo->n_need;
        geo->n_need += b->g->layer[l].n_in;
    }
    geo->need_first[geo->end - geo->first] = geo->n_need;
    if (last) geo->n_need++;
    geo->need = HP_NEW(arena, hp_box, (int64_t)geo->n_part * geo->n_need + 1);
}

hp_geometry *hp_geometry_deep(hp_arena *arena, const hp_graph *g, const hp_layout *layout, int branches,
                              int first, int end, int64_t samples, int halo, int deep) {
    hp_geometry *geo = HP_NEW(arena, hp_geometry, 1);
    *geo = (hp_geometry){.layout = *layout,
                         .branches = branches,
                         .n_part = hp_layout_parts(layout) * branches,
                         .first = first,
                         .end = end,
                         .samples = samples};
    build b = {geo, g, halo, deep, HP_NEW(arena, int32_t, g->n_tensor), HP_NEW(arena, int32_t, g->n_tensor)};
    count_needs(arena, &b);
    geo->branch_of = hp_branches(arena, g, branches, first, end);
    const size_t n = (size_t)geo->n_part * (size_t)g->n_tensor;
    geo->own = HP_NEW(arena, hp_box, n);
    geo->have = HP_NEW(arena, hp_box, n);
    for (int t = 0; t < g->n_tensor; t++) {
        if (g->tensor[t].producer >= end || hp_graph_last_use(g, t) < first) continue;
        for (int p = 0; p < geo->n_part; p++)
            if (p % branches == geo->branch_of[t])
                *box_at(geo->own, &b, p, t) = hp_layout_own(layout, g, t, samples, p / branches);
    }
    memcpy(geo->have, geo->own, sizeof(hp_box) * n);
    if (end == g->n_layer) request_loss(&b);
    for (int l = end - 1; l >= (first ? first : 1); l--) {
        set_held_boxes(&b, g->layer[l].out);
        request_inputs(&b, l);
    }
    return geo;
}
