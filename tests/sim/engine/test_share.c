/* test_share.c - max-min fair sharing, compared with textbook answers and its definition; activities over
 * time; the order of events. */
#include "base/rng.h"
#include "sim/engine/fluid.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 12 };

static void solve(const hp_share_problem *p, double *rate) {
    double work[2 * MANY];
    int32_t index[2 * MANY + 1 + 3 * MANY];
    assert_true(hp_share_doubles(p) <= 2 * MANY && hp_share_indices(p) <= 5 * MANY + 1);
    hp_share_solve(p, work, index, rate);
}

static void one_link_is_split_evenly(void **state) {
    (void)state;
    const hp_share_use use[] = {{0, 1}, {0, 1}, {0, 1}};
    const int32_t first[] = {0, 1, 2, 3};
    const double capacity[] = {1};
    const hp_share_problem p = {3, 1, first, use, capacity};
    double rate[3];
    solve(&p, rate);
    for (int i = 0; i < 3; i++) assert_true(fabs(rate[i] - 1.0 / 3) < 1e-12);
}

/* A long session over three links of capacity 1; two more on the first, one on the second, one on the third.
 * By hand: the first link is full at 1/3 each; on the others, the local session then gets the remaining
 * 2/3. */
static void a_long_session_leaves_the_rest_to_local_ones(void **state) {
    (void)state;
    const hp_share_use use[] = {{0, 1}, {1, 1}, {2, 1}, {0, 1}, {0, 1}, {1, 1}, {2, 1}};
    const int32_t first[] = {0, 3, 4, 5, 6, 7};
    const double capacity[] = {1, 1, 1};
    const hp_share_problem p = {5, 3, first, use, capacity};
    const double expected[] = {1.0 / 3, 1.0 / 3, 1.0 / 3, 2.0 / 3, 2.0 / 3};
    double rate[5];
    solve(&p, rate);
    for (int i = 0; i < 5; i++) assert_true(fabs(rate[i] - expected[i]) < 1e-12);
}

/* Four ranks on two cores run at half speed; three shares of 0.6 of a node at 1/1.8. */
static void cores_are_shared(void **state) {
    (void)state;
    const hp_share_use four[] = {{0, 0.5}, {0, 0.5}, {0, 0.5}, {0, 0.5}},
                       three[] = {{0, 0.6}, {0, 0.6}, {0, 0.6}};
    const int32_t first[] = {0, 1, 2, 3, 4};
    const double capacity[] = {1};
    double rate[4];
    const hp_share_problem a = {4, 1, first, four, capacity}, b = {3, 1, first, three, capacity};
    solve(&a, rate);
    for (int i = 0; i < 4; i++) assert_true(fabs(rate[i] - 0.5) < 1e-12);
    solve(&b, rate);
    for (int i = 0; i < 3; i++) assert_true(fabs(rate[i] - 1 / 1.8) < 1e-12);
}

/* The definition: feasible, and every activity below its cap uses a full resource on which nobody is
 * faster. */
static void random_problems_are_max_min_fair(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        hp_share_use use[MANY * 3];
        int32_t first[MANY + 1];
        double capacity[MANY], rate[MANY], load[MANY] = {0};
        uint64_t k = 0;
        const int n = 1 + (int)hp_rng_below(seed, 0, k++, MANY), m = 1 + (int)hp_rng_below(seed, 0, k++, 5);
        for (int r = 0; r < m; r++) capacity[r] = 0.2 + hp_rng_uniform(seed, 0, k++) * 2;
        int n_use = 0;
        for (int a = 0; a < n; a++) {
            first[a] = n_use;
            for (int r = 0; r < m; r++) {
                if (n_use - first[a] < 3 && hp_rng_below(seed, 0, k++, 2))
                    use[n_use++] = (hp_share_use){r, 0.1 + hp_rng_uniform(seed, 0, k++)};
            }
        }
        first[n] = n_use;
        const hp_share_problem p = {n, m, first, use, capacity};
        solve(&p, rate);
        for (int a = 0; a < n; a++) {
            assert_true(rate[a] > 0 && rate[a] <= 1);
            for (int u = first[a]; u < first[a + 1]; u++) load[use[u].resource] += use[u].demand * rate[a];
        }
        for (int r = 0; r < m; r++) assert_true(load[r] <= capacity[r] * (1 + 1e-9));
        for (int a = 0; a < n; a++) {
            bool justified = rate[a] == 1; // NOLINT
            for (int u = first[a]; u < first[a + 1] && !justified; u++) {
                const int r = use[u].resource;
                bool fastest = load[r] >= capacity[r] * (1 - 1e-9);
                for (int b = 0; b < n; b++) {
                    for (int v = first[b]; v < first[b + 1]; v++)
                        if (use[v].resource == r && rate[b] > rate[a] * (1 + 1e-9)) fastest = false;
                }
                justified = fastest;
            }
            assert_true(justified);
        }
    }
}

/* Alternating pushes and pops, many for one instant. */
static void events_stay_in_order_while_others_are_pushed(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_events q;
    hp_events_init(&q, arena);
    hp_event before = {.what = -1}, e;
    int pushed = 0, popped = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        const int64_t ahead = (int64_t)hp_rng_below(3, 4, i, 4);
        for (uint64_t k = hp_rng_below(3, 5, i, 4); k > 0; k--)
            hp_events_push(&q, before.t_ns + ahead, pushed++, 0);
        for (uint64_t k = hp_rng_below(3, 6, i, 4); k > 0 && hp_events_pop(&q, &e); k--, popped++) {
            assert_true(e.t_ns > before.t_ns || (e.t_ns == before.t_ns && e.what > before.what));
            before = e;
        }
    }
    while (hp_events_pop(&q, &e)) popped++;
    assert_int_equal(pushed, popped);
    assert_true(hp_events_next_ns(&q) == INT64_MAX);
    hp_arena_free(arena);
}

static void events_come_in_order_and_ties_as_pushed(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_events q;
    hp_events_init(&q, arena);
    for (int i = 0; i < 5000; i++) hp_events_push(&q, (int64_t)hp_rng_below(1, 2, (uint64_t)i, 50), i, 0);
    hp_event before = {.t_ns = -1}, e;
    int n = 0;
    for (; hp_events_pop(&q, &e); n++) {
        assert_true(e.t_ns > before.t_ns || (e.t_ns == before.t_ns && e.what > before.what));
        before = e;
    }
    assert_int_equal(n, 5000);
    hp_arena_free(arena);
}

/* Runs the activities until all have ended; end[owner] gets the times. */
static void run(hp_events *q, hp_fluid *f, int64_t *end) {
    hp_event e;
    int64_t owner;
    hp_fluid_settle(f, 0);
    while (hp_events_pop(q, &e)) {
        if (hp_fluid_end(f, &e, &owner)) end[owner] = e.t_ns;
        hp_fluid_settle(f, e.t_ns);
    }
}

/* Two flows of 100 and 300 ns on one link: the short one ends at 200, when the other has 200 left: 400. */
static void who_is_left_alone_speeds_up(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_events q;
    const double capacity[] = {1};
    const hp_share_use use = {0, 1};
    int64_t end[2] = {0};
    hp_events_init(&q, arena);
    hp_fluid *f = hp_fluid_new(arena, 1, capacity, &q);
    hp_fluid_start(f, 0, 0, 100, 1, &use, 0);
    hp_fluid_start(f, 0, 0, 300, 1, &use, 1);
    run(&q, f, end);
    assert_int_equal(end[0], 200);
    assert_int_equal(end[1], 400);
    hp_arena_free(arena);
}

/* A latency does not use the link. n equal activities all end after theirs plus n times their work; one with
 * a longer latency begins when the link is free. */
static void latencies_are_not_shared(void **state) {
    (void)state;
    const double capacity[] = {1};
    const hp_share_use use = {0, 1};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        hp_arena *arena = hp_arena_new();
        hp_events q;
        int64_t end[MANY] = {0};
        const int n = 1 + (int)hp_rng_below(seed, 1, 0, MANY - 1);
        const int64_t latency = (int64_t)hp_rng_below(seed, 2, 0, 10000);
        const int64_t work = 1 + (int64_t)hp_rng_below(seed, 3, 0, 10000), after = latency + (n + 1) * work;
        hp_events_init(&q, arena);
        hp_fluid *f = hp_fluid_new(arena, 1, capacity, &q);
        for (int i = 0; i < n; i++) hp_fluid_start(f, 0, latency, work, 1, &use, i);
        hp_fluid_start(f, 0, after, work, 1, &use, n);
        run(&q, f, end);
        for (int i = 0; i < n; i++) assert_int_equal(end[i], latency + n * work);
        assert_int_equal(end[n], after + work);
        hp_arena_free(arena);
    }
}

/* A link is never idle while work remains: with equal starts and any lengths, the last ends at the sum. */
static void work_is_conserved(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        hp_arena *arena = hp_arena_new();
        hp_events q;
        const double capacity[] = {1};
        const hp_share_use use = {0, 1};
        int64_t end[MANY] = {0}, sum = 0, last = 0;
        hp_events_init(&q, arena);
        hp_fluid *f = hp_fluid_new(arena, 1, capacity, &q);
        for (int i = 0; i < MANY; i++) {
            const int64_t work = 1 + (int64_t)hp_rng_below(seed, 3, (uint64_t)i, 1000000);
            sum += work;
            hp_fluid_start(f, 0, 0, work, 1, &use, i);
        }
        run(&q, f, end);
        for (int i = 0; i < MANY; i++) last = end[i] > last ? end[i] : last;
        assert_true(llabs(last - sum) <= MANY); /* each change rounds to a nanosecond */
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_link_is_split_evenly),
        cmocka_unit_test(a_long_session_leaves_the_rest_to_local_ones),
        cmocka_unit_test(cores_are_shared),
        cmocka_unit_test(random_problems_are_max_min_fair),
        cmocka_unit_test(events_come_in_order_and_ties_as_pushed),
        cmocka_unit_test(events_stay_in_order_while_others_are_pushed),
        cmocka_unit_test(who_is_left_alone_speeds_up),
        cmocka_unit_test(latencies_are_not_shared),
        cmocka_unit_test(work_is_conserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
