/* lower_groups.c - which stages a role takes part in, and which ranks sum what together.
 *
 * Weights of a stage lie on all its parts, in both orientations with GEMS and on every data replica: their
 * gradients are summed over all of them, once per rank however many passes it ran. Batch-norm statistics are
 * summed over the parts of one pass. A deployed network has neither: its weights are constants. */
#include "plan/lower/lower_inside.h"

#include <string.h>

void lower_slots(hp_program_builder *b) {
    const hp_lower_facts *f = b->facts;
    const hp_strategy *s = f->s;
    for (int role = 0; role < b->p->n_role; role++) {
        hp_role *r = &b->p->role[role];
        r->slot = HP_NEW(f->arena, hp_slot, hp_flips(s) * f->n_vstage);
        for (int flip = 0; flip < hp_flips(s); flip++) {
            int position = 0, part = 0;
            hp_role_place(s, role, flip, &position, &part);
            if (!flip) r->stage = position;
            for (int v = 0; v < f->n_vstage; v++)
                if (hp_position_of(s, v % s->stages) == position)
                    r->slot[r->n_slot++] = (hp_slot){.stage = v, .part = part, .flip = flip};
        }
    }
}

bool lower_runs(const hp_program_builder *b, int role, int vstage, int layer, int flip) {
    const hp_lower_facts *f = b->facts;
    const hp_role *r = &b->p->role[role];
    const hp_geometry *geo = f->vstage[vstage].geo;
    for (int i = 0; i < r->n_slot; i++) {
        const hp_slot *s = &r->slot[i];
        if (s->stage == vstage && s->flip == flip &&
            !hp_box_empty(hp_geometry_have(geo, f->g, s->part, f->g->layer[layer].out)))
            return true;
    }
    return false;
}

int lower_slice(const hp_lower_facts *f, int part, bool split) {
    const int slice = part % lower_slices(f), bp = f->s->bp;
    return split ? slice : slice - slice / bp % f->s->tp * bp;
}

int lower_share_of(const hp_lower_facts *f, int vstage, int part) {
    return part / (f->vstage[vstage].geo->n_part / hp_shares(f->s));
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
static int group_of(hp_program_builder *b, int from, int32_t *role, int n, bool all_replicas) {
    const hp_lower_facts *f = b->facts;
    hp_program *p = b->p;
    n = unique(role, n);
    if (n * (all_replicas ? p->dp : 1) <= 1) return -1;
    for (int g = from; g < p->n_group; g++)
        if (p->group[g].n == n && p->group[g].all_replicas == all_replicas &&
            memcmp(p->member + p->group[g].first, role, sizeof *role * (size_t)n) == 0)
            return g;
    HP_ROOM(f->arena, p->group, p->n_group, b->group_room);
    p->group[p->n_group] = (hp_group){.first = p->n_member, .n = n, .all_replicas = all_replicas};
    for (int i = 0; i < n; i++) {
        HP_ROOM(f->arena, p->member, p->n_member, b->member_room);
        p->member[p->n_member++] = role[i];
    }
    return p->n_group++;
}

static int weight_group(hp_program_builder *b, int vstage, int slice, bool split, int from,
                        bool all_replicas) {
    const hp_lower_facts *f = b->facts;
    const hp_geometry *geo = f->vstage[vstage].geo;
    int32_t *role = HP_NEW(f->arena, int32_t, 2 * geo->n_part);
    int n = 0;
    if (f->g->deployed) return -1;
    for (int flip = 0; flip < hp_flips(f->s); flip++)
        for (int p = 0; p < geo->n_part; p++)
            if (lower_slice(f, p, split) == slice)
                role[n++] = hp_role_of(f->s, vstage % f->s->stages, p, flip);
    return group_of(b, from, role, n, all_replicas);
}

int lower_weight_group(const hp_program_builder *b, int vstage, int part, bool split) {
    const hp_lower_facts *f = b->facts;
    return b->groups[vstage].weights[split * lower_slices(f) + lower_slice(f, part, split)];
}

static int stage_of(const hp_lower_facts *f, int layer) {
    int v = 0;
    while (layer >= f->vstage[v].end) v++;
    return v;
}

/* All parts of the stages whose layers have the parameter, or this slice of it. Layers on one stage use the
 * stage's own group. */
static int32_t tied_group(hp_program_builder *b, int param, int slice) {
    const hp_lower_facts *f = b->facts;
    int32_t *role = HP_NEW(f->arena, int32_t, 2 * b->p->n_role * f->n_vstage);
    int n = 0, first = -1;
    bool apart = false;
    for (int layer = 1; layer < f->g->n_layer; layer++) {
        const hp_layer *l = &f->g->layer[layer];
        if (!l->n_param || l->param[0] != param) continue;
        const int v = stage_of(f, layer);
        apart |= first >= 0 && v != first;
        first = v;
        for (int flip = 0; flip < hp_flips(f->s); flip++)
            for (int p = 0; p < f->vstage[v].geo->n_part; p++)
                if (lower_slice(f, p, lower_is_split(f, layer)) == slice)
                    role[n++] = hp_role_of(f->s, v % f->s->stages, p, flip);
    }
    return apart ? group_of(b, 1, role, n, true) : -1;
}

static void tied_groups(hp_program_builder *b) {
    const hp_lower_facts *f = b->facts;
    const int slices = lower_slices(f);
    b->tied_group = HP_NEW(f->arena, int32_t, (int64_t)f->g->n_layer * slices);
    for (int i = 0; i < f->g->n_layer * slices; i++) b->tied_group[i] = -1;
    for (int layer = 1; layer < f->g->n_layer && !f->g->deployed; layer++) {
        const hp_layer *l = &f->g->layer[layer];
        const int first = l->n_param ? f->g->param[l->param[0]].layer : layer;
        for (int k = 0; k < slices && first != layer; k++)
            b->tied_group[layer * slices + k] = b->tied_group[first * slices + k] =
                tied_group(b, l->param[0], k);
    }
}

int lower_replica_group(const hp_program_builder *b, int group) {
    const hp_program *p = b->p;
    const hp_group *all = &p->group[group];
    for (int g = 1; g < b->first_stats; g++)
        if (!p->group[g].all_replicas && p->group[g].n == all->n &&
            memcmp(p->member + p->group[g].first, p->member + all->first,
                   sizeof *p->member * (size_t)all->n) == 0)
            return g;
    return -1;
}

/* bn=all takes statistics over all replicas, with or without shares of their own. */
static int sync_group(hp_program_builder *b, int vstage, int flip, int slice, int share, int from) {
    const hp_lower_facts *f = b->facts;
    const hp_geometry *geo = f->vstage[vstage].geo;
    const bool all = f->s->bn == HP_BN_ALL;
    int32_t *role = HP_NEW(f->arena, int32_t, geo->n_part);
    int n = 0;
    if (f->s->bn == HP_BN_LOCAL || !lower_train(f)) return -1;
    for (int p = 0; p < geo->n_part; p++)
        if (lower_slice(f, p, false) == slice && (all || lower_share_of(f, vstage, p) == share))
            role[n++] = hp_role_of(f->s, vstage % f->s->stages, p, flip);
    return group_of(b, from, role, n, all);
}

static int sync_groups(const hp_program_builder *b) {
    const hp_lower_facts *f = b->facts;
    return hp_flips(f->s) * hp_shares(f->s) * lower_slices(f);
}

int32_t lower_sync_group(const hp_program_builder *b, int vstage, int part, int flip) {
    const hp_lower_facts *f = b->facts;
    const int share = flip * hp_shares(f->s) + lower_share_of(f, vstage, part);
    return b->groups[vstage].sync[share * lower_slices(f) + lower_slice(f, part, false)];
}

static bool has_bn(const hp_graph *g, const hp_vstage *v) {
    for (int l = v->first; l < v->end; l++)
        if (g->layer[l].op == HP_BN) return true;
    return false;
}

/* Ranks of tensor parallelism that split the logits. */
static void class_groups(hp_program_builder *b, int vstage, int from) {
    const hp_lower_facts *f = b->facts;
    const hp_vstage *v = &f->vstage[vstage];
    const int parts = v->geo->n_part, bp = f->s->bp, tp = f->s->tp;
    int32_t *role = HP_NEW(f->arena, int32_t, tp);
    if (v->end != f->g->n_layer || tp == 1 || !lower_is_split(f, f->g->n_layer - 1)) return;
    b->groups[vstage].classes = HP_NEW(f->arena, int32_t, hp_flips(f->s) * parts);
    for (int i = 0; i < hp_flips(f->s) * parts; i++) {
        const int flip = i / parts, part = i % parts, first = part - part / bp % tp * bp;
        for (int k = 0; k < tp; k++) role[k] = hp_role_of(f->s, vstage % f->s->stages, first + k * bp, flip);
        b->groups[vstage].classes[i] = group_of(b, from, role, tp, false);
    }
}

void lower_groups(hp_program_builder *b) {
    const hp_lower_facts *f = b->facts;
    const int slices = lower_slices(f);
    int32_t *all = HP_NEW(f->arena, int32_t, b->p->n_role);
    for (int r = 0; r < b->p->n_role; r++) all[r] = r;
    b->p->n_group = 1;
    b->p->n_member = b->p->n_role;
    b->p->member = all;
    b->member_room = b->p->n_role;
    b->p->group = HP_NEW(f->arena, hp_group, 1);
    b->group_room = 1;
    b->p->group[0] = (hp_group){.first = 0, .n = b->p->n_role, .all_replicas = 1};
    b->groups = HP_NEW(f->arena, hp_stage_groups, f->n_vstage);
    for (int v = 0; v < f->n_vstage; v++) {
        b->groups[v].weights = HP_NEW(f->arena, int32_t, 2 * slices);
        for (int k = 0; k < 2 * slices; k++)
            b->groups[v].weights[k] = weight_group(b, v, k % slices, k >= slices, 1, true);
        for (int k = 0; k < 2 * slices && lower_is_local(f); k++)
            weight_group(b, v, k % slices, k >= slices, 1, false);
    }
    tied_groups(b);
    const int from = b->first_stats = b->p->n_group; /* statistics never share a queue with gradients */
    for (int v = 0; v < f->n_vstage; v++) {
        const bool used = has_bn(f->g, &f->vstage[v]);
        b->groups[v].sync = HP_NEW(f->arena, int32_t, sync_groups(b));
        for (int i = 0; i < sync_groups(b); i++) {
            const int flip = i / slices / hp_shares(f->s), share = i / slices % hp_shares(f->s);
            b->groups[v].sync[i] = used ? sync_group(b, v, flip, i % slices, share, from) : -1;
        }
        class_groups(b, v, from);
    }
}
