/* experiments_costs.c - the cost sources: the machine's table, the same without some of its numbers, or a
 * plain roofline. */
#include "cli/experiments/experiments.h"

#include "costmodels/framework/framework_rows.h"
#include "costmodels/cost_rows.h"

#include <string.h>

/* Peak rates of the data sheets; starting costs nothing, and nothing waits. */
static const char PEAK[] = "hplan-cost 2\n"
                           "machine any\n"
                           "date 2026-11-23\n"
                           "efficiency * * | datasheet 0 0 peak rates | flops:1 bytes:1\n"
                           "link * | datasheet 0 0 peak rate | latency:0 bandwidth:1 rate:0\n"
                           "path * ipc | datasheet 0 0 the link alone | latency:0 copies:0 host:0 hop:0\n"
                           "path * mpi | datasheet 0 0 the link alone | latency:0 copies:0 host:0 hop:0\n"
                           "path * nccl | datasheet 0 0 the link alone | latency:0 copies:0 host:0 hop:0\n"
                           "path * shm | datasheet 0 0 the link alone | latency:0 copies:0 host:0 hop:0\n";

static bool cites(const char *source, const char *const *cited, int n) {
    for (int i = 0; i < n; i++)
        if (strstr(source, cited[i])) return true;
    return false;
}

static hp_cost_table *without(hp_arena *arena, const hp_cost_table *t, const experiment_costs *c) {
    hp_cost_table *left = hp_rows_new(arena, t->machine, t->date);
    for (int i = 0; i < t->n; i++)
        if (!cites(t->row[i].where, c->without, c->n_without)) hp_rows_add(left, &t->row[i]);
    hp_rows_sort(left);
    left->origin = t->origin;
    left->speed = t->speed;
    left->base = t->base ? without(arena, t->base, c) : NULL;
    return left;
}

/* A table's text without the lines that cite any of them. */
static const char *uncited(hp_arena *arena, const char *text, const experiment_costs *c) {
    char *left = HP_NEW(arena, char, strlen(text) + 1), *to = left;
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n");
        n += text[n] == '\n';
        if (!cites(hp_arena_printf(arena, "%.*s", (int)n, text), c->without, c->n_without))
            to = (char *)memcpy(to, text, n) + n;
    }
    return left;
}

/* The framework without what was fitted to published figures: its tables' rates, the times of a Python module
 * and of a step's call, and host time at message ends. */
static const hp_framework *unfitted(hp_arena *arena, const hp_framework *f, const experiment_costs *c) {
    hp_framework *left = HP_NEW(arena, hp_framework, 1);
    *left = *f;
    for (int i = 0; i < HP_FRAMEWORK_ROWS; i++)
        if (f->rows[i]) left->rows[i] = uncited(arena, f->rows[i], c);
    if (!cites(f->source, c->without, c->n_without)) return left;
    left->host.module_s = left->host.step_s = left->host.region_s = 0;
    left->host.message_ops = f->host.message_ops_read;
    return left;
}

hp_status experiment_use_costs(hp_arena *arena, const experiment_costs *c, simulate_setup *s, hp_error *err) {
    if (c->n_without) s->costs.table = without(arena, s->costs.table, c);
    if (c->n_without && s->eval.framework) s->eval.framework = unfitted(arena, s->eval.framework, c);
    if (!c->roofline) return HP_OK;
    s->machine.device.launch_s = 0;
    return hp_rows_parse(arena, PEAK, "peak rates", &s->costs.table, err);
}

/* Number of rows of one table that cite any of them. */
static hp_status count_rows(hp_arena *arena, const char *text, const char *const *cited, int n, int *rows,
                            hp_error *err) {
    hp_cost_table *t = NULL;
    HP_TRY(hp_rows_parse(arena, text, "shipped table", &t, err));
    for (int i = 0; i < t->n; i++) *rows += cites(t->row[i].where, cited, n);
    return HP_OK;
}

hp_status experiment_cited(hp_arena *arena, const char *const *cited, int n, int *rows, hp_error *err) {
    bool framework = false;
    *rows = 0;
    HP_TRY(count_rows(arena, hp_shipped_table(), cited, n, rows, err));
    for (const char *const *table = hp_framework_tables; *table; table++)
        HP_TRY(count_rows(arena, *table, cited, n, rows, err));
    for (const hp_framework *f = hp_frameworks; f->name; f++) framework |= cites(f->source, cited, n);
    *rows += framework;
    return HP_OK;
}
