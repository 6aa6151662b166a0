/* cut.c - balanced contiguous cuts, exact: the chains-on-chains problem by dynamic programming over suffixes
 * (Bokhari 1988; Pinar and Aykanat, JPDC 2004), with binary search because the two terms are monotone. */
#include "base/arena.h"
#include "plan/strategy/strategy.h"

#include <math.h>
#include <string.h>

typedef struct cut_problem {
    const double *prefix; /* prefix[i]: cost of units 0 .. i-1; non-decreasing */
    int n_unit;
} cut_problem;

static double segment(const cut_problem *c, int first, int end) {
    return c->prefix[end] - c->prefix[first];
}

/* Smallest possible largest part when the first part starts at `first` and `rest`[end] is what the units from
 * `end` on cost in one part fewer. A longer first part costs more and leaves less: the best end is where the
 * two cross. */
static double best_from(const cut_problem *c, const double *rest, int first, int last_end) {
    int low = first + 1,
        high = last_end; /* the first end at which the first part outweighs the rest, if there is one */
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (segment(c, first, middle) >= rest[middle])
            high = middle;
        else
            low = middle + 1;
    }
    const double at = fmax(segment(c, first, low), rest[low]);
    return low > first + 1 ? fmin(at, fmax(segment(c, first, low - 1), rest[low - 1])) : at;
}

/* best[k*(n+1) + i]: the smallest possible largest part when units i .. n-1 make k parts. */
static void fill_suffixes(const cut_problem *c, int n_part, double *best) {
    const int n = c->n_unit;
    const size_t row = (size_t)n + 1;
    for (int i = 0; i < n; i++) best[row + (size_t)i] = segment(c, i, n);
    for (int k = 2; k <= n_part; k++)
        for (int i = 0; i + k <= n; i++)
            best[(size_t)k * row + (size_t)i] = best_from(c, best + (size_t)(k - 1) * row, i, n - k + 1);
}

/* Each part in turn takes as few units as the best bottleneck allows: the earlier parts are the lighter. */
static void choose_counts(const cut_problem *c, int n_part, const double *best, int32_t *counts) {
    const size_t row = (size_t)c->n_unit + 1;
    const double bottleneck = best[(size_t)n_part * row];
    int first = 0;
    for (int part = 0; part + 1 < n_part; part++) {
        const double *rest = best + (size_t)(n_part - part - 1) * row;
        int end = first + 1;
        while (rest[end] > bottleneck) end++;
        counts[part] = end - first;
        first = end;
    }
    counts[n_part - 1] = c->n_unit - first;
}

void hp_cut_balanced(const double *unit_cost, int n_unit, int n_part, int32_t *counts) {
    HP_ASSERT(n_part >= 1 && n_part <= n_unit);
    hp_arena *scratch = hp_arena_new();
    double *prefix = HP_NEW(scratch, double, n_unit + 1);
    for (int u = 0; u < n_unit; u++) {
        HP_ASSERT(unit_cost[u] >= 0 && isfinite(unit_cost[u]));
        prefix[u + 1] = prefix[u] + unit_cost[u];
    }
    const cut_problem c = {prefix, n_unit};
    double *best = HP_NEW(scratch, double, (size_t)(n_part + 1) * (size_t)(n_unit + 1));
    fill_suffixes(&c, n_part, best);
    choose_counts(&c, n_part, best, counts);
    hp_arena_free(scratch);
}
