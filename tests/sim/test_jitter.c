/* test_jitter.c - with jitter a folded class takes what the last of its members is expected to take. */
#include "sim/jitter.h"
#include "tests/support/sim/random_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Mean 1; of two, 2 Phi(sigma / sqrt 2). */
static void expected_maxima_of_one_and_two_are_the_closed_forms(void **state) {
    (void)state;
    for (int i = 1; i <= 40; i++) {
        const double cv = 0.05 * i;
        assert_true(fabs(hp_jitter_max(cv, 1) - 1) < 1e-12);
        const double sigma = sqrt(log1p(cv * cv));
        assert_true(fabs(hp_jitter_max(cv, 2) - erfc(-sigma / 2)) < 1e-12);
    }
}

typedef struct sample {
    double mean, error; /* of the mean */
} sample;

static sample mean_of(const double *x, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    for (int i = 0; i < n; i++) squares += (x[i] - sum / n) * (x[i] - sum / n);
    return (sample){sum / n, sqrt(squares / (n - 1) / n)};
}

static void expected_maxima_are_those_of_draws(void **state) {
    (void)state;
    enum { DRAWS = 4000 };
    double most[DRAWS];
    for (int n = 3; n <= 128; n = 2 * n + 1) {
        for (int i = 0; i < DRAWS; i++) {
            most[i] = 0;
            for (int k = 0; k < n; k++) most[i] = fmax(most[i], hp_jitter(0.3, (uint64_t)n, i, k));
        }
        const sample s = mean_of(most, DRAWS);
        assert_true(fabs(s.mean - hp_jitter_max(0.3, n)) < 4 * s.error);
    }
}

enum { SEEDS = 100 };

static sample steps_of(const hp_program *p, const hp_graph *g, bool fold) {
    uint64_t seed = 1;
    const hp_machine m = test_machine(p->dp, p->n_role, false);
    const hp_sim_costs costs = {random_seconds, NULL, &seed};
    double step[SEEDS];
    for (int i = 0; i < SEEDS; i++) {
        hp_arena *scratch = hp_arena_new();
        const hp_sim_options o = {
            .fold = fold, .jitter_cv = 0.2, .straggler_rank = -1, .seed = (uint64_t)(i + (fold ? SEEDS : 0))};
        hp_sim_result r;
        hp_error err = {HP_OK, ""};
        if (hp_sim_run(scratch, p, g, &m, &costs, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
        assert_int_equal(r.simulated, fold ? p->n_role : hp_program_ranks(p));
        step[i] = (double)r.makespan_ns;
        hp_arena_free(scratch);
    }
    return mean_of(step, SEEDS);
}

/* Up to 128 ranks, against as many runs of all of them: four standard errors of the two means, and `model` for sums
 * of draws that are not quite log-normal and parts that wait for each other. */
static void check(const char *strategy, double model) {
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = random_net(arena, 3, 8);
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    if (hp_strategy_parse(strategy, &s, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_program *p = lower_training(arena, g, &s, hp_strategy_batch(&s, 1), false);
    const sample one = steps_of(p, g, true), all = steps_of(p, g, false);
    const double off = one.mean / all.mean - 1, noise = hypot(one.error, all.error) / all.mean;
    if (fabs(off) > 4 * noise + model) fail_msg("%s: folded %+.2f%%", strategy, 100 * off);
    hp_arena_free(arena);
}

static void a_folded_class_takes_what_its_last_member_takes(void **state) {
    (void)state;
    static const char *const strategies[] = {"dp=2", "dp=8", "dp=32", "dp=128", "dp=16,micro=4"};
    for (int i = 0; i < 5; i++) check(strategies[i], 0.003);
    static const char *const parts[] = {"dp=8,sp=2x1", "dp=16,stages=2,micro=4", "dp=32,sp=2x2",
                                        "dp=16,stages=4,micro=4,sched=1f1b"};
    for (int i = 0; i < 4; i++) check(parts[i], 0.01);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_maxima_of_one_and_two_are_the_closed_forms),
        cmocka_unit_test(expected_maxima_are_those_of_draws),
        cmocka_unit_test(a_folded_class_takes_what_its_last_member_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
