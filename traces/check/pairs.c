/* pairs.c - paired t statistics of a race's rounds, and when plans are dropped. */
#include "traces/check/pairs.h"
#include "base/alloc.h"

#include "base/status.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

static double at(const hp_pairs *p, int round, int i) {
    return p->step_s[round * p->n + i];
}

/* --- one round --- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hp_pairs_round(double *step_s, int n) {
    const int cut = n / 10;
    double sum = 0;
    if (n <= 0) return NAN;
    qsort(step_s, (size_t)n, sizeof *step_s, ascending);
    for (int i = cut; i < n - cut; i++) sum += step_s[i];
    return sum / (n - 2 * cut);
}

/* --- two plans --- */

static bool ran(const hp_pairs *p, const bool *who, int round) {
    for (int i = 0; i < p->n; i++)
        if (who[i] && isnan(at(p, round, i))) return false;
    return true;
}

/* Mean logarithm in one round over the plans in `who`. */
static double round_mean(const hp_pairs *p, const bool *who, int round) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < p->n; i++)
        if (who[i]) sum += log(at(p, round, i)), n++;
    return sum / n;
}

/* Variance of one plan's noise in one round: the residuals of log y = round + plan, with (rounds - 1)(plans -
 * 1) degrees of freedom. */
static double noise(const hp_pairs *p, const bool *who, int *df) {
    double squares = 0;
    int plans = 0, rounds = 0;
    for (int r = 0; r < p->n_round; r++) rounds += ran(p, who, r);
    for (int i = 0; i < p->n; i++) {
        double sum = 0, of_squares = 0;
        if (!who[i]) continue;
        plans++;
        for (int r = 0; r < p->n_round; r++) {
            if (!ran(p, who, r)) continue;
            const double d = log(at(p, r, i)) - round_mean(p, who, r);
            sum += d;
            of_squares += d * d;
        }
        if (rounds) squares += fmax(0, of_squares - sum * sum / rounds);
    }
    *df = (rounds - 1) * (plans - 1);
    return *df > 0 ? squares / *df : 0;
}

hp_pair hp_pairs_of(const hp_pairs *p, const bool *pool, int a, int b) {
    hp_pair pair = {0};
    bool *who = hp_zeroed((size_t)p->n, sizeof *who);
    int all = 0;
    double sum = 0;
    who[a] = who[b] = true;
    for (int r = 0; r < p->n_round; r++)
        if (ran(p, who, r)) sum += log(at(p, r, b) / at(p, r, a)), pair.n++;
    const double own = noise(p, who, &pair.df);
    for (int i = 0; pool && i < p->n; i++) who[i] |= pool[i];
    const double pooled = noise(p, who, &all);
    if (all > pair.df && pooled >= own) pair.df = all;
    pair.mean = pair.n ? sum / pair.n : NAN;
    pair.error = pair.n > 1 ? sqrt(2 * fmax(own, pooled) / pair.n) : NAN;
    free(who);
    return pair;
}

double hp_pair_slower(const hp_pair *pair) {
    if (pair->n < 2) return 1;
    if (pair->error <= 0) return pair->mean > 0 ? 0 : 1;
    return gsl_cdf_tdist_Q(pair->mean / pair->error, pair->df);
}

/* --- the race --- */

/* Significance level of each pair at test number `look` (1, 2, ...) of a race of n plans. Over all tests,
 * alpha / (look (look + 1)) sums up to alpha (alpha spending, Lan and DeMets 1983). Each of the n - 1 pairs
 * that could drop the fastest gets an equal part. */
static double race_level(int n, int look) {
    return HP_RACE_ALPHA / ((double)look * (look + 1)) / (n > 1 ? n - 1 : 1);
}

/* Mean logarithm of plan i over the rounds in which all of `who` ran; who NULL: over its own rounds. */
static double mean_log(const hp_pairs *p, const bool *who, int i) {
    double sum = 0;
    int n = 0;
    for (int r = 0; r < p->n_round; r++)
        if (!isnan(at(p, r, i)) && (!who || ran(p, who, r))) sum += log(at(p, r, i)), n++;
    return n ? sum / n : NAN;
}

int hp_race_best(const hp_pairs *p, const bool *live) {
    bool common = false;
    int best = -1;
    double least = INFINITY;
    for (int r = 0; r < p->n_round; r++) common |= ran(p, live, r);
    for (int i = 0; i < p->n; i++) {
        const double mean = live[i] ? mean_log(p, common ? live : NULL, i) : NAN;
        if (mean < least) best = i, least = mean;
    }
    return best;
}

int hp_race_drop(const hp_pairs *p, int look, bool *live) {
    const int best = hp_race_best(p, live);
    bool *slower = hp_zeroed((size_t)p->n, sizeof *slower);
    int n = 0;
    for (int i = 0; best >= 0 && i < p->n; i++) {
        if (!live[i] || i == best) continue;
        const hp_pair pair = hp_pairs_of(p, live, best, i);
        slower[i] = hp_pair_slower(&pair) < race_level(p->n, look);
    }
    for (int i = 0; i < p->n; i++)
        if (slower[i]) live[i] = false, n++;
    free(slower);
    return n;
}

bool hp_race_settled(const hp_pairs *p, int look, const bool *live) {
    const int best = hp_race_best(p, live);
    for (int i = 0; best >= 0 && i < p->n; i++) {
        if (!live[i] || i == best) continue;
        hp_pair pair = hp_pairs_of(p, live, best, i);
        pair.mean += log(1 + HP_RACE_EQUAL); /* slower than a plan that would be better by this much */
        if (hp_pair_slower(&pair) >= race_level(p->n, look)) return false;
    }
    return best >= 0;
}

int hp_race_halve(const hp_pairs *p, bool *live) {
    int n = 0, removed = 0;
    for (int i = 0; i < p->n; i++) n += live[i];
    bool *left = hp_zeroed((size_t)p->n, sizeof *left);
    for (int i = 0; i < p->n; i++) left[i] = live[i];
    for (int keep = (n + 1) / 2; keep > 0; keep--) {
        const int best = hp_race_best(p, left);
        if (best < 0) break;
        left[best] = false;
    }
    for (int i = 0; i < p->n && n > 1; i++)
        if (left[i]) live[i] = false, removed++;
    free(left);
    return removed;
}

/* --- seconds --- */

hp_measured hp_pairs_measured(const hp_pairs *p, int best, int i) {
    hp_measured m = {.rounds = 0};
    double squares = 0;
    const double own = mean_log(p, NULL, i);
    for (int r = 0; r < p->n_round; r++) {
        if (isnan(at(p, r, i))) continue;
        const double d = log(at(p, r, i)) - own;
        m.rounds++;
        squares += d * d;
    }
    const hp_pair pair = hp_pairs_of(p, NULL, best, i);
    const double centre = pair.n ? mean_log(p, NULL, best) + pair.mean : own;
    const double width = m.rounds < 2 ? INFINITY
                                      : gsl_cdf_tdist_Qinv((1 - HP_RACE_LEVEL) / 2, m.rounds - 1) *
                                            sqrt(squares / (m.rounds - 1) / m.rounds);
    m.step_s = exp(centre);
    m.low_s = exp(centre - width);
    m.high_s = exp(centre + width);
    return m;
}
