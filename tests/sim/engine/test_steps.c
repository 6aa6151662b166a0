/* test_steps.c - collectives step by step, compared with their closed forms. */
#include "tests/support/sim/gradient_ring.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int64_t step_ns(const gradient_ring *r, bool steps) {
    hp_arena *arena = hp_arena_new();
    const hp_sim_result result = gradient_ring_run(arena, r, steps);
    assert_int_equal(result.simulated, steps ? r->ranks : 1);
    hp_arena_free(arena);
    return result.makespan_ns;
}

/* 80 + 160 ms of computing, and 254 steps of (1 us + 80 kB / 25 GB/s) for the last bucket, with each message
 * as an event, and folded. */
static void ten_buckets_over_128_ranks_take_241_07_ms(void **state) {
    (void)state;
    assert_int_equal(gradient_ring_ns(&gradient_ring_128), 241066800);
    assert_int_equal(step_ns(&gradient_ring_128, true), 241066800);
    assert_int_equal(step_ns(&gradient_ring_128, false), 241066800);
}

/* If a bucket is not finished when the next one is ready, buckets queue: the step takes the ring's time. */
static void a_slow_ring_hides_the_backward_pass(void **state) {
    (void)state;
    gradient_ring r = {.ranks = 8,
                       .buckets = 5,
                       .forward_s = 1e-3,
                       .backward_s = 1e-5,
                       .bucket_bytes = 8 * 125000,
                       .link_bytes_per_s = 1e9,
                       .latency_s = 1e-6};
    const int64_t one_ns = 14 * 126000; /* 14 messages of 1 us + 125 us */
    assert_int_equal(step_ns(&r, true), 1010000 + 5 * one_ns);
    assert_int_equal(step_ns(&r, false), 1010000 + 5 * one_ns);
}

/* plan/collectives' longest path of an algorithm is the time of its steps, for any number of members. */
static void a_collective_takes_what_its_steps_take(void **state) {
    (void)state;
    for (int algorithm = HP_ALGORITHM_DOUBLING; algorithm < HP_ALGORITHMS; algorithm++) {
        for (int ranks = 2; ranks <= 33; ranks++) {
            const hp_collective_case c = {HP_COLLECTIVE_ALLREDUCE, ranks, 0, 1};
            if (!hp_algorithm_does((hp_algorithm)algorithm, &c, true)) continue;
            const gradient_ring r = {.ranks = ranks,
                                     .buckets = 2,
                                     .forward_s = 1e-4,
                                     .backward_s = 1e-3,
                                     .algorithm = (hp_algorithm)algorithm,
                                     .bucket_bytes = INT64_C(4096) * ranks, /* equal blocks, however many */
                                     .link_bytes_per_s = 1e9,
                                     .latency_s = 2e-6};
            assert_int_equal(step_ns(&r, true), step_ns(&r, false));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_buckets_over_128_ranks_take_241_07_ms),
        cmocka_unit_test(a_slow_ring_hides_the_backward_pass),
        cmocka_unit_test(a_collective_takes_what_its_steps_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
