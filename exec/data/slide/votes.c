/* votes.c - combines the classes of patches; see votes.h. */
#include "exec/data/slide/votes.h"

#include <math.h>

static int32_t largest(const float *x, int32_t n) {
    int32_t at = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] > x[at]) at = i;
    return at;
}

static int32_t largest_sum(const double *x, int32_t n) {
    int32_t at = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] > x[at]) at = i;
    return at;
}

/* Sum of exp(logit - top). */
static double mass_of(const float *logits, int32_t classes, float top) {
    double mass = 0;
    for (int32_t c = 0; c < classes; c++) mass += exp((double)logits[c] - (double)top);
    return mass;
}

int32_t hp_softmax(const float *logits, int32_t classes, float *share) {
    const int32_t at = largest(logits, classes);
    const double mass = mass_of(logits, classes, logits[at]);
    for (int32_t c = 0; share && c < classes; c++)
        share[c] = (float)(exp((double)logits[c] - (double)logits[at]) / mass);
    return at;
}

hp_votes hp_votes_new(hp_arena *a, int32_t classes) {
    return (hp_votes){classes, 2 * classes + 1, HP_NEW(a, double, 2 * classes + 1)};
}

void hp_votes_add(hp_votes *v, const float *logits) {
    const int32_t n = v->classes, at = largest(logits, n);
    const double mass = mass_of(logits, n, logits[at]);
    for (int32_t c = 0; c < n; c++) v->sum[c] += exp((double)logits[c] - (double)logits[at]) / mass;
    v->sum[n + at] += 1;
    v->sum[2 * n] += 1;
}

double hp_votes_mean(const hp_votes *v, int32_t class) {
    const double n = v->sum[2 * v->classes];
    return n > 0 ? v->sum[class] / n : 0;
}

hp_vote hp_votes_verdict(const hp_votes *v) {
    const int32_t n = v->classes;
    hp_vote r = {.patches = (int64_t)v->sum[2 * n], .mean_class = -1, .majority_class = -1};
    if (!r.patches) return r;
    r.mean_class = largest_sum(v->sum, n);
    r.majority_class = largest_sum(v->sum + n, n);
    r.mean_share = hp_votes_mean(v, r.mean_class);
    r.majority_share = v->sum[n + r.majority_class] / v->sum[2 * n];
    return r;
}
