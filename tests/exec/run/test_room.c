/* test_room.c - ranks have room if and only if the total that a node's ranks need is at most the least that
 * one of them sees free. */
#include "exec/run/run_room.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 6, NODES = 2 };

static int64_t draw(uint64_t seed, int i, int most) {
    return (int64_t)hp_rng_below(seed, 0, (uint64_t)i, (uint64_t)most + 1);
}

/* Node by node, as one would count by hand. */
static bool fits(const hp_room *all, int n, uint64_t node) {
    bool enough = true;
    for (int r = 0; r < n; r++) {
        int64_t left = all[r].free_bytes;
        for (int k = 0; k < n; k++)
            if (all[k].node == node) left -= all[k].need_bytes;
        if (all[r].node == node && left < 0) enough = false;
    }
    return enough;
}

static void ranks_of_a_node_share_its_memory(void **state) {
    (void)state;
    int refused = 0, total = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        hp_room all[RANKS];
        const int n = 1 + (int)draw(seed, 0, RANKS - 1);
        for (int r = 0; r < n; r++)
            all[r] = (hp_room){.node = (uint64_t)draw(seed, 3 * r + 1, NODES - 1),
                               .need_bytes = draw(seed, 3 * r + 2, 4),
                               .free_bytes = 3 + draw(seed, 3 * r + 3, 10)};
        for (int r = 0; r < n; r++, total++) {
            const bool yes = hp_room_fits(all, n, r, NULL) == HP_OK;
            assert_int_equal(yes, fits(all, n, all[r].node));
            refused += !yes;
        }
    }
    assert_true(refused > total / 10 && refused < total * 9 / 10);
}

static void the_refusal_says_what_is_needed_what_is_free_and_what_helps(void **state) {
    (void)state;
    hp_error err;
    const hp_room all[] = {{7, 1000001, 3000005}, {8, 50, 60}, {7, 2000002, 3000002}};
    assert_int_equal(hp_room_fits(all, 3, 1, &err), HP_OK);
    assert_int_equal(hp_room_fits(all, 3, 2, &err), HP_EPLAN);
    static const char *const WORDS[] = {"2 ranks", "3000003 bytes", "3000002 are free", "comm=own"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strstr(err.text, WORDS[i])) fail_msg("'%s' does not say '%s'", err.text, WORDS[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_a_node_share_its_memory),
        cmocka_unit_test(the_refusal_says_what_is_needed_what_is_free_and_what_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
