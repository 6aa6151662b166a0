/* compare_speed.c - predictions at the speed of a run. */
#include "traces/check/compare_speed.h"

#include <math.h>
#include <string.h>

/* Seconds of a group of tasks: as predicted, on the quiet machine, at the speed of the run. */
typedef struct three {
    double predicted_s, quiet_s, expected_s;
} three;

/* Does the median time of this task contain absences of the processor? */
static bool is_interrupted(const hp_trace *a, int task, double seconds, const hp_task_speed *speed) {
    return a->task[task].queue != HP_QUEUE_COMPUTE || seconds > speed->slice_s;
}

static double expected_of(const hp_trace *a, int task, double seconds, const hp_task_speed *speed) {
    const double there = seconds / speed->predicted[task] * speed->run[task];
    return is_interrupted(a, task, seconds, speed) ? there / speed->present : there;
}

/* Sums one group; group NULL: all compute tasks, as if each were absent for its share of the time. */
static three sum_tasks(const hp_trace *a, const hp_trace_median *m, int64_t n, const hp_task_speed *speed,
                       const int32_t *group, int wanted) {
    three s = {0};
    for (int64_t i = 0; i < n; i++) {
        const int task = m[i].task;
        if (group ? group[task] != wanted : a->task[task].queue != HP_QUEUE_COMPUTE) continue;
        const double quiet_s = m[i].seconds / speed->predicted[task];
        s.predicted_s += m[i].seconds;
        s.quiet_s += quiet_s;
        s.expected_s +=
            group ? expected_of(a, task, m[i].seconds, speed) : quiet_s * speed->run[task] / speed->present;
    }
    return s;
}

static void set_expected(hp_compare_row *r, double factor) {
    r->expected_s = r->predicted_s * factor;
    r->model_error = r->measured_s > 0 ? (r->expected_s - r->measured_s) / r->measured_s : NAN;
}

/* If nothing is predicted, nothing is expected at another speed either. */
static double factor_of(three s) {
    return s.predicted_s > 0 ? s.expected_s / s.predicted_s : 1;
}

static void set_phases(hp_arena *arena, const hp_trace *a, const hp_trace_median *m, int64_t n,
                       const hp_task_speed *speed, double step, hp_comparison *c) {
    int32_t *group = HP_NEW(arena, int32_t, a->n_task);
    for (int i = 0; i < a->n_task; i++) group[i] = a->task[i].phase;
    for (int i = 0; i < c->n_phase; i++) {
        const int phase = c->phase[i].phase; /* -1: waiting, which scales with the step */
        set_expected(&c->phase[i], phase < 0 ? step : factor_of(sum_tasks(a, m, n, speed, group, phase)));
    }
}

static void set_kinds(hp_arena *arena, const hp_trace *a, const hp_trace_median *m, int64_t n,
                      const hp_task_speed *speed, hp_comparison *c) {
    int32_t *group = HP_NEW(arena, int32_t, a->n_task);
    for (int i = 0; i < c->n_kind; i++) {
        for (int t = 0; t < a->n_task; t++) group[t] = strcmp(a->task[t].kind, c->kind[i].name) == 0;
        set_expected(&c->kind[i], factor_of(sum_tasks(a, m, n, speed, group, 1)));
    }
}

static void set_tasks(const hp_trace *a, const hp_task_speed *speed, hp_comparison *c) {
    for (int i = 0, j = 0; i < c->n_task; i++) { /* both are sorted by role and task */
        while (a->task[j].role != c->task[i].role || a->task[j].task != c->task[i].task) j++;
        const double t = c->task[i].predicted_s;
        set_expected(&c->task[i], t > 0 ? expected_of(a, j, t, speed) / t : 1);
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
    const three s = sum_tasks(a, m, n, speed, NULL, 0);
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
