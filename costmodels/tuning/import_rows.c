/* import_rows.c - makes rows from imported times: the median at each size. Rejects times that no link could
 * reach, and times that do not grow with the data: whatever was timed was not the operation. */
#include "costmodels/tuning/import_text.h"
#include "traces/query.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

enum { MOST_POINTS = 200 /* most points per row; further sizes are thinned out */ };

/* Rates in machine files are those that programs reach, up to a fifth below the peak (NVLink of an H100: 371
 * of 450 GB/s). */
#define SLACK 1.25
/* From this size on, sixteen times the data must take at least half as long again. */
enum { GROWS_FROM = 1 << 20, GROWS_BY = 16 };
#define GROWTH 1.5
/* A single sample has no spread; timers and clocks vary by about this. */
#define LEAST_RESIDUAL 0.02
/* hplan's own predictions are guesses, however often they are repeated: as uncertain as links without
 * measurements. */
#define PREDICTED_RESIDUAL 0.3

/* --- groups: points of one row --- */

typedef struct sorted {
    const import_point *p;
    const char *class;
    char key[HP_COLLECTIVE_KEY];
} sorted;

/* MPI's messages between processors have no name; they are those of the link. */
static const char *message_key(const hp_import *i, const import_point *p) {
    return i->o.machine->device.is_cpu && p->call.by == HP_WIRE_MPI ? "" : hp_backend_names[p->call.by - 1];
}

static sorted sort_of(const hp_import *i, const import_point *p) {
    sorted s = {.p = p};
    s.class = p->call.per_node >= p->call.ranks ? i->o.machine->intra.name : i->o.machine->inter.name;
    if (p->kind == HP_ROW_P2P)
        snprintf(s.key, sizeof s.key, "%s", message_key(i, p));
    else
        hp_collective_key(&p->call, s.key);
    return s;
}

static int row_order(const sorted *a, const sorted *b) {
    if (a->p->kind != b->p->kind) return a->p->kind < b->p->kind ? -1 : 1;
    const int class = strcmp(a->class, b->class);
    return class ? class : strcmp(a->key, b->key);
}

static int sorted_compare(const void *a, const void *b) {
    const sorted *x = a, *y = b;
    const int row = row_order(x, y);
    if (row) return row;
    if (x->p->bytes < y->p->bytes || x->p->bytes > y->p->bytes) return x->p->bytes < y->p->bytes ? -1 : 1;
    return (x->p->seconds > y->p->seconds) - (x->p->seconds < y->p->seconds);
}

/* --- what cannot be --- */

/* Fraction of the data that must leave or enter one of n ranks at least. Networks may sum in transit (NVLS,
 * SHARP): an all-reduce then sends the data once. */
static double least_moved(hp_collective what, int n) {
    return hp_collective_infos[what].passes > 1 ? 1 : hp_collective_bus_factor(what, n);
}

/* Bytes per second of the whole data at which the busiest link is full. Ranks on cores of one node share
 * caches, not a link. */
static double most_bytes_per_s(const hp_machine *m, const hp_collective_call *c) {
    if (c->per_node >= c->ranks) {
        if (m->device.is_cpu) return INFINITY;
        return m->intra.bytes_per_s / least_moved(c->what, c->ranks);
    }
    const int nodes = (c->ranks + c->per_node - 1) / c->per_node;
    const double out = least_moved(c->what, nodes) * (c->what == HP_COLLECTIVE_ALL_TO_ALL ? c->per_node : 1);
    return m->nics_per_node * m->inter.bytes_per_s / out;
}

static hp_status check_speed(const hp_import *i, const import_point *p, hp_error *err) {
    const double rate = p->bytes / p->seconds, most = most_bytes_per_s(i->o.machine, &p->call);
    if (rate <= SLACK * most) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "%s: %.0f bytes in %.4g us are %.4g GB/s, the links of machine %s carry %.4g GB/s of this: is it "
        "another --machine, or did the timer stop before the operation?",
        p->where, p->bytes, 1e6 * p->seconds, 1e-9 * rate, i->o.machine->name, 1e-9 * most);
}

/* Points at increasing sizes. */
static hp_status check_growth(const import_point *const *p, int n, hp_error *err) {
    for (int last = 0; last < n; last++)
        for (int k = 0; k < last; k++) {
            if (p[k]->bytes < GROWS_FROM || p[last]->bytes < GROWS_BY * p[k]->bytes) continue;
            if (p[last]->seconds >= GROWTH * p[k]->seconds) continue;
            return hp_fail(err, HP_EDATA,
                           "%s: %.0f bytes take %.4g us, %.0f bytes %.4g us: enqueue timing, the timer "
                           "stopped before the "
                           "operation did; synchronise before stopping it",
                           p[last]->where, p[last]->bytes, 1e6 * p[last]->seconds, p[k]->bytes,
                           1e6 * p[k]->seconds);
        }
    return HP_OK;
}

/* --- rows --- */

static int thin_out(double *x, double *y, int n) {
    const int step = (n + MOST_POINTS - 1) / MOST_POINTS;
    int kept = 0;
    for (int i = (n - 1) % step; i < n; i += step) x[kept] = x[i], y[kept++] = y[i]; /* the last one stays */
    return kept;
}

static hp_status add_row(const hp_import *i, hp_cost_table *t, const sorted *s, int n, hp_error *err) {
    double *x = HP_NEW(i->arena, double, n), *y = HP_NEW(i->arena, double, n),
           *off = HP_NEW(i->arena, double, n);
    const import_point **middle = HP_NEW(i->arena, const import_point *, n);
    int points = 0;
    for (int k = 0, j; k < n; k = j) {
        for (j = k + 1; j < n && s[j].p->bytes == s[k].p->bytes;) j++; // NOLINT: equal sizes are equal
        const import_point *p = middle[points] = s[(k + j) / 2].p;
        HP_TRY(check_speed(i, p, err));
        x[points] = p->bytes, y[points++] = p->seconds;
        for (int r = k; r < j; r++) off[r] = fabs(s[r].p->seconds / p->seconds - 1);
    }
    HP_TRY(check_growth(middle, points, err));
    const hp_row row = {.kind = s->p->kind,
                        .class = s->class,
                        .key = s->key,
                        .source = s->p->predicted ? HP_SOURCE_GUESS : HP_SOURCE_MEASURED,
                        .residual =
                            fmax(s->p->predicted ? PREDICTED_RESIDUAL : LEAST_RESIDUAL, hp_median(off, n)),
                        .samples = n,
                        .where = hp_text_clean(i->arena, s->p->source),
                        .n = thin_out(x, y, points),
                        .x = x,
                        .y = y};
    hp_rows_add(t, &row);
    return HP_OK;
}

hp_status hp_import_rows(const hp_import *i, hp_cost_table *t, hp_error *err) {
    sorted *s = HP_NEW(i->arena, sorted, i->n);
    for (int k = 0; k < i->n; k++) s[k] = sort_of(i, &i->point[k]);
    if (i->n) qsort(s, (size_t)i->n, sizeof *s, sorted_compare);
    for (int k = 0, j; k < i->n; k = j) {
        for (j = k + 1; j < i->n && row_order(&s[k], &s[j]) == 0;) j++;
        HP_TRY(add_row(i, t, &s[k], j - k, err));
    }
    hp_rows_sort(t);
    return HP_OK;
}
