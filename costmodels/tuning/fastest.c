/* fastest.c - the lowest of several lines: compared at every measured size of any line, and at crossings in
 * between. */
#include "costmodels/tuning/fastest.h"

#include "costmodels/cost_line.h"

#include <math.h>
#include <string.h>

double hp_row_at(const hp_row *row, double bytes) {
    if (bytes < row->x[0] || bytes > row->x[row->n - 1]) return NAN;
    return hp_line_at(row->x, row->y, row->n, bytes);
}

static int number_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int hp_row_sizes(hp_arena *arena, const hp_row *const *row, int n, double **out) {
    int most = 0, kept = 0;
    for (int r = 0; r < n; r++) most += row[r]->n;
    double *x = *out = HP_NEW(arena, double, most);
    for (int r = 0, k = 0; r < n; k += row[r++]->n) memcpy(x + k, row[r]->x, sizeof *x * (size_t)row[r]->n);
    qsort(x, (size_t)most, sizeof *x, number_compare);
    for (int i = 0; i < most; i++)
        if (kept == 0 || x[i] > x[kept - 1]) x[kept++] = x[i];
    return kept;
}

/* `last`: stays chosen while no other is faster; -1: none. */
static int lowest_at(const hp_row *const *row, int n, double bytes, int last) {
    int best = last >= 0 && !isnan(hp_row_at(row[last], bytes)) ? last : -1;
    for (int r = 0; r < n; r++)
        if (best < 0 ? !isnan(hp_row_at(row[r], bytes))
                     : hp_row_at(row[r], bytes) < hp_row_at(row[best], bytes))
            best = r;
    return best;
}

double hp_row_crossing(const hp_row *from, const hp_row *to, double a, double b) {
    const double before = hp_row_at(to, a) - hp_row_at(from, a),
                 after = hp_row_at(from, b) - hp_row_at(to, b);
    if (isnan(before) || isnan(after) || before + after <= 0) return b;
    return a + (b - a) * before / (before + after);
}

int hp_fastest_of(hp_arena *arena, const hp_row *const *row, int n, hp_fastest **out) {
    double *x;
    int found = 0, last = -1;
    const int sizes = hp_row_sizes(arena, row, n, &x);
    *out = HP_NEW(arena, hp_fastest, sizes);
    for (int i = 0; i < sizes; i++) {
        const int now = lowest_at(row, n, x[i], last);
        if (now == last) continue;
        (*out)[found++] =
            (hp_fastest){last < 0 ? x[i] : hp_row_crossing(row[last], row[now], x[i - 1], x[i]), now};
        last = now;
    }
    return found;
}

/* --- rivals --- */

static hp_rivals *group_of(hp_arena *arena, hp_rivals **g, int *n, int *capacity, const hp_row *r,
                           const hp_collective_call *c) {
    for (int i = 0; i < *n; i++) {
        const hp_rivals *x = &(*g)[i];
        if (x->what == c->what && x->ranks == c->ranks && x->per_node == c->per_node &&
            strcmp(x->class, r->class) == 0)
            return &(*g)[i];
    }
    HP_ROOM(arena, *g, *n, *capacity);
    (*g)[*n] = (hp_rivals){.what = c->what, .ranks = c->ranks, .per_node = c->per_node, .class = r->class};
    return &(*g)[(*n)++];
}

static void add_rival(hp_arena *arena, hp_rivals *g, const hp_row *r, const hp_collective_call *c) {
    int calls = g->capacity;
    HP_ROOM(arena, g->call, g->n, calls);
    HP_ROOM(arena, g->row, g->n, g->capacity);
    g->call[g->n] = *c;
    g->row[g->n++] = r;
}

static int rivals_compare(const void *a, const void *b) {
    const hp_rivals *x = a, *y = b;
    if (x->what != y->what) return x->what < y->what ? -1 : 1;
    if (x->ranks != y->ranks) return x->ranks < y->ranks ? -1 : 1;
    if (x->per_node != y->per_node) return x->per_node < y->per_node ? -1 : 1;
    return strcmp(x->class, y->class);
}

int hp_rivals_of(hp_arena *arena, const hp_cost_table *t, bool (*wanted)(const hp_collective_call *c),
                 hp_rivals **out) {
    int n = 0, capacity = 0;
    *out = NULL;
    for (int i = 0; i < t->n; i++) {
        const hp_row *r = &t->row[i];
        hp_collective_call c;
        if (r->kind != HP_ROW_COLLECTIVE || !hp_collective_of_key(r->key, &c) || (wanted && !wanted(&c)))
            continue;
        add_rival(arena, group_of(arena, out, &n, &capacity, r, &c), r, &c);
    }
    if (n) qsort(*out, (size_t)n, sizeof **out, rivals_compare);
    return n;
}
