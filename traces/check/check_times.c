/* check_times.c - step, phases and waiting of runs as samples, and their spread. */
#include "traces/check/check_times.h"
#include "traces/check/compare.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

static double *phase_samples(hp_arena *arena, const hp_trace *t, int phase) {
    int32_t *group = HP_NEW(arena, int32_t, t->n_task);
    for (int i = 0; i < t->n_task; i++) group[i] = t->task[i].phase == phase ? 0 : -1;
    return hp_trace_totals(arena, t, group, 1);
}

/* The figure of each row for one run. */
static void value_of_run(hp_arena *arena, const hp_trace *t, double value[HP_TIMES]) {
    const double *phase = hp_compare_phases(arena, t);
    value[HP_TIME_STEP] = hp_median(hp_trace_steps(arena, t), t->n_iter);
    for (int i = 0; i <= HP_PHASES; i++) value[HP_TIME_PHASE + i] = phase[i];
}

static hp_check_times times_of_steps(hp_arena *arena, const hp_trace *t) {
    hp_check_times times = {.n = t->n_iter};
    value_of_run(arena, t, times.value);
    times.sample[HP_TIME_STEP] = hp_trace_steps(arena, t);
    for (int i = 0; i < HP_PHASES; i++) times.sample[HP_TIME_PHASE + i] = phase_samples(arena, t, i);
    times.sample[HP_TIME_WAITING] = hp_trace_waiting(arena, t);
    return times;
}

static hp_check_times times_of_runs(hp_arena *arena, const hp_check_side *s) {
    hp_check_times times = {.n = s->n};
    for (int k = 0; k < HP_TIMES; k++) times.sample[k] = HP_NEW(arena, double, s->n);
    for (int i = 0; i < s->n; i++) {
        double value[HP_TIMES];
        value_of_run(arena, &s->run[i].trace, value);
        for (int k = 0; k < HP_TIMES; k++) times.sample[k][i] = value[k];
    }
    for (int k = 0; k < HP_TIMES; k++) times.value[k] = hp_median(times.sample[k], s->n);
    return times;
}

hp_check_times hp_check_times_of(hp_arena *arena, const hp_check_side *s, bool by_run) {
    return by_run ? times_of_runs(arena, s) : times_of_steps(arena, &s->run[0].trace);
}

/* Values to leave out at each end of n sorted ones, so that the rest covers the median with 95 %; -1: none
 * does, not even all of them. */
static int left_out(int n) {
    int k = -1;
    while (2 * gsl_cdf_binomial_P((unsigned)(k + 1), 0.5, (unsigned)n) <= 0.05) k++;
    return k;
}

hp_check_value hp_check_describe(double value, double *sample, int n) {
    gsl_sort(sample, 1, (size_t)n);
    const double median = gsl_stats_median_from_sorted_data(sample, 1, (size_t)n);
    const double q1 = gsl_stats_quantile_from_sorted_data(sample, 1, (size_t)n, 0.25);
    const double q3 = gsl_stats_quantile_from_sorted_data(sample, 1, (size_t)n, 0.75);
    const int k = left_out(n);
    hp_check_value v = {value, 0, k < 0 ? INFINITY : 0};
    if (median <= 0) return v;
    v.spread = (q3 - q1) / 2 / median;
    if (k >= 0) v.half = fmax(sample[n - 1 - k] - median, median - sample[k]) / median;
    return v;
}
