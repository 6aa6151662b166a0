/* jitter.c - draws, sums of them, and their expected maximum. */
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

double hp_jitter_of_sum(const hp_jitter_process *p, double seconds, double squares) {
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
