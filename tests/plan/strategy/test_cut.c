/* test_cut.c - balanced cuts compared with all compositions. Costs are whole numbers, so sums are exact. */
#include "base/rng.h"
#include "plan/strategy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_UNITS = 10 };

typedef struct oracle {
    const double *cost;
    int n_unit, n_part;
    int32_t now[MAX_UNITS], best[MAX_UNITS];
    double bottleneck; /* bottleneck of `best`; negative: none yet */
} oracle;

static double bottleneck(const double *cost, const int32_t *counts, int n_part) {
    double largest = 0;
    for (int p = 0, u = 0; p < n_part; p++) {
        double sum = 0;
        for (int i = 0; i < counts[p]; i++) sum += cost[u++];
        if (sum > largest) largest = sum;
    }
    return largest;
}

/* Compositions in lexicographic order, so that the first of the best has the lightest earlier parts. */
static void try_all(oracle *o, int part, int left) {
    if (part == o->n_part - 1) {
        o->now[part] = left;
        const double b = bottleneck(o->cost, o->now, o->n_part);
        if (o->bottleneck >= 0 && b >= o->bottleneck) return;
        o->bottleneck = b;
        memcpy(o->best, o->now, sizeof o->best);
        return;
    }
    for (int take = 1; take <= left - (o->n_part - 1 - part); take++) {
        o->now[part] = take;
        try_all(o, part + 1, left - take);
    }
}

static void balanced_cuts_are_the_best_of_all_compositions(void **state) {
    (void)state;
    for (uint64_t trial = 0; trial < 3000; trial++) {
        const int n_unit = 1 + (int)hp_rng_below(1, trial, 0, MAX_UNITS);
        const int n_part = 1 + (int)hp_rng_below(1, trial, 1, (uint64_t)n_unit);
        const uint64_t range =
            1 + hp_rng_below(1, trial, 2, 20); /* small ranges make ties and zeros frequent */
        double cost[MAX_UNITS];
        for (int u = 0; u < n_unit; u++) cost[u] = (double)hp_rng_below(2, trial, (uint64_t)u, range);
        oracle o = {.cost = cost, .n_unit = n_unit, .n_part = n_part, .bottleneck = -1};
        try_all(&o, 0, n_unit);
        int32_t counts[MAX_UNITS];
        hp_cut_balanced(cost, n_unit, n_part, counts);
        for (int p = 0; p < n_part; p++) assert_int_equal(counts[p], o.best[p]);
    }
}

static void equal_costs_give_equal_parts_when_they_divide(void **state) {
    (void)state;
    double cost[36];
    int32_t counts[36];
    for (int u = 0; u < 36; u++) cost[u] = 0.1; /* not exact in binary */
    for (int parts = 1; parts <= 36; parts++) {
        if (36 % parts) continue;
        hp_cut_balanced(cost, 36, parts, counts);
        int32_t largest = 0;
        for (int p = 0; p < parts; p++) largest = counts[p] > largest ? counts[p] : largest;
        assert_int_equal(largest, 36 / parts);
    }
}

static void every_part_has_a_unit_and_all_units_are_used(void **state) {
    (void)state;
    enum { UNITS = 335 };
    double cost[UNITS];
    int32_t counts[UNITS];
    for (uint64_t u = 0; u < UNITS; u++) cost[u] = hp_rng_uniform(3, 0, u);
    for (int parts = 1; parts <= UNITS; parts += 7) {
        hp_cut_balanced(cost, UNITS, parts, counts);
        int sum = 0;
        for (int p = 0; p < parts; p++) {
            assert_true(counts[p] >= 1);
            sum += counts[p];
        }
        assert_int_equal(sum, UNITS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_cuts_are_the_best_of_all_compositions),
        cmocka_unit_test(equal_costs_give_equal_parts_when_they_divide),
        cmocka_unit_test(every_part_has_a_unit_and_all_units_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
