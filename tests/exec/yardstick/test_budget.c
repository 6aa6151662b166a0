/* test_budget.c - on a virtual clock, yardsticks take at most their share of a run's time, whatever its steps
 * and bursts take; and most of that share, if steps permit. */
#include "exec/yardstick/budget.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct course {                 /* course of a run */
    double step_s, round_s, messages_s; /* means */
    double spread;                      /* times lie between mean / spread and mean * spread */
    int64_t steps;
} course;

typedef struct ledger {
    double now_s, edge_s, spent_s, longest_s;
    int64_t visits, rounds, exchanges, longest_pause;
    double exchanged_s, longest_silence_s; /* since the last exchange of messages */
} ledger;

static double drawn(uint64_t seed, uint64_t *at, double mean, double spread) {
    return mean * pow(spread, 2 * hp_rng_uniform(seed, 0, (*at)++) - 1);
}

static void visit(const course *c, uint64_t seed, uint64_t *at, hp_yard_budget *b, ledger *l, bool edge) {
    const hp_yard_burst burst = hp_yard_budget_burst(b, l->now_s, edge);
    const double allowed_s = HP_YARD_SHARE * l->now_s + l->edge_s + l->longest_s;
    assert_true(edge || l->spent_s <= allowed_s + 1e-12);
    if (edge) assert_true(burst.rounds >= 1 && burst.messages);
    double rounds_s = 0, messages_s = 0;
    for (int64_t r = 0; r < burst.rounds; r++) rounds_s += drawn(seed, at, c->round_s, c->spread);
    if (burst.messages) messages_s = drawn(seed, at, c->messages_s, c->spread);
    const double took_s = rounds_s + messages_s;
    l->now_s += took_s;
    l->spent_s += took_s;
    if (edge) l->edge_s += took_s;
    if (!edge && took_s > l->longest_s) l->longest_s = took_s;
    if (burst.messages) {
        l->longest_silence_s = fmax(l->longest_silence_s, l->now_s - l->exchanged_s);
        l->exchanged_s = l->now_s;
    }
    l->visits++, l->rounds += burst.rounds, l->exchanges += burst.messages;
    hp_yard_budget_charge(b, burst, l->now_s, rounds_s, messages_s);
    assert_true(fabs(b->spent_s - l->spent_s) < 1e-9);
}

static ledger run(const course *c, uint64_t seed) {
    hp_yard_budget b = {0};
    ledger l = {.now_s = 0.3};
    uint64_t at = 0;
    visit(c, seed, &at, &b, &l, true);
    int64_t next = hp_yard_budget_next(&b, l.now_s, 0);
    for (int64_t done = 1; done <= c->steps; done++) {
        l.now_s += drawn(seed, &at, c->step_s, c->spread);
        if (done < next && done < c->steps) continue;
        visit(c, seed, &at, &b, &l, done == c->steps);
        const int64_t then = hp_yard_budget_next(&b, l.now_s, done);
        assert_true(then > done);
        next = then;
    }
    assert_true(l.spent_s <= HP_YARD_SHARE * l.now_s + l.edge_s + l.longest_s + 1e-12);
    return l;
}

static void no_run_spends_more_than_its_share(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        uint64_t at = 1000000;
        const course c = {.step_s = drawn(seed, &at, 1e-2, 1000),
                          .round_s = drawn(seed, &at, 3e-4, 10),
                          .messages_s = drawn(seed, &at, 5e-4, 10),
                          .spread = drawn(seed, &at, 4, 4),
                          .steps = 1 + (int64_t)(2000 * hp_rng_uniform(seed, 1, at))};
        run(&c, seed);
    }
}

/* Steps of 1 ms to 100 ms, every round 0.3 ms: rounds take most of the share, and messages come
 * every few seconds. */
static void a_long_run_is_sampled_all_along(void **state) {
    (void)state;
    for (double step_s = 1e-3; step_s < 0.2; step_s *= 10) {
        const course c = {step_s, 3e-4, 4e-4, 1.2, (int64_t)(60 / step_s)};
        const ledger l = run(&c, 7);
        assert_true(l.spent_s > 0.8 * HP_YARD_SHARE * l.now_s);
        assert_true(l.exchanges >= 2 + (int64_t)(0.8 * 60 / HP_YARD_MESSAGES_S));
        assert_true(l.longest_silence_s < 1.2 * HP_YARD_MESSAGES_S + 2 * step_s);
    }
}

/* Even after a step of minutes, yardsticks do not take seconds. */
static void a_burst_is_bounded(void **state) {
    (void)state;
    const course c = {100, 3e-4, 4e-4, 1, 4};
    const ledger l = run(&c, 7);
    assert_true(l.longest_s <= HP_YARD_BURST_S + 4e-4 + 1e-12);
    assert_true(l.rounds > 3 * (int64_t)(0.9 * HP_YARD_BURST_S / c.round_s));
}

/* Very long steps are followed by short ones, and the reverse: bursts never stop for long. */
static void pauses_follow_the_steps(void **state) {
    (void)state;
    hp_yard_budget b = {0};
    double now_s = 1;
    int64_t next = 0, rounds = 0;
    for (int64_t done = 0; done < 5000; done++) {
        if (done >= next) {
            const hp_yard_burst burst = hp_yard_budget_burst(&b, now_s, done == 0);
            rounds += burst.rounds;
            const double took_s = 3e-4 * (double)burst.rounds;
            now_s += took_s;
            hp_yard_budget_charge(&b, burst, now_s, took_s, 0);
            next = hp_yard_budget_next(&b, now_s, done);
            assert_true(next - done <= 2 * 300 + 2); /* 0.3 ms at 1 % of 0.1 ms per step, at most doubled */
        }
        now_s += done < 2500 ? 1e-4 : 1e-2;
    }
    assert_true((double)rounds * 3e-4 > 0.6 * HP_YARD_SHARE * now_s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_run_spends_more_than_its_share),
                                       cmocka_unit_test(a_long_run_is_sampled_all_along),
                                       cmocka_unit_test(a_burst_is_bounded),
                                       cmocka_unit_test(pauses_follow_the_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
