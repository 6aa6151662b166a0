/* jitter.c - draws, their expected maximum, and the delay of the last rank of a folded class.
 *
 * Replicas run independently until a task waits for all of them. Between two such tasks, a replica's
 * computing is a sum of draws (jitter_of_sum; for independent tasks, cv sqrt(sum t^2) / sum t), which is
 * nearly log-normal itself (Fenton 1960). The class continues with the last of its members, so its tasks take
 * the expected maximum of as many sums as it has members. */
#include "sim/engine/jitter.h"

#include "costmodels/jitter_fit.h"
#include "base/rng.h"

#include <math.h>

/* Streams of random numbers per rank. */
enum { OF_TASK, TO_NOW, TO_END, OVER_TASK };

static double normal(hp_draws d, int kind, int rank, int task) {
    const double z = hp_rng_normal(d.seed, (uint64_t)kind << 32 | (uint64_t)rank, (uint64_t)task);
    return d.mirrored ? -z : z;
}

double hp_jitter(double cv, hp_draws d, int rank, int task) {
    const double sigma2 = log1p(cv * cv);
    return exp(sqrt(sigma2) * normal(d, OF_TASK, rank, task) - sigma2 / 2);
}

/* --- a core --- */

/* Below this, differences are lost to rounding; uses their first terms. */
static const double SHORT = 1e-3;

/* Variance of the integral over x of a process that begins at 0. */
static double integral_variance(double x, double kept) {
    return x < SHORT ? 2 * x * x * x / 3 : 2 * x - 3 + 4 * kept - kept * kept;
}

/* Advances the process to this instant. */
static void look_now(hp_core *c, double tau_s, hp_draws d, int rank, int task, int64_t now_ns) {
    const double gap = fmax(0, (double)(now_ns - c->seen_ns) * 1e-9 / tau_s); /* 0: rounding */
    const double kept = c->begun ? exp(-gap) : 0;
    if (!c->begun || gap > 0)
        c->level = kept * c->level + sqrt(1 - kept * kept) * normal(d, TO_NOW, rank, task);
    c->begun = true;
}

double hp_core_slowness(hp_core *c, const hp_jitter_process *p, hp_draws d, int rank, int task,
                        int64_t now_ns, double seconds) {
    if (p->cv <= 0 || seconds <= 0) return 1;
    look_now(c, p->tau_s, d, rank, task, now_ns);
    const double x = seconds / p->tau_s, kept = exp(-x), lost = -expm1(-x);
    const double end = sqrt(1 - kept * kept), shared = lost * lost / end;
    const double own = sqrt(fmax(0, integral_variance(x, kept) - shared * shared));
    const double to_end = normal(d, TO_END, rank, task);
    const double integral = c->level * lost + shared * to_end + own * normal(d, OVER_TASK, rank, task);
    const double sigma2 = log1p(p->cv * p->cv);
    const double factor = exp(sqrt(sigma2) * integral / x - sigma2 * hp_jitter_averaged(x) / 2);
    c->level = kept * c->level + end * to_end;
    c->seen_ns = now_ns + llround(seconds * factor * 1e9);
    return factor;
}

/* Coefficient of variation of a sequence of tasks, from the sum of their seconds and the sum of squares. */
static double jitter_of_sum(const hp_jitter_process *p, double seconds, double squares) {
    if (seconds <= 0) return 0;
    const double core = p->cv > 0 ? p->cv * p->cv * hp_jitter_averaged(seconds / p->tau_s) : 0;
    const double tasks = p->task * p->task * squares / (seconds * seconds);
    return sqrt((1 + core) * (1 + tasks) - 1);
}

/* The trapezoidal rule is exact up to rounding for functions that vanish so quickly at both ends. */
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

/* Delays tasks first .. end - 1, which run without waiting for other replicas. */
static void delay_run(const sim *s, const rank_state *r, int n, int first, int end) {
    const hp_role *role = &s->program->role[r->role];
    double sum = 0, squares = 0;
    for (int t = first; t < end; t++) {
        if (role->task[t].queue != 0) continue;
        const double x = s->costs->seconds(s->costs->self, s->program, s->graph, r->world, t);
        sum += x;
        squares += x * x;
    }
    const double factor = hp_jitter_max(jitter_of_sum(&s->options->jitter, sum, squares), n);
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
    if (!hp_jitters(&s->options->jitter) || n == 1) return;
    r->late = HP_NEW(s->arena, double, role->n_task);
    int first = 0;
    for (int t = 1; t <= role->n_task; t++) {
        if (t < role->n_task && !waits_for_replicas(s, role, t)) continue;
        delay_run(s, r, n, first, t);
        first = t;
    }
}
