/* cost_yardstick.c - computes rows from the yardstick readings of all runs. */
#include "costmodels/cost_yardstick.h"

#include "costmodels/jitter_fit.h"
#include "costmodels/cost_speed.h"
#include "traces/run_speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_QUANTILE 0.05
enum { FEWEST_RUNS = 3, FEWEST_READINGS = 4 };

/* Readings of one yardstick in one run. error: relative standard error of the mean, NaN for fewer than 2. */
typedef struct run_mean {
    int n;
    double mean, error;
} run_mean;

static run_mean mean_of(const hp_sample_run *r, int yardstick) {
    run_mean m = {0, 0, NAN};
    double squares = 0;
    for (int i = 0; i < r->n_reading; i++)
        if (r->reading[i].yardstick == yardstick) m.mean += r->reading[i].seconds, m.n++;
    m.mean = m.n ? m.mean / m.n : NAN;
    for (int i = 0; i < r->n_reading; i++)
        if (r->reading[i].yardstick == yardstick)
            squares += (r->reading[i].seconds - m.mean) * (r->reading[i].seconds - m.mean);
    if (m.n > 1) m.error = sqrt(squares / (m.n - 1) / m.n) / m.mean;
    return m;
}

/* --- yardstick rows --- */

static double spread_of(const hp_sample_list *l, int yardstick, int computing) {
    double sum = 0, squares = 0, errors = 0;
    int n = 0;
    for (int i = 0; i < l->n_run; i++) {
        if (l->run[i].computing != computing) continue;
        const run_mean m = mean_of(&l->run[i], yardstick);
        if (m.n < FEWEST_READINGS) continue;
        sum += m.mean, squares += m.mean * m.mean, errors += m.error * m.error * m.mean * m.mean;
        n++;
    }
    if (n < FEWEST_RUNS) return 0;
    const double mean = sum / n, variance = (squares - sum * mean) / (n - 1);
    return sqrt(fmax(0, variance - errors / n)) / mean;
}

static int double_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_row(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l, int yardstick,
                    int computing) {
    int64_t most = 0, n = 0;
    int runs = 0;
    for (int i = 0; i < l->n_run; i++) most += l->run[i].n_reading;
    double *value = HP_NEW(t->arena, double, most), mean = 0;
    for (int i = 0; i < l->n_run; i++) {
        if (l->run[i].computing != computing) continue;
        const int64_t before = n;
        for (int k = 0; k < l->run[i].n_reading; k++)
            if (l->run[i].reading[k].yardstick == yardstick) value[n++] = l->run[i].reading[k].seconds;
        runs += n > before;
    }
    if (n == 0) return;
    qsort(value, (size_t)n, sizeof *value, double_compare);
    for (int64_t i = 0; i < n; i++) mean += value[i] / (double)n;
    double x[3] = {0, 1, 2},
           y[3] = {value[(int64_t)(QUIET_QUANTILE * (double)n)], mean, spread_of(l, yardstick, computing)};
    const hp_row row = {.kind = HP_ROW_YARDSTICK,
                        .class = m->device.name,
                        .key = hp_arena_printf(t->arena, "%s r%d", hp_yardstick_names[yardstick], computing),
                        .source = HP_SOURCE_MEASURED,
                        .samples = n,
                        .where = hp_arena_printf(t->arena, "hplan calibrate, %d runs", runs),
                        .n = 3,
                        .x = x,
                        .y = y};
    hp_rows_add(t, &row);
}

void hp_yardstick_rows(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l) {
    int most = 0;
    for (int i = 0; i < l->n_run; i++) most = l->run[i].computing > most ? l->run[i].computing : most;
    for (int y = 0; y < HP_SPEED_CLASSES; y++)
        for (int r = 1; r <= most; r++) add_row(t, m, l, y, r);
}

/* --- runs --- */

static hp_speed speed_of(const hp_cost_table *t, const hp_machine *m, const hp_sample_run *r) {
    hp_speed s;
    double known = 0;
    int n = 0;
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        const hp_row *row = hp_yardstick_row(t, m->device.name, (hp_yardstick)y, r->computing);
        const run_mean seen = mean_of(r, y);
        s.slowdown[y] = NAN;
        if (!row || !seen.n) continue;
        const double quiet_s = row->y[HP_YARDSTICK_QUIET];
        s.slowdown[y] = hp_speed_shrink(seen.mean / quiet_s, seen.error, row->y[HP_YARDSTICK_MEAN] / quiet_s,
                                        row->y[HP_YARDSTICK_SPREAD]);
        known += s.slowdown[y];
        n++;
    }
    for (int y = 0; y < HP_SPEED_CLASSES; y++) /* classes slow down together */
        if (isnan(s.slowdown[y])) s.slowdown[y] = n ? known / n : 1;
    return s;
}

hp_speed *hp_run_speeds(const hp_cost_table *t, const hp_machine *m, const hp_sample_list *l) {
    hp_speed *speed = HP_NEW(t->arena, hp_speed, l->n_run);
    for (int i = 0; i < l->n_run; i++) speed[i] = speed_of(t, m, &l->run[i]);
    return speed;
}

/* --- jitter --- */

static int reading_compare(const void *a, const void *b) {
    const hp_reading *x = a, *y = b;
    if (x->yardstick != y->yardstick) return x->yardstick < y->yardstick ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->t_s > y->t_s) - (x->t_s < y->t_s);
}

/* Appends the readings of a run; each rank and yardstick is a series around 1. */
static int add_series(hp_arena *arena, const hp_sample_run *r, int series, hp_jitter_reading *out, int *n) {
    hp_reading *sorted = HP_NEW(arena, hp_reading, r->n_reading);
    if (r->n_reading) memcpy(sorted, r->reading, sizeof *sorted * (size_t)r->n_reading);
    qsort(sorted, (size_t)r->n_reading, sizeof *sorted, reading_compare);
    for (int i = 0, j; i < r->n_reading; i = j, series++) {
        double sum = 0;
        for (j = i; j < r->n_reading && sorted[j].yardstick == sorted[i].yardstick &&
                    sorted[j].rank == sorted[i].rank;
             j++)
            sum += sorted[j].seconds;
        for (int k = i; j - i >= FEWEST_READINGS && k < j; k++)
            out[(*n)++] = (hp_jitter_reading){series, sorted[k].t_s, sorted[k].seconds * (j - i) / sum};
    }
    return series;
}

/* Median variation of tasks over the iterations, minus the part explained by the core's speed. */
static double task_cv(const hp_cost_table *t, const hp_sample_list *l, const hp_core_jitter *j) {
    double *left = HP_NEW(t->arena, double, l->n);
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        const hp_sample_row *s = &l->row[i];
        if (s->kind != HP_ROW_COMPUTE || isnan(s->variance)) continue;
        const double core = j->tau_s > 0 ? j->cv * j->cv * hp_jitter_averaged(s->seconds / j->tau_s) : 0;
        left[n++] = fmax(0, s->variance - core);
    }
    return n ? sqrt(hp_median(left, n)) : 0;
}

void hp_jitter_row(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l) {
    int64_t most = 0;
    int n = 0, series = 0;
    for (int i = 0; i < l->n_run; i++) most += l->run[i].n_reading;
    if (most == 0) return;
    hp_jitter_reading *reading = HP_NEW(t->arena, hp_jitter_reading, most);
    for (int i = 0; i < l->n_run; i++) series = add_series(t->arena, &l->run[i], series, reading, &n);
    const hp_core_jitter j = hp_jitter_fit(reading, n);
    double x[3] = {0, 1, 2}, y[3] = {j.cv, j.tau_s, task_cv(t, l, &j)};
    const hp_row row = {.kind = HP_ROW_JITTER,
                        .class = m->device.name,
                        .key = "",
                        .source = HP_SOURCE_MEASURED,
                        .samples = n,
                        .where = "yardsticks and tasks of the runs",
                        .n = 3,
                        .x = x,
                        .y = y};
    hp_rows_add(t, &row);
}

/* --- error --- */

void hp_error_row(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l) {
    if (l->n_held == 0) return;
    const hp_step_error e = hp_error_fit(l->held, l->n_held);
    double x[2] = {0, 1}, y[2] = {e.relative, e.seconds};
    const hp_row row = {.kind = HP_ROW_ERROR,
                        .class = m->device.name,
                        .key = "step",
                        .source = HP_SOURCE_MEASURED,
                        .samples = l->n_held,
                        .where = "runs that fed no row",
                        .n = 2,
                        .x = x,
                        .y = y};
    hp_rows_add(t, &row);
}
