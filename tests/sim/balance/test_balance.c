/* test_balance.c - balancers compared with each other: the dynamic programme finds the optimum of all
 * configurations, and nobody finds a better one. */
#include "base/rng.h"
#include "sim/balance/balance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_UNITS = 200 };

typedef struct world {
    hp_chain c;
    double seconds[HP_BALANCE_CLASSES][MOST_UNITS], bytes[MOST_UNITS];
} world;

/* Units with random weights; every class is slower than the previous one, by a different factor for each
 * unit. */
static void make(world *w, uint64_t seed, int units, int classes, const int *places, bool memory) {
    *w = (world){.c = {.n_unit = units, .n_class = classes}};
    for (int u = 0; u < units; u++) {
        double s = pow(10, hp_rng_uniform(seed, 1, (uint64_t)u));
        w->bytes[u] = hp_rng_uniform(seed, 2, (uint64_t)u);
        for (int k = 0; k < classes; k++) {
            w->seconds[k][u] = s;
            s *= 1 + 4 * hp_rng_uniform(seed, 3 + (uint64_t)k, (uint64_t)u);
        }
    }
    for (int k = 0; k < classes; k++) {
        w->c.seconds[k] = w->seconds[k];
        w->c.places[k] = places[k];
        w->c.memory[k] = (0.3 + 0.5 * hp_rng_uniform(seed, 8, (uint64_t)k)) * units / 2 / classes;
    }
    if (memory) w->c.bytes = w->bytes;
}

static hp_balance_run run(hp_arena *arena, const world *w, const char *method, int64_t tries) {
    hp_balance_run r = hp_balance_start(arena, &w->c, 7, tries);
    hp_balancer_find(method)->search(&r);
    return r;
}

/* Does it cover the chain, with units in every stage, no place twice? */
static bool covers(const hp_chain *c, const hp_balance *b) {
    bool taken[HP_BALANCE_PLACES] = {false};
    int units = 0;
    if (b->n_stage < 1 || b->n_stage > hp_chain_places(c)) return false;
    for (int s = 0; s < b->n_stage; s++) {
        if (b->units[s] < 1 || b->place[s] < 0 || b->place[s] >= hp_chain_places(c) || taken[b->place[s]])
            return false;
        taken[b->place[s]] = true;
        units += b->units[s];
    }
    return units == c->n_unit;
}

static void the_programme_finds_what_trying_everything_finds(void **state) {
    (void)state;
    int impossible = 0, possible = 0, partly = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        world w;
        hp_arena *arena = hp_arena_new();
        const int classes = 1 + (int)(seed % 3);
        const int places[] = {1 + (int)(seed / 3 % 2), 1 + (int)(seed / 7 % 2), 1};
        make(&w, seed, 3 + (int)(seed % 6), classes, places, seed % 2);
        const hp_balance_run dp = run(arena, &w, "dp", 0), all = run(arena, &w, "exhaustive", 0);
        assert_int_equal(all.tries, (int64_t)hp_balance_space(&w.c));
        if (isinf(all.best_s)) {
            impossible++;
            assert_true(isinf(dp.best_s));
        } else {
            possible++;
            if (fabs(dp.best_s / all.best_s - 1) > 1e-12)
                fail_msg("seed %d: %.9g, the best is %.9g", (int)seed, dp.best_s, all.best_s);
            assert_true(covers(&w.c, &dp.best) && covers(&w.c, &all.best));
            assert_true(fabs(hp_balance_seconds(&w.c, &dp.best, NULL) / dp.best_s - 1) < 1e-12);
            partly += all.best.n_stage < hp_chain_places(&w.c);
        }
        hp_arena_free(arena);
    }
    if (possible < 150 || impossible < 5 || partly < 5)
        fail_msg("no test: %d, %d, %d", possible, impossible, partly);
}

/* Every method's answer is valid, has the stated cost, and is no better than the optimum; its curve falls. */
static void nobody_is_better_than_the_best(void **state) {
    (void)state;
    static const int places[] = {2, 3, 2};
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (int i = 0; i < hp_n_balancers; i++) {
            world w;
            hp_arena *arena = hp_arena_new();
            make(&w, seed, 24, 3, places, false);
            const double best_s = run(arena, &w, "dp", 0).best_s;
            const hp_balance_run r = run(arena, &w, hp_balancers[i].name, 500),
                                 again = run(arena, &w, hp_balancers[i].name, 500);
            assert_true(covers(&w.c, &r.best));
            assert_true(fabs(hp_balance_seconds(&w.c, &r.best, NULL) / r.best_s - 1) < 1e-12);
            if (r.best_s < best_s * (1 - 1e-12))
                fail_msg("%s: %.9g, the best is %.9g", hp_balancers[i].name, r.best_s, best_s);
            assert_true(r.tries > 0 && r.tries <= 500 && r.n_curve > 0);
            assert_true(r.spent_s >= (double)r.tries * r.best_s * (1 - 1e-12));
            for (int k = 1; k < r.n_curve; k++)
                assert_true(r.curve[k].best_s < r.curve[k - 1].best_s &&
                            r.curve[k].tries > r.curve[k - 1].tries);
            assert_true(r.curve[r.n_curve - 1].best_s == r.best_s);
            /* a seed repeats it */
            assert_true(again.best_s == r.best_s && again.tries == r.tries && again.spent_s == r.spent_s);
            hp_arena_free(arena);
        }
}

/* By hand: four equal units on a place with full speed and one with a third of it are cut 3 : 1. */
static void a_slow_place_gets_its_share(void **state) {
    (void)state;
    static const double fast[] = {1, 1, 1, 1}, slow[] = {3, 3, 3, 3};
    const hp_chain c = {.n_unit = 4, .n_class = 2, .seconds = {fast, slow}, .places = {1, 1}};
    hp_arena *arena = hp_arena_new();
    hp_balance_run r = hp_balance_start(arena, &c, 1, 0);
    hp_balancer_find("dp")->search(&r);
    assert_true(fabs(r.best_s - 3) < 1e-12 && r.best.n_stage == 2);
    for (int s = 0; s < 2; s++) assert_int_equal(r.best.units[s], r.best.place[s] == 0 ? 3 : 1);
    hp_arena_free(arena);
}

/* Shisha by hand. Weights 1 5 1 1 2 1, two places of equal speed. The first 1 joins its only neighbour: 6 1 1
 * 2 1. The lighter neighbour of the next 1 is the 1 behind it: 6 2 2 1, then 6 2 3, then 6 5. That takes six
 * seconds, the optimum. Every further move brings no gain, so it stops after alpha tries. */
static void shisha_plants_and_stops_by_its_rules(void **state) {
    (void)state;
    static const double weight[] = {1, 5, 1, 1, 2, 1};
    const hp_chain c = {.n_unit = 6, .n_class = 1, .seconds = {weight}, .places = {2}};
    for (int alpha = 1; alpha <= 12; alpha++) {
        hp_arena *arena = hp_arena_new();
        hp_balance_run r = hp_balance_start(arena, &c, 1, 0);
        r.alpha = alpha;
        hp_balancer_find("shisha-h1")->search(&r);
        assert_true(fabs(r.curve[0].best_s - 6) < 1e-12 && r.curve[0].tries == 1);
        assert_true(r.best_s == r.curve[0].best_s);
        assert_int_equal(r.tries, 1 + alpha);
        hp_arena_free(arena);
    }
}

/* The heaviest stage goes to the fastest place; with the other rule, the longest does. */
static void shisha_ranks_by_weight_or_length(void **state) {
    (void)state;
    static const double fast[] = {9, 1, 1, 1, 1}, slow[] = {90, 10, 10, 10, 10};
    const hp_chain c = {.n_unit = 5, .n_class = 2, .seconds = {fast, slow}, .places = {1, 1}};
    static const struct {
        const char *name;
        double seconds;
    } cases[] = {{"shisha-h1", 40}, {"shisha-h4", 90}};
    for (int i = 0; i < 2; i++) {
        hp_arena *arena = hp_arena_new();
        hp_balance_run r = hp_balance_start(arena, &c, 1, 1);
        hp_balancer_find(cases[i].name)->search(&r);
        assert_true(fabs(r.best_s - cases[i].seconds) < 1e-12);
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_programme_finds_what_trying_everything_finds),
        cmocka_unit_test(nobody_is_better_than_the_best),
        cmocka_unit_test(a_slow_place_gets_its_share),
        cmocka_unit_test(shisha_plants_and_stops_by_its_rules),
        cmocka_unit_test(shisha_ranks_by_weight_or_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
