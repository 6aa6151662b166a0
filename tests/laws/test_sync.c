/* test_sync.c - however gradients are synchronised, training is the same: parameter servers give the losses and weights
 * that one rank has, over random networks, cuts and schedules, whichever ranks serve. */
#include "tests/support/exec/law_run.h"

enum { MAX_RANKS = 12 };

/* By the steps of plan/collectives, as in a run. */
static hp_comm *by_steps(hp_comm *inner, const hp_memory *memory) {
    (void)memory;
    return hp_comm_own(inner);
}

/* Few bytes make many buckets, so that all members serve. */
static hp_strategy served(dice *d, const hp_graph *g, int groups, int draws) {
    hp_strategy s = random_strategy_of(d, g, groups, MAX_RANKS, draws);
    s.sync = HP_SYNC_PS;
    s.servers = roll(d, 0, 3);
    s.fuse_bytes = coin(d) ? 64 : 4096;
    return s;
}

static void servers_reproduce_one_rank(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(150); seed++) {
        dice d = {seed, 7100};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 7));
        law_training t = {.g = g, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.05, .seed = seed, .comm = by_steps};
        t.s = served(&d, g, roll(&d, 1, 6), DRAW_EXACT);
        t.batch = hp_strategy_batch(&t.s, 2 * law_groups(&t.s));
        law_training one = t;
        one.s = law_one_rank(law_groups(&t.s));
        const outcome want = law_run(arena, &one), have = law_run(arena, &t);
        law_close(&t, &want, &have, 1e-9, 1e-9);
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_reproduce_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
