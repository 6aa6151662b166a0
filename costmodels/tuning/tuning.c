/* tuning.c - selects the rows that a library can be told about, and the fastest of them by size. */
#include "costmodels/tuning/tuning_export.h"
#include "costmodels/tuning/fastest.h"

#include <string.h>

void hp_tuning_leave_out(hp_tuning_report *r, const char *key) {
    const size_t used = strlen(r->left_out);
    snprintf(r->left_out + used, sizeof r->left_out - used, "%s%s", used ? ", " : "", key);
}

hp_status hp_tuning_end(FILE *f, const hp_cost_table *t, const char *library, const hp_tuning_report *r,
                        hp_error *err) {
    if (r->rules == 0)
        return hp_fail(
            err, HP_EDATA,
            "%.200s has no row of an algorithm that %s could be told to use%s%.300s; hplan calibrate --comm "
            "measures algorithms, calibrate --import FILE --algorithm NAME takes them in",
            hp_cost_origin(t), library, *r->left_out ? ": left out are " : "", r->left_out);
    return ferror(f) ? hp_fail(err, HP_EIO, "writing rules for %s failed", library) : HP_OK;
}

static bool is_known(const hp_tunable *l, const hp_collective_call *c) {
    if (!l->has(c->what, c->algorithm)) return false;
    return c->by == l->by || (c->by == HP_WIRE_OWN && c->algorithm != HP_ALGORITHM_LIBRARY);
}

/* Was the library itself measured with that algorithm? */
static bool is_measured(const hp_tunable *l, const hp_rivals *g, hp_algorithm a) {
    for (int i = 0; i < g->n; i++)
        if (g->call[i].by == l->by && g->call[i].algorithm == a) return true;
    return false;
}

/* Keeps the rows that count; false if none names an algorithm. */
static bool keep_known(const hp_tunable *l, hp_rivals *g, hp_tuning_report *r) {
    int kept = 0;
    bool named = false;
    for (int i = 0; i < g->n; i++) {
        const hp_collective_call c = g->call[i];
        const bool known = is_known(l, &c);
        if (!known) hp_tuning_leave_out(r, g->row[i]->key);
        if (!known || (c.by != l->by && is_measured(l, g, c.algorithm))) continue;
        named = named || c.algorithm != HP_ALGORITHM_LIBRARY;
        g->call[kept] = c;
        g->row[kept++] = g->row[i];
    }
    g->n = kept;
    return named;
}

static hp_tuned_group tune(hp_arena *arena, const hp_rivals *g) {
    hp_fastest *f;
    hp_tuned_group out = {.what = g->what, .ranks = g->ranks, .per_node = g->per_node};
    const int n = hp_fastest_of(arena, g->row, g->n, &f);
    out.tuned = HP_NEW(arena, hp_tuned, n);
    for (int i = 0; i < n; i++)
        out.tuned[out.n++] = (hp_tuned){i ? f[i].bytes : 0, g->call[f[i].row].algorithm};
    return out;
}

int hp_tuned_groups(hp_arena *arena, const hp_cost_table *t, const hp_tunable *library, hp_tuned_group **out,
                    hp_tuning_report *r) {
    hp_rivals *g;
    const int n = hp_rivals_of(arena, t, NULL, &g);
    int kept = 0;
    *r = (hp_tuning_report){.rules = 0};
    *out = HP_NEW(arena, hp_tuned_group, n);
    for (int i = 0; i < n; i++)
        if (keep_known(library, &g[i], r)) (*out)[kept++] = tune(arena, &g[i]);
    return kept;
}
