/* compare_speed.c - mean yardsticks of a run, and predictions at its speed. */
#include "traces/check/compare_speed.h"

#include <math.h>
#include <string.h>

/* --- a run's yardsticks --- */

/* Is it one of the trace's steps? */
static bool has_iter(const hp_trace *t, int32_t iter) {
    return t->n_iter > 0 && iter >= t->iter[0].iter && iter <= t->iter[t->n_iter - 1].iter;
}

/* Of values by step: the mean over steps of the mean over ranks and samples. */
static int mean_of_steps(const hp_trace *t, const hp_trace_value *v, int64_t n, double *mean, double *error) {
    int steps = 0;
    double sum = 0, squares = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        double step = 0;
        int count = 0;
        for (end = i; end < n && v[end].iter == v[i].iter; end++)
            if (has_iter(t, v[end].iter) && v[end].value > 0) step += v[end].value, count++;
        if (!count) continue;
        step /= count;
        sum += step, squares += step * step;
        steps++;
    }
    *mean = steps ? sum / steps : NAN;
    const double variance = steps > 1 ? fmax(0, squares / steps - *mean * *mean) * steps / (steps - 1) : NAN;
    *error = sqrt(variance / steps) / *mean;
    return steps;
}

static double sum_of(const hp_trace *t, const hp_trace_value *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (has_iter(t, v[i].iter) && v[i].value > 0) sum += v[i].value;
    return sum;
}

hp_status hp_run_speed_read(hp_arena *arena, hp_db *db, const hp_trace *t, hp_run_speed *out, hp_error *err) {
    hp_trace_value *v = NULL, *cpu = NULL;
    int64_t n = 0, n_cpu = 0;
    *out = (hp_run_speed){.availability = NAN};
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        const char *name = hp_counter_names[hp_yardstick_counter((hp_yardstick)y)];
        HP_TRY(hp_trace_counter(arena, db, t->run, name, &v, &n, err));
        out->n[y] = mean_of_steps(t, v, n, &out->seconds[y], &out->error[y]);
    }
    HP_TRY(hp_trace_counter(arena, db, t->run, hp_counter_names[HP_COUNTER_STEP], &v, &n, err));
    HP_TRY(hp_trace_counter(arena, db, t->run, hp_counter_names[HP_COUNTER_STEP_CPU], &cpu, &n_cpu, err));
    const double wall_s = sum_of(t, v, n), cpu_s = sum_of(t, cpu, n_cpu);
    if (n == n_cpu && cpu_s > 0 && wall_s > 0) out->availability = fmin(1, cpu_s / wall_s);
    return HP_OK;
}

double hp_speed_shrink(double seen, double error, double usual, double spread) {
    if (!(spread > 0)) return seen;
    const double e = isnan(error) ? spread : error;
    return usual + (seen - usual) * spread * spread / (spread * spread + e * e);
}

/* --- the split --- */

/* Seconds of a group of tasks: as predicted, on the quiet machine, at the speed of the run. */
typedef struct three {
    double predicted_s, quiet_s, expected_s;
} three;

static three sum_tasks(const hp_trace_median *m, int64_t n, const hp_task_speed *speed, const int32_t *group,
                       int wanted) {
    three s = {0};
    for (int64_t i = 0; i < n; i++) {
        if (group[m[i].task] != wanted) continue;
        const double quiet_s = m[i].seconds / speed->predicted[m[i].task];
        s.predicted_s += m[i].seconds;
        s.quiet_s += quiet_s;
        s.expected_s += quiet_s * speed->run[m[i].task];
    }
    return s;
}

static void set_expected(hp_compare_row *r, double factor) {
    r->expected_s = r->predicted_s * factor;
    r->model_error = r->measured_s > 0 ? (r->expected_s - r->measured_s) / r->measured_s : NAN;
}

/* Where nothing is predicted, nothing is expected at another speed either. */
static double factor_of(three s) {
    return s.predicted_s > 0 ? s.expected_s / s.predicted_s : 1;
}

static void set_phases(hp_arena *arena, const hp_trace *a, const hp_trace_median *m, int64_t n,
                       const hp_task_speed *speed, double step, hp_comparison *c) {
    int32_t *group = HP_NEW(arena, int32_t, a->n_task);
    for (int i = 0; i < a->n_task; i++) group[i] = a->task[i].phase;
    for (int i = 0; i < c->n_phase; i++) {
        const int phase = c->phase[i].phase; /* -1: waiting, which goes with the step */
        set_expected(&c->phase[i], phase < 0 ? step : factor_of(sum_tasks(m, n, speed, group, phase)));
    }
}

static void set_kinds(hp_arena *arena, const hp_trace *a, const hp_trace_median *m, int64_t n,
                      const hp_task_speed *speed, hp_comparison *c) {
    int32_t *group = HP_NEW(arena, int32_t, a->n_task);
    for (int i = 0; i < c->n_kind; i++) {
        for (int t = 0; t < a->n_task; t++) group[t] = strcmp(a->task[t].kind, c->kind[i].name) == 0;
        set_expected(&c->kind[i], factor_of(sum_tasks(m, n, speed, group, 1)));
    }
}

static void set_tasks(const hp_trace *a, const hp_task_speed *speed, hp_comparison *c) {
    for (int i = 0, j = 0; i < c->n_task; i++) { /* both by role and task */
        while (a->task[j].role != c->task[i].role || a->task[j].task != c->task[i].task) j++;
        set_expected(&c->task[i], speed->run[j] / speed->predicted[j]);
    }
}

hp_speed_split hp_speed_unknown(void) {
    return (hp_speed_split){false, NAN, NAN, NAN, NAN, NAN, NAN};
}

hp_speed_split hp_compare_split(hp_arena *arena, const hp_trace *a, const hp_task_speed *speed,
                                hp_comparison *c) {
    if (!c->of_prediction || !speed->run) return hp_speed_unknown();
    int64_t n = 0;
    const hp_trace_median *m = hp_trace_medians(arena, a, &n);
    int32_t *group = HP_NEW(arena, int32_t, a->n_task);
    for (int i = 0; i < a->n_task; i++) group[i] = a->task[i].queue == HP_QUEUE_COMPUTE;
    const three s = sum_tasks(m, n, speed, group, 1);
    if (!(s.predicted_s > 0 && s.expected_s > 0)) return hp_speed_unknown();
    const double step = factor_of(s);
    set_expected(&c->step, step);
    set_phases(arena, a, m, n, speed, step, c);
    set_kinds(arena, a, m, n, speed, c);
    set_tasks(a, speed, c);
    return (hp_speed_split){.known = true,
                            .quiet = s.expected_s / s.quiet_s,
                            .predicted_for = s.predicted_s / s.quiet_s,
                            .usual = step,
                            .expected_s = c->step.expected_s,
                            .equal_speed_s = c->step.measured_s / step,
                            .model_error = c->step.model_error};
}
