/* run_speed.c - mean yardsticks of a run, over its steps. */
#include "traces/run_speed.h"

#include <math.h>

static const double OUTLIER = 3, OUTLIERS = 0.05; /* times the median; at most this share */

hp_status hp_yardstick_samples(hp_arena *arena, hp_db *db, int64_t run, hp_yardstick y, hp_trace_value **v,
                               int64_t *n, hp_error *err) {
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[hp_yardstick_counter(y)], v, n, err));
    double *sorted = HP_NEW(arena, double, *n);
    for (int64_t i = 0; i < *n; i++) sorted[i] = (*v)[i].value;
    const double limit = OUTLIER * hp_median(sorted, *n);
    const int64_t all = *n, few = (int64_t)ceil(OUTLIERS * (double)all);
    /* more than a few: they are the machine's speed */
    if (all <= few || sorted[all - few - 1] > limit) return HP_OK;
    int64_t kept = 0;
    for (int64_t i = 0; i < all; i++)
        if (!((*v)[i].value > limit)) (*v)[kept++] = (*v)[i];
    *n = kept;
    return HP_OK;
}

/* Is it one of the trace's steps? */
static bool has_iter(const hp_trace *t, int32_t iter) {
    return t->n_iter > 0 && iter >= t->iter[0].iter && iter <= t->iter[t->n_iter - 1].iter;
}

/* Mean of values by step: over steps, of the mean over ranks and samples. */
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

/* Per step: the longest rank's time, and that times the share in which the ranks had a processor. */
static double availability_of(hp_arena *arena, const hp_trace *t, const hp_trace_value *wall,
                              const hp_trace_value *cpu, int64_t n) {
    double *step = HP_NEW(arena, double, n), *present = HP_NEW(arena, double, n);
    int64_t steps = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        double wall_s = 0, cpu_s = 0, longest_s = 0;
        for (end = i; end < n && wall[end].iter == wall[i].iter; end++) {
            wall_s += wall[end].value, cpu_s += cpu[end].value;
            longest_s = fmax(longest_s, wall[end].value);
        }
        if (!has_iter(t, wall[i].iter) || !(wall_s > 0) || !(cpu_s > 0)) continue;
        step[steps] = longest_s;
        present[steps++] = longest_s * fmin(1, cpu_s / wall_s);
    }
    return hp_median(present, steps) / hp_median(step, steps);
}

hp_status hp_run_speed_read(hp_arena *arena, hp_db *db, const hp_trace *t, hp_run_speed *out, hp_error *err) {
    hp_trace_value *v = NULL, *cpu = NULL;
    int64_t n = 0, n_cpu = 0;
    *out = (hp_run_speed){.availability = NAN};
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        HP_TRY(hp_yardstick_samples(arena, db, t->run, (hp_yardstick)y, &v, &n, err));
        out->n[y] = mean_of_steps(t, v, n, &out->seconds[y], &out->error[y]);
    }
    HP_TRY(hp_trace_counter(arena, db, t->run, hp_counter_names[HP_COUNTER_STEP], &v, &n, err));
    HP_TRY(hp_trace_counter(arena, db, t->run, hp_counter_names[HP_COUNTER_STEP_CPU], &cpu, &n_cpu, err));
    if (n == n_cpu) out->availability = availability_of(arena, t, v, cpu, n);
    return HP_OK;
}

double hp_speed_shrink(double seen, double error, double usual, double spread) {
    if (!(spread > 0)) return seen;
    const double e = isnan(error) ? spread : error;
    return usual + (seen - usual) * spread * spread / (spread * spread + e * e);
}
