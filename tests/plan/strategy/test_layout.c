/* test_layout.c - which rank does what: roles and places are inverse, mirrored or not, and their number
 * matches the contract's formula. */
#include "plan/strategy/layout.h"
#include "tests/support/plan/random_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static hp_strategy parsed(const char *text) {
    hp_strategy s;
    hp_error err;
    if (hp_strategy_parse(text, &s, &err) != HP_OK) fail_msg("%s", err.text);
    return s;
}

static hp_strategy drawn(hp_arena *arena, uint64_t seed) {
    dice d = {seed, 0};
    return random_strategy_of(&d, random_net(arena, seed % 7, 8), roll(&d, 1, 12), 200, DRAW_ALL);
}

/* Ranks = dp*clients*cp*bp*(tiles of the spatial stages + (stages - spatial stages)*ldp); with tail=shared
 * the tiles alone. */
static void ranks_follow_the_formula(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (uint64_t seed = 1; seed <= 500; seed++) {
        const hp_strategy s = drawn(arena, seed);
        int parts = s.sp.tail == HP_TAIL_SHARED ? 0 : (s.stages - s.sp.n) * s.ldp;
        for (int i = 0; i < s.sp.n; i++) parts += s.sp.rows[i] * s.sp.cols[i];
        parts *= s.cp * s.bp;
        const int shares = s.by[HP_AXIS_N].n ? s.dp : 1; /* replicas that are separate roles of one program */
        assert_int_equal(hp_strategy_roles(&s), shares * parts);
        assert_int_equal(hp_strategy_ranks(&s), s.dp * s.clients * parts);
        assert_int_equal(hp_strategy_devices(&s) * s.clients, hp_strategy_ranks(&s));
        assert_int_equal(hp_strategy_replicas(&s), s.dp / shares * s.clients);
    }
    hp_arena_free(arena);
}

/* Sizes of worlds in MPI4DL's README and its authors' papers. */
static void published_worlds_have_their_sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int ranks;
    } worlds[] = {
        {"stages=2,sp=2x2", 5},
        {"stages=3,sp=2x2:2x2", 9},
        {"stages=2,sp=2x2,ldp=2", 6},
        {"stages=2,sp=2x2,sched=gems", 5},
        {"stages=5,sp=2x2,sched=gems", 8},
        {"stages=6,sp=2x2:2x2,sched=gems", 12},
        {"dp=2,stages=6,sp=2x2:2x2,sched=gems", 24},
        {"stages=2,sp=2x2,tail=shared", 4},
        {"clients=4", 4},
    };
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        const hp_strategy s = parsed(worlds[i].text);
        assert_int_equal(hp_strategy_ranks(&s), worlds[i].ranks);
    }
}

/* Replica by replica with separate shares, position by position, part by part. The mirror image counts from
 * the other end, in blocks of the channel slices, which every role keeps. */
static int role_counted(const hp_strategy *s, int k, int flip) {
    const int n = hp_strategy_roles(s) / hp_shares(s), block = s->cp * s->bp, slice = k % block;
    return flip ? n - block - (k - slice) + slice : k;
}

/* A role has one place, and a place one role. */
static void roles_and_places_are_inverse(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (uint64_t seed = 1; seed <= 500; seed++) {
        const hp_strategy s = drawn(arena, seed);
        const int n = hp_strategy_roles(&s);
        for (int flip = 0; flip < hp_flips(&s); flip++) {
            int next = 0;
            for (int share = 0; share < hp_shares(&s); share++)
                for (int p = 0; p < hp_positions(&s); p++) {
                    const int parts = hp_stage_parts(&s, p) / hp_shares(&s);
                    for (int part = share * parts; part < (share + 1) * parts; part++, next++) {
                        const int role = hp_role_of(&s, p, part, flip), own = n / hp_shares(&s);
                        int position, k;
                        hp_role_place(&s, role, flip, &position, &k);
                        assert_true(position == p && k == part);
                        assert_int_equal(role, share * own + role_counted(&s, next % own, flip));
                    }
                }
            assert_int_equal(next, n);
        }
    }
    hp_arena_free(arena);
}

/* Behind the tiles, on the same ranks, there are as many slices as there were tiles. */
static void a_shared_tail_stays_on_its_ranks(void **state) {
    (void)state;
    const hp_strategy s = parsed("stages=3,sp=3x1:2x3,tail=shared,cp=2");
    assert_int_equal(hp_positions(&s), 2);
    assert_int_equal(hp_position_of(&s, 2), 1);
    assert_int_equal(hp_stage_parts(&s, 1), 12);
    assert_int_equal(hp_stage_parts(&s, 2), 12);
    const hp_layout tail = hp_stage_layout(&s, 2);
    assert_true(tail.rows == 1 && tail.cols == 1 && tail.slices == 6 && tail.channels == 2);
    for (int part = 0; part < 12; part++)
        assert_int_equal(hp_role_of(&s, 2, part, 0), hp_role_of(&s, 1, part, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_follow_the_formula),
        cmocka_unit_test(published_worlds_have_their_sizes),
        cmocka_unit_test(roles_and_places_are_inverse),
        cmocka_unit_test(a_shared_tail_stays_on_its_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
