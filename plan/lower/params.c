/* params.c - where parameters lie, and the buckets in which they are reduced and updated.
 *
 * Parameters lie in the order in which their gradients become final (last stage first, layers backwards), so
 * that a bucket is a contiguous range and its reduction overlaps the rest of the backward pass (Li et al.,
 * VLDB 2020). A role that takes part in a stage twice (GEMS mirrors it onto itself) keeps one copy and adds
 * both passes' gradients into it. With ZeRO a bucket is padded to parts of equal size, one for each member of
 * the group that holds it, so that all of them remain one role (Rajbhandari et al., SC 2020). */
#include "plan/lower/lower_inside.h"
#include "base/round.h"
#include "networks/graph/optimizer.h"

enum { PARAM_ALIGN = 16 /* elements: a cache line of float32 */ };

int lower_slot_of(const hp_role *r, int vstage) {
    for (int i = 0; i < r->n_slot; i++)
        if (r->slot[i].stage == vstage) return i;
    return -1;
}

/* --- where parameters lie --- */

/* The role's replica where replicas with shares of their own take statistics separately; else 0. */
static int share_apart(const hp_role_builder *c, int role) {
    return c->facts->s->bn == HP_BN_ALL ? 0 : role / (c->shared->p->n_role / hp_shares(c->facts->s));
}

/* Does this role save the layer's running statistics? One rank per orientation and share does: the first that
 * computes part of the layer, or one that runs both orientations. */
static bool state_home(const hp_role_builder *c, int vstage, int layer, int slice) {
    int first[2] = {-1, -1}, both = -1;
    for (int role = 0; role < c->shared->p->n_role; role++) {
        if (share_apart(c, role) != share_apart(c, c->role)) continue;
        const int slot = lower_slot_of(&c->shared->p->role[role], vstage);
        if (slot < 0 || lower_slice(c->facts, c->shared->p->role[role].slot[slot].part, false) != slice)
            continue;
        const bool runs[2] = {lower_runs(c->shared, role, vstage, layer, 0),
                              lower_runs(c->shared, role, vstage, layer, 1)};
        for (int flip = 0; flip < 2; flip++)
            if (runs[flip] && first[flip] < 0) first[flip] = role;
        if (runs[0] && runs[1] && both < 0) both = role;
    }
    return both >= 0 ? c->role == both : c->role == first[0] || c->role == first[1];
}

/* Elements of a layer's parameter that this part holds: those of its channels of the output. */
static hp_elements elements_of(const hp_role_builder *c, int vstage, int part, int layer, int i) {
    const hp_param *p = &c->facts->g->param[c->facts->g->layer[layer].param[i]];
    const hp_geometry *geo = c->facts->vstage[vstage].geo;
    const hp_layer *l = &c->facts->g->layer[layer];
    hp_elements e = {0, p->count};
    if (geo->branch_of[l->out] != part % geo->branches) e.count = 0;
    if (geo->layout.channels * geo->layout.tp == 1 || !e.count) return e;
    const hp_box *own = hp_geometry_own(geo, c->facts->g, part, l->out);
    if (!hp_box_len(own, HP_AXIS_C)) return (hp_elements){0, 0};
    return hp_param_elements(c->facts->g, l, i, own->lo[HP_AXIS_C], own->hi[HP_AXIS_C]);
}

typedef struct places {
    int64_t trained, state; /* elements so far */
    int64_t bucket;         /* where the open one begins */
    int64_t shard;          /* elements of the parts of those before it */
} places;

/* Who holds the layer's parameters. */
static int group_of_layer(const hp_role_builder *c, int vstage, int part, int layer) {
    const bool split = lower_is_split(c->facts, layer);
    const int tied =
        c->shared->tied_group[layer * lower_slices(c->facts) + lower_slice(c->facts, part, split)];
    return tied >= 0 ? tied : lower_weight_group(c->shared, vstage, part, split);
}

/* Places a layer's trained matrices, or its other parameters. */
static void place_layer(hp_role_builder *c, int vstage, int part, int layer, bool matrices, places *at) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const int group = group_of_layer(c, vstage, part, layer);
    const bool home = l->op == HP_BN && state_home(c, vstage, layer, lower_slice(c->facts, part, false));
    const bool starts = share_apart(c, c->role) == 0 && lower_runs(c->shared, c->role, vstage, layer, 0);
    const bool saves = group < 0 || c->shared->p->member[c->shared->p->group[group].first] == c->role;
    for (int i = 0; i < l->n_param; i++) {
        const hp_param *param = &c->facts->g->param[l->param[i]];
        if (lower_holder(c, layer) != layer) continue; /* tied */
        const hp_elements e = elements_of(c, vstage, part, layer, i);
        const bool trained = hp_param_trained(param);
        if ((trained && hp_param_is_matrix(param)) != matrices) continue;
        int64_t *to = trained ? &at->trained : &at->state;
        hp_param_place p = {.group = group, .offset = *to, .first = e.first, .count = e.count};
        if (p.count) p.here = HP_HERE | ((trained ? saves : home) ? HP_HOME : 0) | (starts ? HP_START : 0);
        c->r->place[l->param[i]] = p;
        *to += hp_round_up(p.count, PARAM_ALIGN);
    }
}

static int64_t layer_elems(const hp_role_builder *c, int vstage, int part, int layer) {
    const hp_layer *l = &c->facts->g->layer[layer];
    int64_t elems = 0;
    for (int i = 0; i < l->n_param && lower_holder(c, layer) == layer; i++)
        if (hp_param_trained(&c->facts->g->param[l->param[i]]))
            elems += hp_round_up(elements_of(c, vstage, part, layer, i).count, PARAM_ALIGN);
    return elems;
}

/* --- buckets --- */

/* Ends the open bucket with layer `last`; without parameters there is none. */
static void end_bucket(hp_role_builder *c, int group, int last, places *at) {
    hp_role *r = c->r;
    const int parts = c->facts->s->zero.stage && group >= 0 ? hp_group_size(c->shared->p, group) : 1;
    const int64_t count = hp_round_up(at->trained - at->bucket, (int64_t)PARAM_ALIGN * parts);
    if (!count) return;
    r->bucket[r->n_bucket] = (hp_bucket){at->bucket, count, at->shard, group, parts};
    c->params.last_of[last] = r->n_bucket++;
    at->shard += count / parts;
    at->bucket = at->trained = at->bucket + count;
}

/* Places layers first .. last as one bucket, from the last on: those that ranks split, or the others.
 * Matrices come first, so that what decays is one range (plan/program/update.h), then biases and the rest. */
static void place_bucket(hp_role_builder *c, int v, int part, bool split, int group, int first, int last,
                         places *at) {
    int lowest = -1;
    for (int matrices = 1; matrices >= 0; matrices--)
        for (int layer = last; layer >= first; layer--) {
            if (lower_is_split(c->facts, layer) != split) continue;
            place_layer(c, v, part, layer, matrices, at);
            if (layer > 0) lowest = layer;
        }
    if (lowest >= 0) end_bucket(c, group, lowest, at);
}

/* Places a stage's parameters, of layers that ranks split or of the others, in buckets of at least
 * fuse_bytes, counted as float32 in every dtype, so that the reference device sums the same buckets. */
static void place_stage(hp_role_builder *c, int v, int part, bool split, places *at) {
    const int group = lower_weight_group(c->shared, v, part, split), first = c->facts->vstage[v].first;
    int last = c->facts->vstage[v].end - 1; /* last layer of the open bucket */
    int64_t elems = 0;
    for (int layer = last; layer >= first; layer--) {
        if (lower_is_split(c->facts, layer) != split) continue;
        const int of_layer = group_of_layer(c, v, part, layer);
        if (of_layer != group) { /* a bucket of its own */
            place_bucket(c, v, part, split, group, layer + 1, last, at);
            last = layer;
            elems = 0;
        }
        elems += layer_elems(c, v, part, layer);
        c->params.bucket_of[layer] =
            c->r->n_bucket; /* the holder's, of those that are tied: see place_tied */
        if (of_layer == group && elems * 4 < c->facts->s->fuse_bytes) continue;
        place_bucket(c, v, part, split, of_layer, layer, last, at);
        last = layer - 1;
        elems = 0;
    }
    place_bucket(c, v, part, split, group, first, last, at);
}

/* Layers backwards: of those with one parameter the first that the role runs remains. */
static void find_holders(hp_role_builder *c) {
    int32_t *first = HP_NEW(c->facts->arena, int32_t, c->facts->g->n_param);
    c->params.holder = HP_NEW(c->facts->arena, int32_t, c->facts->g->n_layer);
    for (int v = c->facts->n_vstage - 1; v >= 0; v--)
        for (int layer = c->facts->vstage[v].end - 1;
             layer >= c->facts->vstage[v].first && lower_slot_of(c->r, v) >= 0; layer--)
            if (c->facts->g->layer[layer].n_param) first[c->facts->g->layer[layer].param[0]] = layer;
    for (int layer = 0; layer < c->facts->g->n_layer; layer++) {
        const hp_layer *l = &c->facts->g->layer[layer];
        const bool shared = l->n_param && first[l->param[0]] > 0;
        c->params.holder[layer] = shared ? first[l->param[0]] : layer;
    }
}

static void place_tied(hp_role_builder *c) {
    for (int layer = 0; layer < c->facts->g->n_layer; layer++)
        c->params.bucket_of[layer] = c->params.bucket_of[lower_holder(c, layer)];
}

static void new_buckets(hp_role_builder *c) {
    const int n = c->facts->g->n_layer;
    c->r->bucket = HP_NEW(c->facts->arena, hp_bucket, n + c->facts->n_vstage);
    c->params.bucket_of = HP_NEW(c->facts->arena, int32_t, n);
    c->params.last_of = HP_NEW(c->facts->arena, int32_t, n);
    for (int i = 0; i < n; i++) c->params.bucket_of[i] = c->params.last_of[i] = -1;
}

/* Elements of a fixed buffer. */
static int64_t elems_of(const hp_role_builder *c, int buffer) {
    if (!lower_train(c->facts) && buffer != HP_BUF_WEIGHTS) return 0;
    return hp_keeps_parts(c->shared->p, buffer) ? hp_part_elems(c->r) : c->r->trained_elems;
}

void lower_params(hp_role_builder *c) {
    places at = {0, 0, 0, 0};
    c->r->place = HP_NEW(c->facts->arena, hp_param_place, c->facts->g->n_param);
    find_holders(c);
    new_buckets(c);
    for (int i = 0; i < c->facts->g->n_param; i++) c->r->place[i].group = -1;
    for (int v = c->facts->n_vstage - 1; v >= 0; v--) {
        const int slot = lower_slot_of(c->r, v);
        for (int split = 0; slot >= 0 && split < 2; split++)
            place_stage(c, v, c->r->slot[slot].part, split, &at);
    }
    place_tied(c);
    if (c->facts->g->deployed) { /* constants lie in packs */
        for (int i = 0; i < c->facts->g->n_param; i++) c->r->place[i] = (hp_param_place){.group = -1};
        at = (places){0, 0, 0, 0};
        c->r->n_bucket = 0;
    }
    c->r->trained_elems = at.trained;
    const hp_dtype t = c->facts->o->dtype;
    lower_buffer(c, HP_BUF_WEIGHTS, t, elems_of(c, HP_BUF_WEIGHTS), -1, -1);
    lower_buffer(c, HP_BUF_GRADS, t, elems_of(c, HP_BUF_GRADS), -1, -1);
    lower_buffer(c, HP_BUF_OPTIMIZER, t, hp_optimizer_of(c->facts->g)->states * elems_of(c, HP_BUF_OPTIMIZER),
                 -1, -1);
    lower_buffer(c, HP_BUF_STATE, t, at.state, -1, -1);
    lower_buffer(c, HP_BUF_METRIC, HP_F64, HP_METRICS, -1, -1);
    lower_buffer(c, HP_BUF_SCRATCH, HP_U8, 0, -1, -1);
}
