/* check_places.c - groups of ranks, and places of parameters. Places lie inside the role's arrays and do not
 * overlap; sharing ranks hold the same rows; one rank saves each row. */
#include "plan/check/check_inside.h"
#include "base/alloc.h"

#include <stdlib.h>

#define REFUSE(...) return hp_fail(err, HP_EPLAN, __VA_ARGS__)

/* --- groups --- */

static hp_status check_group(const hp_program *p, int id, hp_error *err) {
    const hp_group *g = &p->group[id];
    if (g->first < 0 || g->n < 1 || g->n > p->n_member - g->first || g->all_replicas < 0 ||
        g->all_replicas > 1)
        REFUSE("E-RANGE: group %d is out of range", id);
    const int32_t *member = p->member + g->first;
    for (int i = 0; i < g->n; i++) {
        if (member[i] < 0 || member[i] >= p->n_role)
            REFUSE("E-RANGE: group %d has rank %d of %d as a member", id, member[i], p->n_role);
        if (i > 0 && member[i] <= member[i - 1])
            REFUSE("E-RANGE: group %d has rank %d after rank %d", id, member[i], member[i - 1]);
    }
    return HP_OK;
}

hp_status hp_check_groups(const hp_program *p, hp_error *err) {
    if (p->n_group < 1 || p->n_member < 1) REFUSE("E-RANGE: the program has no groups of ranks");
    for (int i = 0; i < p->n_group; i++) HP_TRY(check_group(p, i, err));
    if (p->group[0].n != p->n_role || !p->group[0].all_replicas)
        REFUSE("E-RANGE: group 0 has %d ranks of a replica's %d: it must be the world", p->group[0].n,
               p->n_role);
    return HP_OK;
}

/* --- parameters in memory order --- */

static int64_t place_end(const hp_param_place *at) {
    return at->offset + at->count;
}

typedef struct located {
    int64_t offset;
    int32_t param;
} located;

static int by_offset(const void *a, const void *b) {
    const located *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->param - y->param;
}

hp_placed hp_placed_params(hp_arena *arena, const hp_role *r, const hp_graph *g, bool trained) {
    hp_placed l = {0, HP_NEW(arena, int32_t, g->n_param)};
    located *list = HP_NEW(arena, located, g->n_param);
    for (int i = 0; i < g->n_param; i++)
        if (r->place[i].here && hp_param_trained(&g->param[i]) == trained)
            list[l.n++] = (located){r->place[i].offset, i};
    qsort(list, (size_t)l.n, sizeof *list, by_offset);
    for (int i = 0; i < l.n; i++) l.param[i] = list[i].param;
    return l;
}

int hp_placed_from(const hp_role *r, const hp_placed *l, int64_t from) {
    int low = 0, high = l->n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (place_end(&r->place[l->param[middle]]) <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- places --- */

static hp_status check_place(const hp_program *p, const hp_graph *g, int role, int param, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_param_place *at = &r->place[param];
    const hp_param *whole = &g->param[param];
    if (!at->here) return HP_OK;
    const int64_t row = whole->count / whole->dim[0],
                  room = hp_param_trained(whole)
                             ? r->trained_elems
                             : r->buffer[HP_BUF_STATE].bytes / hp_dtype_bytes((hp_dtype)p->dtype);
    if (at->here & ~(HP_HERE | HP_HOME | HP_START) || !(at->here & HP_HERE) || at->first < 0 ||
        at->count < 1 || at->first > whole->count || at->count > whole->count - at->first ||
        at->first % row || at->count % row)
        REFUSE("E-RANGE: rank %d: elements %lld+%lld of parameter %s are no rows of it", role,
               (long long)at->first, (long long)at->count, whole->name);
    if (at->offset < 0 || at->offset > room || at->count > room - at->offset)
        REFUSE("E-RANGE: rank %d: parameter %s lies outside its buffer", role, whole->name);
    if (at->group < -1 || at->group >= p->n_group ||
        (at->group >= 0 && !hp_group_has_role(p, at->group, role)))
        REFUSE("E-RANGE: rank %d: parameter %s is shared by group %d, of which the rank is no member", role,
               whole->name, at->group);
    return HP_OK;
}

static hp_status check_disjoint(const hp_program *p, const hp_graph *g, int role, bool trained,
                                hp_error *err) {
    const hp_role *r = &p->role[role];
    hp_arena *arena = hp_arena_new();
    const hp_placed l = hp_placed_params(arena, r, g, trained);
    int i = 1;
    while (i < l.n && place_end(&r->place[l.param[i - 1]]) <= r->place[l.param[i]].offset) i++;
    const int a = i < l.n ? l.param[i - 1] : -1, b = i < l.n ? l.param[i] : -1;
    hp_arena_free(arena);
    if (a < 0) return HP_OK;
    REFUSE("E-OVERLAP: rank %d: parameters %s and %s share memory", role, g->param[a].name, g->param[b].name);
}

/* --- between roles --- */

static bool same_rows(const hp_param_place *a, const hp_param_place *b) {
    return a->here && b->here && a->group == b->group && a->first == b->first && a->count == b->count;
}

/* Compares the first member with all others in both directions, so that no member has a parameter in the
 * group that another lacks. */
static hp_status check_shared(const hp_program *p, const hp_graph *g, int role, int param, hp_error *err) {
    const hp_param_place *at = &p->role[role].place[param];
    if (!at->here || at->group < 0) return HP_OK;
    const hp_group *group = &p->group[at->group];
    const int32_t *member = p->member + group->first;
    for (int i = 0; i < (member[0] == role ? group->n : 1); i++)
        if (!same_rows(at, &p->role[member[i]].place[param]))
            REFUSE("E-RANGE: parameter %s: ranks %d and %d of group %d do not hold the same rows",
                   g->param[param].name, role, member[i], at->group);
    return HP_OK;
}

/* Rows of a parameter on one rank. */
typedef struct rows {
    int64_t first, count;
    int32_t role, group;
    bool home;
} rows;

static int by_rows(const void *a, const void *b) {
    const rows *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return x->role - y->role;
}

static int list_holders(const hp_program *p, int param, rows *list) {
    int n = 0;
    for (int r = 0; r < p->n_role; r++) {
        const hp_param_place *at = &p->role[r].place[param];
        if (at->here) list[n++] = (rows){at->first, at->count, r, at->group, at->here & HP_HOME};
    }
    qsort(list, (size_t)n, sizeof *list, by_rows);
    return n;
}

/* All ranks that hold the same rows, over all replicas, are in one group; a single rank needs none. */
static hp_status check_holders(const hp_program *p, const hp_graph *g, int param, const rows *list, int n,
                               hp_error *err) {
    for (int i = 0, end = 0; i < n; i = end) {
        while (end < n && list[end].first == list[i].first && list[end].count == list[i].count) end++;
        const int holders = end - i;
        const hp_group *group = list[i].group >= 0 ? &p->group[list[i].group] : NULL;
        const bool alone = holders == 1 && p->dp == 1;
        if (group ? group->n != holders || (p->dp > 1 && !group->all_replicas) : !alone)
            REFUSE("E-RANGE: parameter %s: group %d is not the %d ranks of a replica that hold what rank %d "
                   "holds",
                   g->param[param].name, list[i].group, holders, list[i].role);
    }
    return HP_OK;
}

/* Homes of a trained parameter are contiguous. Running statistics may have several homes, whose values add
 * up. */
static hp_status check_homes(const hp_graph *g, int param, const rows *list, int n, hp_error *err) {
    const bool trained = hp_param_trained(&g->param[param]);
    int64_t end = 0;
    for (int i = 0; i < n && list[i].first <= end; i++) {
        if (!list[i].home) continue;
        if (trained && list[i].first < end)
            REFUSE("E-RANGE: parameter %s: two ranks save element %lld", g->param[param].name,
                   (long long)list[i].first);
        if (list[i].first + list[i].count > end) end = list[i].first + list[i].count;
    }
    if (end < g->param[param].count)
        REFUSE("E-RANGE: parameter %s: no rank saves element %lld", g->param[param].name, (long long)end);
    return HP_OK;
}

static hp_status check_param(const hp_program *p, const hp_graph *g, int param, rows *list, hp_error *err) {
    const int n = list_holders(p, param, list);
    HP_TRY(check_holders(p, g, param, list, n, err));
    return check_homes(g, param, list, n, err);
}

static bool holds_any(const hp_program *p, const hp_graph *g) {
    for (int r = 0; r < p->n_role; r++)
        for (int i = 0; i < g->n_param; i++)
            if (p->role[r].place[i].here) return true;
    return false; /* a program that contains only messages */
}

hp_status hp_check_places(const hp_program *p, const hp_graph *g, hp_error *err) {
    for (int r = 0; r < p->n_role; r++) {
        for (int i = 0; i < g->n_param; i++) HP_TRY(check_place(p, g, r, i, err));
        HP_TRY(check_disjoint(p, g, r, true, err));
        HP_TRY(check_disjoint(p, g, r, false, err));
    }
    if (!holds_any(p, g)) return HP_OK;
    for (int r = 0; r < p->n_role; r++)
        for (int i = 0; i < g->n_param; i++) HP_TRY(check_shared(p, g, r, i, err));
    rows *list = hp_zeroed((size_t)p->n_role, sizeof *list);
    hp_status s = HP_OK;
    for (int i = 0; i < g->n_param && s == HP_OK; i++) s = check_param(p, g, i, list, err);
    free(list);
    return s;
}
