/* run_speed.c - mean yardsticks of a run, over its steps. */
#include "traces/run_speed.h"

#include <math.h>

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
