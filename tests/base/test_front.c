/* test_front.c - the Pareto front of time, memory and device hours, compared with its definition pair by
 * pair. */
#include "base/rng.h"
#include "base/front.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 60 };

static bool no_worse(const hp_front_point *a, const hp_front_point *b) {
    return a->memory_bytes <= b->memory_bytes && a->images_per_s >= b->images_per_s &&
           a->gpus * b->images_per_s <= b->gpus * a->images_per_s;
}

/* Among equals, the first stands for all. */
static bool beats(const hp_front_point *a, const hp_front_point *b) {
    return a->images_per_s > 0 && no_worse(a, b) && (!no_worse(b, a) || a < b);
}

static void the_front_is_what_nothing_beats(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        hp_arena *arena = hp_arena_new();
        hp_front_point all[MOST];
        int front[MOST], n_best = 0;
        const int n = (int)(seed % MOST);
        for (int i = 0; i < n; i++)
            all[i] = (hp_front_point){.memory_bytes = 1 + floor(9 * hp_rng_uniform(seed, 1, (uint64_t)i)),
                                      .images_per_s = floor(9 * hp_rng_uniform(seed, 2, (uint64_t)i)),
                                      .gpus = 1 << (int)floor(4 * hp_rng_uniform(seed, 3, (uint64_t)i))};
        const int n_front = hp_front(arena, all, n, front);
        for (int i = 0; i < n; i++) {
            bool beaten = all[i].images_per_s <= 0, there = false;
            for (int k = 0; k < n; k++) beaten |= k != i && beats(&all[k], &all[i]);
            for (int k = 0; k < n_front; k++) there |= front[k] == i;
            if (there == beaten) fail_msg("seed %d, point %d", (int)seed, i);
            n_best += !beaten;
        }
        assert_int_equal(n_front, n_best);
        for (int k = 1; k < n_front; k++)
            assert_true(all[front[k]].memory_bytes >= all[front[k - 1]].memory_bytes);
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_front_is_what_nothing_beats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
