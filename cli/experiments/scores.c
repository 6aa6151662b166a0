/* scores.c - Kendall's tau-b, and the coverage of intervals. */
#include "cli/experiments/scores.h"

#include "traces/query.h"

#include <math.h>
#include <stdlib.h>

static int order(double x, double y) {
    return (x > y) - (x < y);
}

double score_tau(int n, const double *a, const double *b) {
    long long agree = 0, of_a = 0, of_b = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            const int x = order(a[i], a[k]), y = order(b[i], b[k]);
            agree += x * y;
            of_a += x != 0;
            of_b += y != 0;
        }
    return of_a && of_b ? (double)agree / sqrt((double)of_a * (double)of_b) : NAN;
}

score_coverage score_cover(int n, const score_interval *interval) {
    score_coverage c = {.half_width = NAN};
    hp_arena *arena = hp_arena_new();
    double *half = HP_NEW(arena, double, n);
    for (int i = 0; i < n; i++) {
        const score_interval *x = &interval[i];
        if (!(x->low > 0)) continue;
        half[c.known++] = (x->high - x->low) / 2;
        c.covered += x->truth >= x->low && x->truth <= x->high;
    }
    if (c.known) c.half_width = hp_median(half, c.known);
    hp_arena_free(arena);
    return c;
}
