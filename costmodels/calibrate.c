/* calibrate.c - turns the samples of all runs into rows: a line per shape class, a fit and a share per
 * family, lines for messages and collectives.
 *
 * Tasks that only runs over tiles have (copies, statistics) are taken from those runs, corrected for
 * contention between ranks. Rows hold seconds on the quiet machine: each sample is divided by its run's
 * slowdown for its class of operations. Rows use means, because a step is the sum of its tasks, and means add
 * up while medians do not. */
#include "costmodels/calibrate.h"

#include "costmodels/cost_fit.h"
#include "costmodels/cost_line.h"
#include "costmodels/link_fit.h"
#include "costmodels/cost_samples.h"
#include "costmodels/cost_speed.h"
#include "costmodels/cost_yardstick.h"
#include "traces/query.h"

#include <math.h>
#include <string.h>

enum { MAX_POINTS = 200 /* most points per row; further sizes are thinned out */ };

struct hp_calibration {
    hp_arena *arena;
    hp_machine machine;
    hp_sample_list sample;
};

hp_calibration *hp_calibration_new(hp_arena *arena, const hp_machine *m) {
    hp_calibration *c = HP_NEW(arena, hp_calibration, 1);
    c->arena = c->sample.arena = arena;
    c->machine = *m;
    return c;
}

hp_sample_list *hp_calibration_samples(hp_calibration *c) {
    return &c->sample;
}

static void begin_run(hp_calibration *c, const char *job, int64_t time_s, const hp_plan *plan,
                      const hp_drift *d) {
    hp_sample_list *l = &c->sample;
    HP_ROOM(c->arena, l->run, l->n_run, l->run_capacity);
    hp_sample_run *r = &l->run[l->n_run++];
    *r = (hp_sample_run){.time_s = time_s,
                         .computing = hp_samples_computing(&c->machine, plan->program),
                         .reading = d->reading,
                         .n_reading = d->n};
    snprintf(r->job, sizeof r->job, "%s", job);
}

/* Loads the newest executed run, without its warm-up. */
static hp_status load_run(hp_arena *arena, hp_db *db, hp_plan *plan, hp_trace *trace, hp_drift *drift,
                          hp_error *err) {
    int64_t run;
    HP_TRY(hp_plan_read(arena, db, plan, err));
    HP_TRY(hp_trace_find(db, "exec", &run, err));
    if (run < 0) return hp_fail(err, HP_EDATA, "%s holds no executed run; hplan run writes one", db->path);
    HP_TRY(hp_trace_load(arena, db, run, false, trace, err));
    if (trace->n_iter == 0)
        return hp_fail(err, HP_EDATA, "%s: no iteration is complete; run more steps", db->path);
    hp_trace_drop_warmup(trace);
    return hp_drift_read(arena, db, trace, drift, err);
}

hp_status hp_calibration_add(hp_calibration *c, const char *job, int64_t time_s, hp_db *db, hp_error *err) {
    hp_plan plan;
    hp_trace trace;
    hp_drift drift;
    HP_TRY(load_run(c->arena, db, &plan, &trace, &drift, err));
    begin_run(c, job, time_s, &plan, &drift);
    hp_samples_compute(&c->sample, &c->machine, &plan, &trace, &drift);
    hp_samples_comm(&c->sample, &c->machine, &plan, &trace, &drift);
    return HP_OK;
}

hp_status hp_calibration_speed(const hp_calibration *c, const hp_cost_table *t, hp_db *db, hp_speed *speed,
                               double *step_s, bool *undisturbed, hp_error *err) {
    static const double PRESENT = 0.95; /* below this, ranks wait for descheduled ones, which no factor
                                         * corrects */
    hp_plan plan;
    hp_trace trace;
    hp_drift drift;
    HP_TRY(load_run(c->arena, db, &plan, &trace, &drift, err));
    hp_sample_run run = {.computing = hp_samples_computing(&c->machine, plan.program),
                         .reading = drift.reading,
                         .n_reading = drift.n};
    const hp_sample_list one = {.arena = c->arena, .run = &run, .n_run = 1};
    *speed = *hp_run_speeds(t, &c->machine, &one);
    *step_s = hp_median(hp_trace_steps(c->arena, &trace), trace.n_iter) * drift.availability;
    *undisturbed = drift.availability >= PRESENT;
    return HP_OK;
}

void hp_calibration_hold(hp_calibration *c, hp_held held) {
    hp_sample_list *l = &c->sample;
    HP_ROOM(c->arena, l->held, l->n_held, l->held_capacity);
    l->held[l->n_held++] = held;
}

/* The samples, converted to the quiet machine. */
static hp_sample_list quiet_samples(const hp_calibration *c, const hp_cost_table *t) {
    hp_sample_list l = c->sample;
    const hp_speed *speed = hp_run_speeds(t, &c->machine, &l);
    l.row = HP_NEW(c->arena, hp_sample_row, l.n);
    memcpy(l.row, c->sample.row, sizeof *l.row * (size_t)l.n);
    for (int i = 0; i < l.n; i++) {
        hp_sample_row *s = &l.row[i];
        const hp_work w = {.flops = s->flops, .bytes = s->bytes};
        s->clock_s = s->seconds;
        if (hp_link_leaves(&c->machine, s->class))
            continue; /* the link's time does not depend on the
                                                              * cores */
        s->seconds /= s->kind == HP_ROW_COMPUTE ? hp_speed_of_work(&speed[s->run], &c->machine, &w)
                                                : hp_speed_of_copy(&speed[s->run], &c->machine, s->bytes);
    }
    return l;
}

/* Was the task alone on its device? Single-rank runs; communication always counts. */
static bool was_alone(const hp_sample_row *s) {
    return s->kind != HP_ROW_COMPUTE || s->ranks == 1;
}

static int sample_compare(const void *a, const void *b) {
    const hp_sample_row *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (was_alone(x) != was_alone(y)) return was_alone(x) ? -1 : 1;
    const int class = strcmp(x->class, y->class), key = strcmp(x->key, y->key);
    if (class || key) return class ? class : key;
    if (x->size < y->size || x->size > y->size) return x->size < y->size ? -1 : 1;
    return x->seconds < y->seconds ? -1 : x->seconds > y->seconds;
}

static bool same_row(const hp_sample_row *a, const hp_sample_row *b) {
    return a->kind == b->kind && was_alone(a) == was_alone(b) && strcmp(a->class, b->class) == 0 &&
           strcmp(a->key, b->key) == 0;
}

/* Mean without the highest and lowest tenth: one interrupted sample in ten changes nothing. Samples are
 * sorted by time. */
static double trimmed_mean(const hp_sample_row *s, int n) {
    const int cut = n / 10;
    double sum = 0;
    for (int i = cut; i < n - cut; i++) sum += s[i].seconds;
    return sum / (n - 2 * cut);
}

/* Makes one point per size. Messages of training runs use the median, because waiting only adds time. spread:
 * median relative distance of the samples from their points, computed in `work` (n values). */
static int make_points(const hp_sample_row *s, int n, double *x, double *y, double *work, double *spread) {
    int points = 0;
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && s[j].size == s[i].size;) j++; // NOLINT: equal sizes are equal
        if (points == MAX_POINTS) points--;                    /* thinning always keeps the last one */
        x[points] = s[i].size;
        const bool waits = s[i].kind != HP_ROW_COMPUTE && !s[i].benchmark;
        y[points] = waits ? s[(i + j) / 2].seconds : trimmed_mean(&s[i], j - i);
        for (int k = i; k < j; k++) work[k] = fabs(s[k].seconds / y[points] - 1);
        points++;
    }
    *spread = hp_median(work, n);
    return points;
}

enum { RESIDUAL_PERCENT = 2 /* a single sample has no spread; timers and clocks vary by about this */ };

static void add_line(hp_cost_table *t, const hp_sample_row *s, int n, int runs) {
    double x[MAX_POINTS], y[MAX_POINTS], spread;
    const int points = make_points(s, n, x, y, HP_NEW(t->arena, double, n), &spread);
    hp_row row = {.kind = s->kind,
                  .class = s->class,
                  .key = s->key,
                  .source = HP_SOURCE_MEASURED,
                  .samples = n,
                  .residual = fmax(spread, RESIDUAL_PERCENT / 100.0),
                  .n = points,
                  .x = x,
                  .y = y};
    row.where = hp_arena_printf(t->arena, "hplan calibrate, %d runs", runs);
    hp_rows_add(t, &row);
}

/* Messages of a benchmark program show what messages cost. Those of a training run include other delays and
 * count only if there are no others. Moves the former to the front and returns the number of samples to
 * use. */
static int keep_benchmarks(hp_sample_row *s, int n) {
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (s[i].benchmark) s[kept++] = s[i];
    return kept ? kept : n;
}

/* --- families --- */

typedef struct family {
    char name[80], class[32];
    hp_fit_sample *sample;
    int n, capacity;
    double measured_s, expected_s; /* seconds of contended tasks, and of the same tasks alone */
    int64_t contended;
    double ranks; /* sum of ranks over the contended samples */
} family;

typedef struct families {
    hp_arena *arena;
    family *family;
    int n, capacity;
} families;

static family *find_family(families *f, const hp_sample_row *s) {
    char name[80];
    hp_key_fit(s->key, name, sizeof name);
    for (int i = 0; i < f->n; i++) {
        if (strcmp(f->family[i].name, name) == 0 && strcmp(f->family[i].class, s->class) == 0)
            return &f->family[i];
    }
    HP_ROOM(f->arena, f->family, f->n, f->capacity);
    family *new = &f->family[f->n++];
    *new = (family){.n = 0};
    memcpy(new->name, name, sizeof name);
    memcpy(new->class, s->class, sizeof new->class);
    return new;
}

static void add_to_family(families *f, const hp_sample_row *s) {
    family *a = find_family(f, s);
    HP_ROOM(f->arena, a->sample, a->n, a->capacity);
    a->sample[a->n++] = (hp_fit_sample){s->flops, s->bytes, s->seconds, s->clock_s};
}

/* Compares a task of a data-parallel run with its duration alone. */
static void add_contended(families *f, const hp_cost_table *t, const hp_sample_row *s) {
    hp_measured_line alone;
    if (s->tiles || s->node_ranks < 2 || !hp_rows_compute(t, s->class, s->key, s->size, &alone) ||
        alone.outside > HP_FAR_OCTAVES)
        return;
    family *a = find_family(f, s);
    a->measured_s += s->seconds;
    a->expected_s += alone.seconds;
    a->ranks += s->node_ranks;
    a->contended++;
}

static void add_fit_row(hp_cost_table *t, const family *f) {
    hp_fit fit;
    if (!hp_fit_work(f->sample, f->n, &fit)) return;
    double x[HP_FIT_FIELDS], y[HP_FIT_FIELDS] = {[HP_FIT_LAUNCH] = fit.launch_s,
                                                 [HP_FIT_FLOPS] = fit.flops_per_s,
                                                 [HP_FIT_BYTES] = fit.bytes_per_s,
                                                 [HP_FIT_LEAST] = fit.bytes_least,
                                                 [HP_FIT_MOST] = fit.bytes_most,
                                                 [HP_FIT_INTENSITY_LEAST] = fit.intensity_least,
                                                 [HP_FIT_INTENSITY_MOST] = fit.intensity_most,
                                                 [HP_FIT_FASTEST] = fit.fastest};
    for (int i = 0; i < HP_FIT_FIELDS; i++) x[i] = i;
    const hp_row row = {.kind = HP_ROW_FIT,
                        .class = f->class,
                        .key = f->name,
                        .source = HP_SOURCE_MEASURED,
                        .residual = fit.residual,
                        .samples = f->n,
                        .where = "fit of the measured rows",
                        .n = HP_FIT_FIELDS,
                        .x = x,
                        .y = y};
    hp_rows_add(t, &row);
}

/* n tasks of share u each slow down by a factor s = n u: u = s / n. */
static void add_share_row(hp_cost_table *t, const family *f) {
    if (f->contended == 0 || f->expected_s <= 0) return;
    const double n = f->ranks / (double)f->contended, slowdown = f->measured_s / f->expected_s;
    double x[1] = {0}, y[1] = {fmin(1, fmax(1 / n, slowdown / n))};
    const hp_row row = {.kind = HP_ROW_SHARE,
                        .class = f->class,
                        .key = f->name,
                        .source = HP_SOURCE_MEASURED,
                        .samples = f->contended,
                        .where = "data-parallel runs against one rank alone",
                        .n = 1,
                        .x = x,
                        .y = y};
    hp_rows_add(t, &row);
}

/* --- tasks that only tiles have --- */

/* Share of a family that was not measured under contention: that of batch norm, which is memory-bound in the
 * same way. */
static double share_like(const hp_cost_table *t, const hp_sample_row *s, bool *own) {
    char name[80], norm[96];
    const hp_row *row = hp_rows_find(t, HP_ROW_SHARE, s->class, hp_key_fit(s->key, name, sizeof name));
    *own = row != NULL;
    const char *type = strrchr(name, ' ');
    snprintf(norm, sizeof norm, "fwd.bn%s", type ? type : "");
    if (!row) row = hp_rows_find(t, HP_ROW_SHARE, s->class, norm);
    return row ? row->y[0] : 1.0 / s->node_ranks;
}

static void add_like_share(hp_cost_table *t, const hp_sample_row *s, double share) {
    char name[80];
    double x[1] = {0}, y[1] = {share};
    const hp_row row = {.kind = HP_ROW_SHARE,
                        .class = s->class,
                        .key = hp_key_fit(s->key, name, sizeof name),
                        .source = HP_SOURCE_GUESS,
                        .where = "as batch norm's: both wait for memory",
                        .n = 1,
                        .x = x,
                        .y = y};
    for (int i = 0; i < t->n; i++)
        if (t->row[i].kind == row.kind && strcmp(t->row[i].class, row.class) == 0 &&
            strcmp(t->row[i].key, row.key) == 0)
            return;
    hp_rows_add(t, &row);
}

/* Is there a row for exactly this length? Between lengths, a contended measurement tells more than
 * interpolation. */
static bool only_tiles_have(const hp_cost_table *t, const hp_sample_row *s) {
    return s->kind == HP_ROW_COMPUTE && s->tiles && s->node_ranks > 1 &&
           !hp_rows_find(t, HP_ROW_COMPUTE, s->class, s->key);
}

/* Adds rows, fits and shares of these tasks; t holds the measured rows, sorted. */
static void add_tile_rows(hp_cost_table *t, hp_sample_list *l, families *f, int runs) {
    const hp_cost_table measured = {.n = t->n, .row = t->row};
    const int first = f->n;
    for (int i = 0, j; i < l->n; i = j) {
        hp_sample_row *s = &l->row[i];
        for (j = i + 1; j < l->n && same_row(s, &l->row[j]);) j++;
        if (!only_tiles_have(&measured, s)) continue;
        bool own;
        const double share = share_like(&measured, s, &own), slowdown = fmax(1, share * s->node_ranks);
        for (int k = i; k < j; k++) l->row[k].seconds /= slowdown;
        add_line(t, s, j - i, runs);
        if (own) continue;
        add_like_share(t, s, share);
        for (int k = i; k < j; k++) add_to_family(f, &l->row[k]);
    }
    for (int i = first; i < f->n; i++) add_fit_row(t, &f->family[i]);
}

/* Adds a line per shape class of tasks alone, and of messages. */
static void add_lines(hp_cost_table *t, hp_sample_list *l) {
    for (int i = 0, j; i < l->n; i = j) {
        for (j = i + 1; j < l->n && same_row(&l->row[i], &l->row[j]);) j++;
        if (was_alone(&l->row[i])) add_line(t, &l->row[i], keep_benchmarks(&l->row[i], j - i), l->n_run);
    }
    hp_rows_sort(t);
}

static void add_families(hp_cost_table *t, const hp_sample_list *l, families *f) {
    for (int i = 0; i < l->n; i++) {
        if (l->row[i].kind != HP_ROW_COMPUTE) continue;
        if (was_alone(&l->row[i]))
            add_to_family(f, &l->row[i]);
        else
            add_contended(f, t, &l->row[i]);
    }
    for (int i = 0; i < f->n; i++) {
        add_fit_row(t, &f->family[i]);
        add_share_row(t, &f->family[i]);
    }
    hp_rows_sort(t);
}

hp_status hp_calibration_table(hp_calibration *c, const hp_cost_table *before, const char *date,
                               hp_cost_table **out, hp_error *err) {
    if (c->sample.n == 0) return hp_fail(err, HP_EDATA, "nothing was measured; add a run with hplan run");
    hp_cost_table *t = hp_rows_new(c->arena, c->machine.name, date);
    families f = {.arena = c->arena};
    hp_yardstick_rows(t, &c->machine, &c->sample);
    hp_jitter_row(t, &c->machine, &c->sample);
    hp_error_row(t, &c->machine, &c->sample);
    hp_rows_sort(t);
    hp_sample_list l = quiet_samples(c, t);
    qsort(l.row, (size_t)l.n, sizeof *l.row, sample_compare);
    add_lines(t, &l);
    hp_link_fit_row(t, &c->machine);
    add_families(t, &l, &f);
    add_tile_rows(t, &l, &f, l.n_run);
    hp_rows_keep(t, before);
    t->speed = hp_speed_usual(t);
    *out = t;
    return HP_OK;
}
