/* lower_groups.c - which stages a role takes part in, and which ranks sum what together.
 *
 * Weights of a stage lie on all its parts, in both orientations with GEMS and on every data replica: their
 * gradients are summed over all of them, once per rank however many passes it ran. Batch-norm statistics are
 * summed over the parts of one pass. A deployed network has neither: its weights are constants. */
#include "plan/lower/lower_inside.h"

#include <string.h>

void lower_slots(hp_lower_ctx *c) {
    const hp_strategy *s = c->s;
    for (int role = 0; role < c->p->n_role; role++) {
        hp_role *r = &c->p->role[role];
        r->slot = HP_NEW(c->arena, hp_slot, hp_flips(s) * c->n_vstage);
        for (int flip = 0; flip < hp_flips(s); flip++) {
            int position = 0, part = 0;
            hp_role_place(s, role, flip, &position, &part);
            if (!flip) r->stage = position;
            for (int v = 0; v < c->n_vstage; v++)
                if (hp_position_of(s, v % s->stages) == position)
                    r->slot[r->n_slot++] = (hp_slot){.stage = v, .part = part, .flip = flip};
        }
    }
}

bool lower_runs(const hp_lower_ctx *c, int role, int vstage, int layer, int flip) {
    const hp_role *r = &c->p->role[role];
    const hp_geometry *geo = c->vstage[vstage].geo;
    for (int i = 0; i < r->n_slot; i++) {
        const hp_slot *s = &r->slot[i];
        if (s->stage == vstage && s->flip == flip &&
            !hp_box_empty(hp_geometry_have(geo, c->g, s->part, c->g->layer[layer].out)))
            return true;
    }
    return false;
}

int lower_slice(const hp_lower_ctx *c, int part, bool split) {
    const int slice = part % lower_slices(c), bp = c->s->bp;
    return split ? slice : slice - slice / bp % c->s->tp * bp;
}

int lower_share_of(const hp_lower_ctx *c, int vstage, int part) {
    return part / (c->vstage[vstage].geo->n_part / hp_shares(c->s));
}

/* --- groups --- */

static int ascending(const void *a, const void *b) {
    return *(const int32_t *)a - *(const int32_t *)b;
}

static int unique(int32_t *v, int n) {
    int kept = 0;
    qsort(v, (size_t)n, sizeof *v, ascending);
    for (int i = 0; i < n; i++)
        if (!kept || v[kept - 1] != v[i]) v[kept++] = v[i];
    return kept;
}

/* Number of a group with these members among groups from `from` on; made when there is none; -1 for one rank
 * alone. */
static int group_of(hp_lower_ctx *c, int from, int32_t *role, int n, bool all_replicas) {
    hp_program *p = c->p;
    n = unique(role, n);
    if (n * (all_replicas ? p->dp : 1) <= 1) return -1;
    for (int g = from; g < p->n_group; g++)
        if (p->group[g].n == n && p->group[g].all_replicas == all_replicas &&
            memcmp(p->member + p->group[g].first, role, sizeof *role * (size_t)n) == 0)
            return g;
    HP_ROOM(c->arena, p->group, p->n_group, c->group_room);
    p->group[p->n_group] = (hp_group){.first = p->n_member, .n = n, .all_replicas = all_replicas};
    for (int i = 0; i < n; i++) {
        HP_ROOM(c->arena, p->member, p->n_member, c->member_room);
        p->member[p->n_member++] = role[i];
    }
    return p->n_group++;
}

static int weight_group(hp_lower_ctx *c, int vstage, int slice, bool split, int from, bool all_replicas) {
    const hp_geometry *geo = c->vstage[vstage].geo;
    int32_t *role = HP_NEW(c->arena, int32_t, 2 * geo->n_part);
    int n = 0;
    if (c->g->deployed) return -1;
    for (int flip = 0; flip < hp_flips(c->s); flip++)
        for (int p = 0; p < geo->n_part; p++)
            if (lower_slice(c, p, split) == slice)
                role[n++] = hp_role_of(c->s, vstage % c->s->stages, p, flip);
    return group_of(c, from, role, n, all_replicas);
}

int lower_weight_group(const hp_lower_ctx *c, int vstage, int part, bool split) {
    return c->vstage[vstage].weight_group[split * lower_slices(c) + lower_slice(c, part, split)];
}

static int stage_of(const hp_lower_ctx *c, int layer) {
    int v = 0;
    while (layer >= c->vstage[v].end) v++;
    return v;
}

/* All parts of the stages of layers that have the parameter, or this slice of it. Layers on one stage need no other group
 * than the stage's. */
static int32_t tied_group(hp_lower_ctx *c, int param, int slice) {
    int32_t *role = HP_NEW(c->arena, int32_t, 2 * c->p->n_role * c->n_vstage);
    int n = 0, first = -1;
    bool apart = false;
    for (int layer = 1; layer < c->g->n_layer; layer++) {
        const hp_layer *l = &c->g->layer[layer];
        if (!l->n_param || l->param[0] != param) continue;
        const int v = stage_of(c, layer);
        apart |= first >= 0 && v != first;
        first = v;
        for (int flip = 0; flip < hp_flips(c->s); flip++)
            for (int p = 0; p < c->vstage[v].geo->n_part; p++)
                if (lower_slice(c, p, lower_is_split(c, layer)) == slice)
                    role[n++] = hp_role_of(c->s, v % c->s->stages, p, flip);
    }
    return apart ? group_of(c, 1, role, n, true) : -1;
}

static void tied_groups(hp_lower_ctx *c) {
    const int slices = lower_slices(c);
    c->tied_group = HP_NEW(c->arena, int32_t, (int64_t)c->g->n_layer * slices);
    for (int i = 0; i < c->g->n_layer * slices; i++) c->tied_group[i] = -1;
    for (int layer = 1; layer < c->g->n_layer && !c->g->deployed; layer++) {
        const hp_layer *l = &c->g->layer[layer];
        const int first = l->n_param ? c->g->param[l->param[0]].layer : layer;
        for (int k = 0; k < slices && first != layer; k++)
            c->tied_group[layer * slices + k] = c->tied_group[first * slices + k] =
                tied_group(c, l->param[0], k);
    }
}

int lower_replica_group(const hp_lower_ctx *c, int group) {
    const hp_program *p = c->p;
    const hp_group *all = &p->group[group];
    for (int g = 1; g < c->first_stats; g++)
        if (!p->group[g].all_replicas && p->group[g].n == all->n &&
            memcmp(p->member + p->group[g].first, p->member + all->first,
                   sizeof *p->member * (size_t)all->n) == 0)
            return g;
    return -1;
}

/* With bn=all over all replicas, with or without shares of their own. */
static int sync_group(hp_lower_ctx *c, int vstage, int flip, int slice, int share, int from) {
    const hp_geometry *geo = c->vstage[vstage].geo;
    const bool all = c->s->bn == HP_BN_ALL;
    int32_t *role = HP_NEW(c->arena, int32_t, geo->n_part);
    int n = 0;
    if (c->s->bn == HP_BN_LOCAL || !lower_train(c)) return -1;
    for (int p = 0; p < geo->n_part; p++)
        if (lower_slice(c, p, false) == slice && (all || lower_share_of(c, vstage, p) == share))
            role[n++] = hp_role_of(c->s, vstage % c->s->stages, p, flip);
    return group_of(c, from, role, n, all);
}

static int sync_groups(const hp_lower_ctx *c) {
    return hp_flips(c->s) * hp_shares(c->s) * lower_slices(c);
}

int32_t lower_sync_group(const hp_lower_ctx *c, int vstage, int part, int flip) {
    const int share = flip * hp_shares(c->s) + lower_share_of(c, vstage, part);
    return c->vstage[vstage].sync_group[share * lower_slices(c) + lower_slice(c, part, false)];
}

static bool has_bn(const hp_lower_ctx *c, const hp_vstage *v) {
    for (int l = v->first; l < v->end; l++)
        if (c->g->layer[l].op == HP_BN) return true;
    return false;
}

/* Ranks of tensor parallelism that split the logits. */
static void class_groups(hp_lower_ctx *c, int vstage, int from) {
    hp_vstage *v = &c->vstage[vstage];
    const int parts = v->geo->n_part, bp = c->s->bp, tp = c->s->tp;
    int32_t *role = HP_NEW(c->arena, int32_t, tp);
    if (v->end != c->g->n_layer || tp == 1 || !lower_is_split(c, c->g->n_layer - 1)) return;
    v->class_group = HP_NEW(c->arena, int32_t, hp_flips(c->s) * parts);
    for (int i = 0; i < hp_flips(c->s) * parts; i++) {
        const int flip = i / parts, part = i % parts, first = part - part / bp % tp * bp;
        for (int k = 0; k < tp; k++) role[k] = hp_role_of(c->s, vstage % c->s->stages, first + k * bp, flip);
        v->class_group[i] = group_of(c, from, role, tp, false);
    }
}

void lower_groups(hp_lower_ctx *c) {
    const int slices = lower_slices(c);
    int32_t *all = HP_NEW(c->arena, int32_t, c->p->n_role);
    for (int r = 0; r < c->p->n_role; r++) all[r] = r;
    c->p->n_group = 1;
    c->p->n_member = c->p->n_role;
    c->p->member = all;
    c->member_room = c->p->n_role;
    c->p->group = HP_NEW(c->arena, hp_group, 1);
    c->group_room = 1;
    c->p->group[0] = (hp_group){.first = 0, .n = c->p->n_role, .all_replicas = 1};
    for (int v = 0; v < c->n_vstage; v++) {
        c->vstage[v].weight_group = HP_NEW(c->arena, int32_t, 2 * slices);
        for (int k = 0; k < 2 * slices; k++)
            c->vstage[v].weight_group[k] = weight_group(c, v, k % slices, k >= slices, 1, true);
        for (int k = 0; k < 2 * slices && lower_is_local(c); k++)
            weight_group(c, v, k % slices, k >= slices, 1, false);
    }
    tied_groups(c);
    const int from = c->first_stats = c->p->n_group; /* statistics never share a queue with gradients */
    for (int v = 0; v < c->n_vstage; v++) {
        const bool used = has_bn(c, &c->vstage[v]);
        c->vstage[v].sync_group = HP_NEW(c->arena, int32_t, sync_groups(c));
        for (int i = 0; i < sync_groups(c); i++) {
            const int flip = i / slices / hp_shares(c->s), share = i / slices % hp_shares(c->s);
            c->vstage[v].sync_group[i] = used ? sync_group(c, v, flip, i % slices, share, from) : -1;
        }
        class_groups(c, v, from);
    }
}
