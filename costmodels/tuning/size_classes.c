/* size_classes.c - finds the fastest row at every measured size; a class ends where its line and the next
 * choice's cross. */
#include "costmodels/tuning/size_classes.h"

#include "costmodels/tuning/fastest.h"

#include <math.h>
#include <string.h>

/* Repeated measurements differ by about this much: smaller gains do not count. */
#define LEAST_GAIN 0.02

/* Rows of one operation, compared with the one that comm=auto would take by the rule. */
typedef struct contest {
    const hp_rivals *g; /* without rows that no plan can name */
    hp_collective_case what;
    hp_wire own; /* the device's own back end */
} contest;

/* --- at one size --- */

/* -1: not measured. */
static int row_of_rule(const contest *k, double bytes) {
    const bool steps = hp_backend_steps((int32_t)k->own - 1);
    const int64_t whole = bytes < (double)INT64_MAX ? (int64_t)bytes : INT64_MAX;
    const hp_algorithm a = steps ? hp_algorithm_choose(&k->what, whole, true) : HP_ALGORITHM_LIBRARY;
    for (int i = 0; i < k->g->n; i++)
        if (k->g->call[i].by == k->own && k->g->call[i].algorithm == a) return i;
    return -1;
}

static bool gains(const contest *k, int row, int against, double bytes) {
    return hp_row_at(k->g->row[row], bytes) < (1 - LEAST_GAIN) * hp_row_at(k->g->row[against], bytes);
}

/* The row to take; `last` is that of the previous size, which stays unless another is faster. -1: as the rule
 * says, because its row was not measured here. */
static int row_at(const contest *k, int last, double bytes) {
    const int rule = row_of_rule(k, bytes);
    if (rule < 0 || isnan(hp_row_at(k->g->row[rule], bytes))) return -1;
    int best = last >= 0 && gains(k, last, rule, bytes) ? last : rule;
    for (int i = 0, from = best; i < k->g->n; i++)
        if (gains(k, i, from, bytes) &&
            (best == from || hp_row_at(k->g->row[i], bytes) < hp_row_at(k->g->row[best], bytes)))
            best = i;
    return best;
}

static int32_t choice_of(const contest *k, int row, double bytes) {
    if (row < 0 || row == row_of_rule(k, bytes)) return HP_COMM_AUTO;
    const hp_collective_call *c = &k->g->call[row];
    return hp_comm_choice((hp_backend)(c->by - 1), c->algorithm);
}

/* --- classes --- */

typedef struct classes {
    hp_arena *arena;
    hp_comm_table *t;
    int capacity, first; /* first: index of the group's first class */
} classes;

static void add_class(classes *x, const contest *k, int32_t choice, double up_to) {
    const int64_t bytes = up_to < (double)INT64_MAX ? (int64_t)up_to : INT64_MAX;
    hp_comm_table *t = x->t;
    if (t->n > x->first && t->row[t->n - 1].choice == choice) {
        t->row[t->n - 1].up_to_bytes = bytes;
        return;
    }
    HP_ROOM(x->arena, t->row, t->n, x->capacity);
    t->row[t->n++] = (hp_comm_class){k->what.what, k->what.size, k->what.per_node, bytes, choice};
}

/* Beyond the measured sizes, a choice continues as long as the rule would take the same row. */
static bool goes_on(const contest *k, double edge, double beyond) {
    return row_of_rule(k, edge) == row_of_rule(k, beyond);
}

/* The row taken at a size, and its name. */
typedef struct taken {
    int row;
    int32_t choice;
} taken;

/* Largest size for which the smaller size's choice applies. */
static double last_of(const contest *k, const taken *from, const taken *to, double a, double b) {
    if (from->row < 0 || to->row < 0) return b - 1;
    return fmax(a, ceil(hp_row_crossing(k->g->row[from->row], k->g->row[to->row], a, b)) - 1);
}

/* A class ends when another row is taken, or at the last measured size of its row. */
static taken step(classes *x, const contest *k, taken from, double a, double b) {
    if (from.choice != HP_COMM_AUTO && isnan(hp_row_at(k->g->row[from.row], b))) {
        add_class(x, k, from.choice, a);
        from = (taken){-1, HP_COMM_AUTO};
    }
    taken to = {.row = row_at(k, from.row, b)};
    to.choice = choice_of(k, to.row, b);
    if (to.choice != from.choice) add_class(x, k, from.choice, last_of(k, &from, &to, a, b));
    return to;
}

static void add_classes(classes *x, const contest *k) {
    double *size;
    const int n = hp_row_sizes(x->arena, k->g->row, k->g->n, &size);
    if (n == 0) return;
    taken t = {.row = row_at(k, -1, size[0])};
    t.choice = choice_of(k, t.row, size[0]);
    x->first = x->t->n;
    if (!goes_on(k, size[0], 0)) add_class(x, k, HP_COMM_AUTO, size[0] - 1);
    for (int i = 1; i < n; i++) t = step(x, k, t, size[i - 1], size[i]);
    add_class(x, k, t.choice, goes_on(k, size[n - 1], INFINITY) ? INFINITY : size[n - 1]);
    if (x->t->n == x->first + 1 && x->t->row[x->first].choice == HP_COMM_AUTO) x->t->n = x->first;
}

/* --- rows that a plan can name --- */

static bool can_choose(const contest *k, const hp_machine *m, const hp_device_info *d, int i) {
    const hp_collective_call *c = &k->g->call[i];
    const int32_t b = (int32_t)c->by - 1;
    if (c->by == HP_WIRE_ANY || k->g->row[i]->source != HP_SOURCE_MEASURED ||
        hp_wire_of_collective(m, (int32_t)d->kind, b) != c->by || !hp_device_has_backend(d, (hp_backend)b))
        return false;
    const bool named = c->algorithm != HP_ALGORITHM_LIBRARY;
    return named == hp_backend_steps(b) && (!named || hp_algorithm_does(c->algorithm, &k->what, true));
}

static void keep_choosable(const contest *k, const hp_machine *m, const hp_device_info *d, hp_rivals *g) {
    int kept = 0;
    for (int i = 0; i < g->n; i++) {
        if (!can_choose(k, m, d, i)) continue;
        g->call[kept] = g->call[i];
        g->row[kept++] = g->row[i];
    }
    g->n = kept;
}

hp_comm_table *hp_size_classes(hp_arena *arena, const hp_cost_table *t, const hp_machine *m,
                               const hp_device_info *device) {
    classes x = {arena, HP_NEW(arena, hp_comm_table, 1), 0, 0};
    hp_rivals *g;
    const int n = device ? hp_rivals_of(arena, t, NULL, &g) : 0;
    for (int i = 0; i < n; i++) {
        const hp_traffic traffic = (hp_traffic)(HP_TRAFFIC_ALLREDUCE + (int)g[i].what);
        const int32_t ranks = g[i].ranks, per_node = g[i].per_node < ranks ? g[i].per_node : ranks;
        const contest k = {.g = &g[i],
                           .what = {.what = g[i].what, .size = ranks, .per_node = per_node},
                           .own = (hp_wire)(1 + hp_comm_backend(HP_COMM_AUTO, traffic, device, 1))};
        const char *link = per_node == ranks ? m->intra.name : m->inter.name;
        if (ranks % per_node || strcmp(g[i].class, link) != 0) continue;
        keep_choosable(&k, m, device, &g[i]);
        add_classes(&x, &k);
    }
    return x.t;
}
