/* test_train.c - the most important test: any legal strategy, over random networks, cuts and schedules, gives
 * the losses and weights of one rank with the same grouping of the batch. */
#include "tests/support/exec/law_run.h"

enum { MAX_RANKS = 16 };

static void holds_on_ref(uint64_t seed, const hp_graph *g, const hp_strategy *s, hp_arena *arena) {
    law_training t = {.g = g, .s = *s, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.05, .seed = seed};
    t.batch = hp_strategy_batch(s, 2 * law_groups(s));
    const outcome have = law_run(arena, &t);
    law_training one = t;
    one.s = law_one_rank(law_groups(s));
    const outcome want = law_run(arena, &one);
    law_close(&t, &want, &have, 1e-9, 1e-9);
}

static void any_strategy_reproduces_one_rank_on_ref(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(250); seed++) {
        dice d = {seed, 1000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 7));
        assert_non_null(g);
        const hp_strategy s = random_strategy_of(&d, g, roll(&d, 1, 6), MAX_RANKS, DRAW_EXACT | DRAW_SHARES);
        holds_on_ref(seed, g, &s, arena);
        hp_arena_free(arena);
    }
}

static void any_optimiser_reproduces_one_rank_on_ref(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(120); seed++) {
        dice d = {seed, 1100};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_optimizer(&d, arena, random_net(arena, seed, roll(&d, 3, 7)));
        const hp_strategy s = random_strategy_of(&d, g, roll(&d, 1, 6), MAX_RANKS, DRAW_EXACT | DRAW_SHARES);
        holds_on_ref(seed, g, &s, arena);
        hp_arena_free(arena);
    }
}

/* Figures of the literature, on small networks. MPI4DL rejects the first (tiles of one replica on tiles of
 * the other), and its released code cannot run the third (ranks occur twice in a group). */
static void published_layouts_reproduce_one_rank(void **state) {
    (void)state;
    static const char *const layouts[] = {
        "stages=2,sp=2x2,sched=gems",         /* Jain, thesis 2023, figure 3.3: 5 ranks */
        "stages=5,sp=2x2,sched=gems",         /* figure 3.4: 8 ranks */
        "stages=6,sp=2x2:2x2,sched=gems",     /* Hy-Fi (Jain et al. 2022), 12 ranks */
        "stages=3,sp=2x2:2x2,sched=gems",     /* README's 9 ranks: tiles overlap in part */
        "stages=5,sp=2x1,sched=gems,gems=4"}; /* an odd number of stages: the middle rank mirrors itself */
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, 300 + i, 8);
        hp_strategy s;
        hp_error err;
        assert_int_equal(hp_strategy_parse(layouts[i], &s, &err), HP_OK);
        holds_on_ref(300 + i, g, &s, arena);
        hp_arena_free(arena);
    }
}

/* One step from equal weights: float32 sums of products over a batch, in another order. The bound: the update
 * is lr * gradient; the gradient's relative error grows with the depth and the length of the sums, n*eps
 * each. The longest sum here is a weight gradient's: 16 samples of 13x13 pixels, 2704 terms. */
static void one_step_on_onednn_stays_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 4);
        law_training t = {.g = g, .ops = &hp_device_cpu, .steps = 1, .lr = 0.01, .seed = seed};
        t.s = random_strategy_of(&d, g, groups, 8, DRAW_EXACT | DRAW_SHARES);
        t.batch = hp_strategy_batch(&t.s, 2 * groups);
        law_training one = t;
        one.s = law_one_rank(law_groups(&t.s));
        one.ops = &hp_device_ref;
        const outcome exact = law_run(arena, &one), have = law_run(arena, &t);
        const double eps = 0x1p-24, terms = 4096, depth = g->n_layer;
        law_close(&t, &exact, &have, eps * terms, 0.01 * eps * terms * depth + 4 * eps);
        hp_arena_free(arena);
    }
}

static void the_same_run_twice_gives_the_same_bits(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    law_training t = {.g = random_net(arena, 5, 6),
                      .ops = &hp_device_cpu,
                      .batch = 8,
                      .steps = LAW_STEPS,
                      .lr = 0.05,
                      .seed = 5};
    hp_error err;
    assert_int_equal(hp_strategy_parse("dp=2,stages=2,micro=2,sched=1f1b", &t.s, &err), HP_OK);
    const outcome a = law_run(arena, &t), b = law_run(arena, &t);
    assert_memory_equal(a.loss, b.loss, sizeof a.loss);
    assert_memory_equal(a.weights, b.weights, sizeof(double) * (size_t)a.n);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_strategy_reproduces_one_rank_on_ref),
        cmocka_unit_test(any_optimiser_reproduces_one_rank_on_ref),
        cmocka_unit_test(published_layouts_reproduce_one_rank),
        cmocka_unit_test(one_step_on_onednn_stays_within_rounding),
        cmocka_unit_test(the_same_run_twice_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
