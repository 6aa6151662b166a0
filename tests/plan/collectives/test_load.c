/* test_load.c - the loads that the simulator prices: they equal those of the steps, and those in the
 * papers. */
#include "plan/collectives/collective.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 64, FIRST = HP_ALGORITHM_LIBRARY + 1 };

static double max(double a, double b) {
    return a > b ? a : b;
}

static bool near(double a, double b) {
    return fabs(a - b) < 1e-9;
}

static int32_t log2_floor(int32_t n) {
    return (int32_t)floor(log2(n));
}

static int32_t log2_ceil(int32_t n) {
    return (int32_t)ceil(log2(n));
}

/* --- the steps, counted one message after another --- */

static double share_of(hp_algorithm a, const hp_collective_case *c, const hp_block_range *r) {
    int32_t n = 0;
    for (int32_t x = 0; x < r->span; x++) n += x % r->stride < r->width;
    return (double)n / (c->what == HP_COLLECTIVE_ALL_TO_ALL ? c->size : hp_algorithm_blocks(a, c));
}

typedef struct counted {
    hp_collective_load load;
    double sends[MOST], receives[MOST]; /* counted in two lanes */
    int32_t messages_across;
} counted;

static void count_step(hp_algorithm a, const hp_collective_case *c, int32_t step, counted *all) {
    int32_t leaves[MOST] = {0}, across = 0;
    double sent = 0, added = 0;
    for (int32_t m = 0; m < c->size; m++) {
        const hp_block_step s = hp_algorithms[a]->step(c, m, 0, step);
        if (s.recv_from >= 0 && s.add) added = max(added, share_of(a, c, &s.recv));
        if (s.send_to < 0 || s.send_to == m) continue;
        sent = max(sent, share_of(a, c, &s.send));
        if (s.send_to / c->per_node == m / c->per_node) continue;
        across++;
        leaves[m / c->per_node]++;
    }
    for (int32_t n = 0; n < c->size; n++)
        if (leaves[n] > all->load.crossing) all->load.crossing = leaves[n];
    hp_collective_part *part = across ? &all->load.across : &all->load.inside;
    part->rounds += sent > 0;
    part->sent += sent;
    all->load.added += added;
    all->messages_across += across;
}

static void count_busy(hp_algorithm a, const hp_collective_case *c, counted *all) {
    for (int32_t step = 0; step < hp_algorithms[a]->steps(c); step++)
        for (int32_t lane = 0; lane < 2; lane++)
            for (int32_t m = 0; m < c->size; m++) {
                const hp_block_step s = hp_algorithms[a]->step(c, m, lane, step);
                if (s.send_to < 0 || s.send_to == m) continue;
                all->sends[m] += share_of(a, c, &s.send) / 2;
                all->receives[s.send_to] += share_of(a, c, &s.send) / 2;
            }
    for (int32_t m = 0; m < c->size; m++)
        all->load.busy = max(all->load.busy, max(all->sends[m], all->receives[m]));
}

static counted count(hp_algorithm a, const hp_collective_case *c) {
    counted all = {0};
    for (int32_t step = 0; step < hp_algorithms[a]->steps(c); step++) count_step(a, c, step, &all);
    count_busy(a, c, &all);
    return all;
}

/* --- every algorithm --- */

typedef void check(hp_algorithm a, const hp_collective_case *c);

static void check_all(check *f) {
    const bool all = law_all("every number of members from 18 to 64");
    for (int a = FIRST; a < HP_ALGORITHMS; a++)
        for (int what = 0; what < HP_COLLECTIVES; what++)
            for (int32_t size = 1; size <= MOST; size += all || size < 17 ? 1 : size == 17 ? 14 : 33)
                for (int32_t g = 1; g <= size; g++) {
                    const hp_collective_case c = {.what = (hp_collective)what,
                                                  .size = size,
                                                  .root = hp_collective_rooted((hp_collective)what) ? size / 3
                                                                                                    : 0,
                                                  .per_node = g};
                    if (hp_algorithm_does((hp_algorithm)a, &c, true)) f((hp_algorithm)a, &c);
                }
}

static void check_load(hp_algorithm a, const hp_collective_case *c) {
    const hp_collective_load load = hp_algorithm_load(a, c), wanted = count(a, c).load;
    assert_int_equal(load.inside.rounds, wanted.inside.rounds);
    assert_int_equal(load.across.rounds, wanted.across.rounds);
    assert_int_equal(load.crossing, wanted.crossing);
    assert_true(near(load.inside.sent, wanted.inside.sent));
    assert_true(near(load.across.sent, wanted.across.sent));
    assert_true(near(load.added, wanted.added));
    assert_true(near(load.busy, wanted.busy));
}

static void loads_are_those_of_the_steps(void **unused) {
    (void)unused;
    check_all(check_load);
}

/* Lower bounds for all: the bytes that collectives.def gives the busiest member, log2 p steps until all have
 * heard of all, and p - 1 additions to each block, shared by p members. */
static void check_bounds(hp_algorithm a, const hp_collective_case *c) {
    const hp_collective_load load = hp_algorithm_load(a, c);
    const int32_t p = c->size;
    if (p == 1) {
        assert_int_equal(load.inside.rounds + load.across.rounds, 0);
        return;
    }
    assert_true(load.busy >= hp_collective_bus_factor(c->what, p) - 1e-9);
    assert_true(load.inside.rounds + load.across.rounds >= log2_ceil(p));
    assert_true(load.inside.sent + load.across.sent >= hp_collective_volume(c->what, p) - 1e-9);
    if (hp_collective_infos[c->what].adds) assert_true(load.added >= (p - 1.0) / p - 1e-9);
    assert_int_equal(load.crossing > 0, c->per_node < p);
    assert_int_equal(load.across.rounds > 0, c->per_node < p);
}

static void no_algorithm_beats_the_bounds(void **unused) {
    (void)unused;
    check_all(check_bounds);
}

static void check_last_step(hp_algorithm a, const hp_collective_case *c) {
    const int32_t steps = hp_algorithms[a]->steps(c);
    counted last = {0};
    if (c->size == 1) return;
    count_step(a, c, steps - 1, &last);
    assert_int_equal(last.load.inside.rounds + last.load.across.rounds, 1);
}

static void no_algorithm_idles_at_its_end(void **unused) {
    (void)unused;
    check_all(check_last_step);
}

/* --- what papers give for p members on a node: rounds, what a member sends in them, what it adds --- */

typedef struct given {
    hp_algorithm a;
    hp_collective what;
    bool powers; /* only powers of two */
    double (*rounds)(int32_t p), (*sent)(int32_t p), (*added)(int32_t p);
} given;

static double none(int32_t p) {
    return 0 * p;
}
static double others(int32_t p) {
    return p - 1;
}
static double twice_others(int32_t p) {
    return 2 * (p - 1);
}
static double share(int32_t p) {
    return (p - 1.0) / p;
}
static double twice_share(int32_t p) {
    return 2 * (p - 1.0) / p;
}
static double logarithm(int32_t p) {
    return log2_ceil(p);
}
static double twice_logarithm(int32_t p) {
    return 2 * log2_ceil(p);
}
static double half_logarithm(int32_t p) {
    return log2_ceil(p) / 2.0;
}
static double folded(int32_t p) { /* floor(log2 p), and two steps beyond a power of two */
    return log2_floor(p) + (log2_floor(p) < log2_ceil(p) ? 2 : 0);
}
static double folded_adds(int32_t p) {
    return log2_floor(p) + (log2_floor(p) < log2_ceil(p) ? 1 : 0);
}

/* Thakur, Rabenseifner, Gropp 2005; Patarasu & Yuan 2009; Bruck et al. 1997; Hensgen, Finkel, Manber 1988 */
static const given papers[] = {
    {HP_ALGORITHM_RING, HP_COLLECTIVE_ALLREDUCE, false, twice_others, twice_share, share},
    {HP_ALGORITHM_RING, HP_COLLECTIVE_REDUCE_SCATTER, false, others, share, share},
    {HP_ALGORITHM_RING, HP_COLLECTIVE_ALL_GATHER, false, others, share, none},
    {HP_ALGORITHM_DOUBLING, HP_COLLECTIVE_ALLREDUCE, false, folded, folded, folded_adds},
    {HP_ALGORITHM_DOUBLING, HP_COLLECTIVE_ALL_GATHER, true, logarithm, share, none},
    {HP_ALGORITHM_RABENSEIFNER, HP_COLLECTIVE_ALLREDUCE, true, twice_logarithm, twice_share, share},
    {HP_ALGORITHM_RABENSEIFNER, HP_COLLECTIVE_REDUCE_SCATTER, true, logarithm, share, share},
    {HP_ALGORITHM_BRUCK, HP_COLLECTIVE_ALL_GATHER, false, logarithm, share, none},
    {HP_ALGORITHM_BRUCK, HP_COLLECTIVE_ALL_TO_ALL, true, logarithm, half_logarithm, none},
    {HP_ALGORITHM_BRUCK, HP_COLLECTIVE_BARRIER, false, logarithm, logarithm, logarithm},
    {HP_ALGORITHM_PAIRWISE, HP_COLLECTIVE_ALL_TO_ALL, false, others, share, none},
    {HP_ALGORITHM_PAIRWISE, HP_COLLECTIVE_REDUCE_SCATTER, false, others, share, share},
    {HP_ALGORITHM_DIRECT, HP_COLLECTIVE_BROADCAST, false, others, others, none},
    {HP_ALGORITHM_DIRECT, HP_COLLECTIVE_REDUCE, false, others, others, others},
    {HP_ALGORITHM_BINOMIAL, HP_COLLECTIVE_BROADCAST, false, logarithm, logarithm, none},
    {HP_ALGORITHM_BINOMIAL, HP_COLLECTIVE_REDUCE, false, logarithm, logarithm, logarithm},
    {HP_ALGORITHM_BINOMIAL, HP_COLLECTIVE_GATHER, true, logarithm, share, none},
    {HP_ALGORITHM_BINOMIAL, HP_COLLECTIVE_SCATTER, true, logarithm, share, none},
};

static void loads_on_a_node_are_those_of_the_papers(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof papers / sizeof *papers; i++)
        for (int32_t p = 1; p <= MOST; p++) {
            const given *g = &papers[i];
            const hp_collective_case c = {.what = g->what, .size = p, .per_node = p};
            if (g->powers && (p & (p - 1))) continue;
            const hp_collective_load load = hp_algorithm_load(g->a, &c);
            assert_true(near(load.inside.rounds, g->rounds(p)));
            assert_true(near(load.inside.sent, g->sent(p)));
            assert_true(near(load.added, g->added(p)));
        }
}

/* Sanders, Speck, Traff 2009: on the way down, each member sends and receives all data once, whatever their
 * number. It is an inner node of only one tree, so it has at most two children in every second lane. */
static void two_trees_send_all_data_once(void **unused) {
    (void)unused;
    for (int32_t p = 2; p <= MOST; p++) {
        hp_collective_case c = {.what = HP_COLLECTIVE_BROADCAST, .size = p, .root = p / 2, .per_node = p};
        assert_true(near(hp_algorithm_load(HP_ALGORITHM_TWO_TREES, &c).busy, 1));
        assert_true(hp_algorithms[HP_ALGORITHM_TWO_TREES]->steps(&c) <= 2 * log2_ceil(p));
        c.what = HP_COLLECTIVE_REDUCE;
        assert_true(near(hp_algorithm_load(HP_ALGORITHM_TWO_TREES, &c).busy, 1));
        c = (hp_collective_case){.what = HP_COLLECTIVE_ALLREDUCE, .size = p, .per_node = p};
        assert_true(hp_algorithm_load(HP_ALGORITHM_TWO_TREES, &c).busy <= 2 + 1e-9);
    }
}

/* With a different root each, all starting at once, no member receives, or sends, two messages in any
 * step. */
static void roots_at_once_never_want_the_same_member(void **unused) {
    (void)unused;
    for (int32_t p = 2; p <= MOST; p++)
        for (int32_t step = 0; step < p - 1; step++) {
            int32_t sends[MOST] = {0}, receives[MOST] = {0};
            for (int32_t root = 0; root < p; root++)
                for (int32_t m = 0; m < p; m++) {
                    const hp_collective_case c = {
                        .what = HP_COLLECTIVE_REDUCE, .size = p, .root = root, .per_node = p};
                    const hp_block_step s = hp_algorithms[HP_ALGORITHM_DIRECT]->step(&c, m, 0, step);
                    sends[m] += s.send_to >= 0;
                    receives[m] += s.recv_from >= 0;
                }
            for (int32_t m = 0; m < p; m++) assert_true(sends[m] == 1 && receives[m] == 1);
        }
}

/* N nodes of g members: in an all-reduce, each member sends 2(N-1)/N of 1/g of the data. In an all-to-all, it
 * sends one message to each other node instead of one to each member there, with as many bytes. */
static void two_levels_spare_the_network(void **unused) {
    (void)unused;
    for (int32_t g = 2; g <= 8; g++)
        for (int32_t n = 2; n <= MOST / g; n++) {
            hp_collective_case c = {.what = HP_COLLECTIVE_ALLREDUCE, .size = g * n, .per_node = g};
            const hp_collective_load sums = hp_algorithm_load(HP_ALGORITHM_TWO_LEVELS, &c);
            assert_true(near(sums.across.sent, 2 * (n - 1.0) / n / g));
            assert_true(near(sums.inside.sent, 2 * (g - 1.0) / g));
            assert_true(near(sums.added, (g - 1.0) / g + (n - 1.0) / n / g));
            assert_int_equal(sums.crossing, g);
            c.what = HP_COLLECTIVE_ALL_TO_ALL;
            const counted two = count(HP_ALGORITHM_TWO_LEVELS, &c), pairs = count(HP_ALGORITHM_PAIRWISE, &c);
            assert_int_equal(two.messages_across, g * n * (n - 1));
            assert_int_equal(pairs.messages_across, g * two.messages_across);
            assert_true(two.load.across.rounds <= n);
            assert_true(two.load.across.sent <= 1 + 1e-9);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_are_those_of_the_steps),
        cmocka_unit_test(no_algorithm_beats_the_bounds),
        cmocka_unit_test(no_algorithm_idles_at_its_end),
        cmocka_unit_test(loads_on_a_node_are_those_of_the_papers),
        cmocka_unit_test(two_trees_send_all_data_once),
        cmocka_unit_test(roots_at_once_never_want_the_same_member),
        cmocka_unit_test(two_levels_spare_the_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
