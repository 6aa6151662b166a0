/* jitter.c - draws, their expected maximum, and how much later the last rank of a folded class comes.
 *
 * Replicas run on their own until a task waits for all of them. What one computes from there to the next such task is
 * a sum of independent draws, whose coefficient of variation is cv sqrt(sum t^2) / sum t, and nearly log-normal
 * itself (Fenton 1960). The class goes on with the last of its members, so its tasks take the expected maximum of as
 * many such sums as it has members. */
#include "sim/jitter.h"

#include "plan/base/rng.h"
#include "sim/state.h"

#include <math.h>

double hp_jitter(double cv, uint64_t seed, int rank, int task) {
    const double sigma2 = log1p(cv * cv);
    return exp(sqrt(sigma2) * hp_rng_normal(seed, (uint64_t)rank, (uint64_t)task) - sigma2 / 2);
}

/* The trapezoidal rule is exact to rounding for functions that vanish so fast at both ends. */
double hp_jitter_max(double cv, int n) {
    static const double step = 1.0 / 16, first = -12;
    const double sigma2 = log1p(cv * cv), sigma = sqrt(sigma2);
    double sum = 0;
    const int points = (int)ceil((sigma - 2 * first) / step);
    for (int i = 0; i <= points; i++) {
        const double z = first + i * step, below = erfc(-z * M_SQRT1_2) / 2;
        sum += exp(sigma * z - sigma2 / 2 - z * z / 2) * pow(below, n - 1);
    }
    return n * sum * step / sqrt(2 * M_PI);
}

/* --- folded classes --- */

/* Tasks from first to end - 1 run without waiting for other replicas. */
static void delay_run(const sim *s, const rank_state *r, int n, int first, int end) {
    const hp_role *role = &s->program->role[r->role];
    double sum = 0, squares = 0;
    for (int t = first; t < end; t++) {
        if (role->task[t].queue != 0) continue;
        const double x =
            s->costs->seconds(s->costs->self, s->program, s->graph, r->world, t, s->options->bound);
        sum += x;
        squares += x * x;
    }
    const double factor = sum > 0 ? hp_jitter_max(s->options->jitter_cv * sqrt(squares) / sum, n) : 1;
    for (int t = first; t < end; t++) r->late[t] = factor;
}

static bool waits_for_replicas(const sim *s, const hp_role *r, int task) {
    if (r->task[task].queue != 0) return false;
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++) {
        const hp_queue *q = &r->queue[r->task[r->dep[d]].queue];
        if (q->kind == HP_QUEUE_COLL && s->program->group[q->peer].all_replicas) return true;
    }
    return false;
}

void sim_delay_last(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    const hp_role *role = &s->program->role[r->role];
    const int n = s->classes->size[rank];
    if (s->options->jitter_cv <= 0 || n == 1) return;
    r->late = HP_NEW(s->arena, double, role->n_task);
    int first = 0;
    for (int t = 1; t <= role->n_task; t++) {
        if (t < role->n_task && !waits_for_replicas(s, role, t)) continue;
        delay_run(s, r, n, first, t);
        first = t;
    }
}
