/* test_sync.c - training is the same however gradients are synchronised: parameter servers give one rank's
 * losses and weights, over random networks, cuts and schedules, whichever ranks serve. */
#include "tests/support/exec/law_run.h"

enum { MAX_RANKS = 12 };

/* Uses the steps of plan/collectives, as in a run. */
static hp_comm *by_steps(hp_comm *inner, const hp_memory *memory) {
    (void)memory;
    return hp_comm_own(inner);
}

/* A small size makes many buckets, so that all members serve. */
static hp_strategy served(dice *d, const hp_graph *g, int groups, int draws) {
    hp_strategy s = random_strategy_of(d, g, groups, MAX_RANKS, draws);
    s.zero.stage = 0;
    s.sync.how = HP_SYNC_PS;
    s.sync.servers = roll(d, 0, 3);
    s.fuse_bytes = coin(d) ? 64 : 4096;
    return s;
}

static void servers_reproduce_one_rank(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(150); seed++) {
        dice d = {seed, 7100};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_optimizer(&d, arena, random_net(arena, seed, roll(&d, 3, 7)));
        law_training t = {
            .g = g, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.05, .seed = seed, .comm = by_steps};
        t.s = served(&d, g, roll(&d, 1, 6), DRAW_EXACT);
        t.batch = hp_strategy_batch(&t.s, 2 * law_groups(&t.s));
        law_training one = t;
        one.s = law_one_rank(law_groups(&t.s));
        const outcome want = law_run(arena, &one), have = law_run(arena, &t);
        law_close(&t, &want, &have, 1e-9, 1e-9);
        hp_arena_free(arena);
    }
}

/* --- local SGD --- */

/* A law for classifiers: other networks wait for the metrics of all replicas. */
static bool is_local(hp_strategy *s, const hp_graph *g, int steps) {
    s->zero.stage = 0;
    s->sync.how = HP_SYNC_LOCAL;
    s->sync.local = steps;
    return hp_strategy_legal(s, g, hp_strategy_batch(s, 1), 0, NULL);
}

/* Updates are linear in parameters, momentum and gradients, so the mean of updates is the update by the mean
 * gradient. */
static void an_average_in_each_step_is_data_parallelism(void **state) {
    (void)state;
    int tried = 0;
    for (uint64_t seed = 1; seed <= law_cases(120); seed++) {
        dice d = {seed, 7500};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 7));
        law_training t = {
            .g = g, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.05, .seed = seed, .comm = by_steps};
        t.s = random_strategy_of(&d, g, roll(&d, 1, 6), MAX_RANKS, DRAW_EXACT);
        t.s.fuse_bytes = 4096;
        if (is_local(&t.s, g, 1)) {
            t.batch = hp_strategy_batch(&t.s, 2 * law_groups(&t.s));
            law_training one = t;
            one.s = law_one_rank(law_groups(&t.s));
            const outcome want = law_run(arena, &one), have = law_run(arena, &t);
            law_close(&t, &want, &have, 1e-9, 1e-9);
            tried += hp_strategy_replicas(&t.s) > 1;
        }
        hp_arena_free(arena);
    }
    assert_true(tried >= (int)law_cases(120) / 6);
}

/* Averages every LAW_STEPS steps: replicas start with the same losses and diverge until the average.
 * run_ranks checks that it happens: all ranks must end with the same weights. */
static void replicas_meet_at_the_average(void **state) {
    (void)state;
    int tried = 0;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        dice d = {seed, 7600};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        law_training t = {
            .g = g, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.05, .seed = seed, .comm = by_steps};
        t.s = law_one_rank(roll(&d, 1, 2));
        t.s.dp = roll(&d, 2, 4);
        if (is_local(&t.s, g, LAW_STEPS)) {
            law_training one = t;
            one.s = law_one_rank(law_groups(&t.s));
            t.batch = one.batch = 2 * law_groups(&t.s);
            const outcome want = law_run(arena, &one), have = law_run(arena, &t);
            assert_true(fabs(want.loss[0] - have.loss[0]) <= 1e-9 * (1 + fabs(want.loss[0])));
            assert_true(fabs(want.loss[LAW_STEPS - 1] - have.loss[LAW_STEPS - 1]) > 1e-9);
            tried++;
        }
        hp_arena_free(arena);
    }
    assert_true(tried >= (int)law_cases(60) / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_reproduce_one_rank),
        cmocka_unit_test(an_average_in_each_step_is_data_parallelism),
        cmocka_unit_test(replicas_meet_at_the_average),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
