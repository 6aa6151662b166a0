/* test_resume.c - a resumed training equals an uninterrupted one. In the same plan, to the last bit, over
 * random networks and strategies, including codec state and state of single replicas. In any other plan of
 * the same network, for example on fewer devices, within rounding. */
#define _GNU_SOURCE /* nftw */
#include "sim/shrink/fewer.h"
#include "tests/support/exec/law_run.h"

#include <ftw.h>
#include <unistd.h>

enum { MAX_RANKS = 8, BREAK = 2 /* steps before it */ };

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* Like t, but started with `first`, saved after two steps, and resumed with t's strategy. */
static outcome law_resumed(hp_arena *arena, const law_training *t, const hp_strategy *first) {
    char dir[] = "/tmp/hplan-resume-XXXXXX";
    assert_non_null(mkdtemp(dir));
    law_training before = *t, after = *t;
    before.s = *first;
    before.steps = BREAK;
    before.checkpoint = after.checkpoint = dir;
    after.resume = true;
    law_run(arena, &before);
    const outcome out = law_run(arena, &after);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return out;
}

static void assert_same_bits(const law_training *t, const outcome *want, const outcome *have) {
    char text[HP_STRATEGY_TEXT];
    hp_strategy_text(&t->s, text);
    if (memcmp(&want->loss[BREAK], &have->loss[BREAK], sizeof *want->loss * (LAW_STEPS - BREAK)) != 0 ||
        memcmp(want->weights, have->weights, sizeof *want->weights * (size_t)want->n) != 0)
        fail_msg("seed %llu, %s: other bits after a break", (unsigned long long)t->seed, text);
}

static hp_strategy strategy_of(dice *d, const hp_graph *g, int axes) {
    hp_strategy s = random_strategy_of(d, g, roll(d, 1, 4), MAX_RANKS, axes);
    s.fuse_bytes = 4096;
    if (s.zero.stage == 0) draw_compress(d, &s);
    const hp_strategy plain = s;
    if (roll(d, 0, 1) == 0 && s.zero.stage == 0)
        s.sync.how = HP_SYNC_LOCAL, s.sync.local = LAW_STEPS; /* the break falls between two averages */
    return hp_strategy_legal(&s, g, hp_strategy_batch(&s, 2 * law_groups(&s)), 0, NULL) ? s : plain;
}

static void the_same_plan_gives_the_same_bits(void **state) {
    (void)state;
    int carried = 0, local = 0;
    for (uint64_t seed = 1; seed <= law_cases(90); seed++) {
        dice d = {seed, 9100};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_optimizer(&d, arena, random_net(arena, seed, roll(&d, 3, 6)));
        law_training t = {.g = g, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.05, .seed = seed};
        t.s = strategy_of(&d, g, DRAW_ALL);
        t.batch = hp_strategy_batch(&t.s, 2 * law_groups(&t.s));
        const outcome want = law_run(arena, &t), have = law_resumed(arena, &t, &t.s);
        assert_same_bits(&t, &want, &have);
        carried += t.s.compress[HP_TRAFFIC_ALLREDUCE] != 0 && t.s.dp * t.s.clients > 1;
        local += t.s.sync.how == HP_SYNC_LOCAL;
        hp_arena_free(arena);
    }
    assert_true(carried >= (int)law_cases(90) / 30);
    assert_true(local >= (int)law_cases(90) / 30);
}

static void another_plan_gives_the_same_training(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(90); seed++) {
        dice d = {seed, 9200};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_optimizer(&d, arena, random_net(arena, seed, roll(&d, 3, 6)));
        const int groups = roll(&d, 1, 6);
        law_training t = {.g = g, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.05, .seed = seed};
        t.s = random_strategy_of(&d, g, groups, MAX_RANKS, DRAW_EXACT);
        hp_strategy first = random_strategy_of(&d, g, groups, MAX_RANKS, DRAW_EXACT);
        t.s.fuse_bytes = 4096;
        const int64_t one = hp_strategy_batch(&t.s, 2 * groups),
                      other = hp_strategy_batch(&first, 2 * groups);
        if (first.zero.stage == 0 && coin(&d)) first.sync.how = HP_SYNC_PS;
        if (one == other) {
            t.batch = one;
            law_training whole = t;
            whole.s = law_one_rank(groups);
            const outcome want = law_run(arena, &whole);
            outcome have = law_resumed(arena, &t, &first);
            for (int i = 0; i < BREAK; i++) have.loss[i] = want.loss[i]; /* losses of the first part */
            law_close(&t, &want, &have, 1e-9, 1e-9);
        }
        hp_arena_free(arena);
    }
}

/* As `run --fit-here --resume`: what the first plan's replicas do concurrently, the second's do one after the
 * other. */
static void the_same_plan_on_fewer_devices_gives_the_same_training(void **state) {
    (void)state;
    enum { MOST = 64 };
    int tried = 0, smaller = 0;
    for (uint64_t seed = 1; seed <= law_cases(45); seed++) {
        dice d = {seed, 9300};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 6);
        const hp_strategy first = random_strategy_of(&d, g, groups, MAX_RANKS, DRAW_EXACT | DRAW_SHARES);
        law_training t = {.g = g, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.05, .seed = seed};
        hp_strategy *list = HP_NEW(arena, hp_strategy, MOST);
        char unlike[HP_UNLIKE_TEXT];
        const int n = hp_strategy_fewer(&first, roll(&d, 1, MAX_RANKS / 2), list, MOST);
        t.batch = hp_strategy_batch(&first, 2 * groups);
        t.s = list[roll(&d, 0, n > 3 ? 3 : n - 1)];
        t.s.fuse_bytes = 4096;
        if (hp_strategy_legal(&t.s, g, t.batch, 0, NULL) && hp_trains_alike(&first, &t.s, true, unlike)) {
            law_training whole = t;
            whole.s = first;
            const outcome want = law_run(arena, &whole);
            outcome have = law_resumed(arena, &t, &first);
            for (int i = 0; i < BREAK; i++) have.loss[i] = want.loss[i];
            law_close(&t, &want, &have, 1e-9, 1e-9);
            tried++;
            smaller += hp_strategy_ranks(&t.s) < hp_strategy_ranks(&first);
        }
        hp_arena_free(arena);
    }
    if (law_cases(45) >= 15) { /* with few cases, possibly none is legal */
        assert_true(tried >= (int)law_cases(45) * 4 / 9);
        assert_true(smaller >= (int)law_cases(45) * 2 / 9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_plan_gives_the_same_bits),
        cmocka_unit_test(another_plan_gives_the_same_training),
        cmocka_unit_test(the_same_plan_on_fewer_devices_gives_the_same_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
