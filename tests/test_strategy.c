/* test_strategy.c - strategy strings: canonical, stable, refused with reasons. Schedules: the laws of
 * schedules. */
#include "plan/schedule.h"
#include "tests/random_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void printing_and_parsing_are_inverse(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (uint64_t seed = 1; seed <= 300; seed++) {
        dice d = {seed, 0};
        const hp_graph *g = random_net(arena, seed % 7, 8);
        const hp_strategy s = random_strategy(&d, g, roll(&d, 1, 12), 64);
        char text[HP_STRATEGY_TEXT], again[HP_STRATEGY_TEXT];
        hp_strategy back;
        hp_error err;
        assert_int_equal(hp_strategy_parse(hp_strategy_text(&s, text), &back, &err), HP_OK);
        assert_string_equal(text, hp_strategy_text(&back, again));
        assert_true(hp_strategy_equal(&s, &back));
    }
    hp_arena_free(arena);
}

/* Canonical forms of the contract's examples. */
static void strings_are_canonical(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"dp=1", "dp=1"},
        {"micro=8,stages=4", "stages=4,micro=8"},
        {"stages=4,micro=8,sched=gpipe,recompute=none,fuse=25M,chunks=1", "stages=4,micro=8"},
        {"stages=2,sched=lp", "stages=2"},
        {"stages=4,cut=9:9:9:11", "stages=4,cut=9:9:9:11"},
        {"dp=2,stages=2,micro=4,sched=1f1b,recompute=full",
         "dp=2,stages=2,micro=4,sched=1f1b,recompute=full"},
        {"micro=4,sched=1f1b", "micro=4"},
        {"fuse=1Mi", "fuse=1048576"},
        {"sp=1x1,prec=fp32,bn=sync,ldp=1", "dp=1"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        hp_strategy s;
        hp_error err;
        char text[HP_STRATEGY_TEXT];
        assert_int_equal(hp_strategy_parse(pairs[i][0], &s, &err), HP_OK);
        assert_string_equal(hp_strategy_text(&s, text), pairs[i][1]);
    }
}

static void bad_strings_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        hp_status code;
    } bad[] = {
        {"dp", HP_EUSAGE},           {"dp=0", HP_EUSAGE},           {"dp=-1", HP_EUSAGE},
        {"dp=2x", HP_EUSAGE},        {"dp=2,dp=2", HP_EUSAGE},      {"what=3", HP_EUSAGE},
        {"sched=fast", HP_EUSAGE},   {"cut=", HP_EUSAGE},           {"cut=1:0", HP_EUSAGE},
        {"fuse=-1", HP_EUSAGE},      {"dp=99999999999", HP_EUSAGE}, {"sp=2x2", HP_EUNAVAIL},
        {"sched=gems", HP_EUNAVAIL}, {"prec=int8", HP_EUNAVAIL},    {"recompute=all", HP_EUSAGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hp_strategy s;
        hp_error err = {HP_OK, ""};
        if (hp_strategy_parse(bad[i].text, &s, &err) != bad[i].code || !err.text[0])
            fail_msg("'%s': %d %s", bad[i].text, err.code, err.text);
    }
}

static void refusals_name_the_limit_and_a_fix_that_works(void **state) {
    (void)state;
    static const struct {
        const char *text, *code;
        int batch, devices;
    } bad[] = {
        {"dp=3", "E-BATCH", 64, 0},
        {"stages=2,micro=5", "E-BATCH", 64, 0},
        {"dp=4,stages=4", "E-GPUS", 64, 8},
        {"stages=20", "E-STAGES", 64, 0},
        {"stages=2,cut=1:1", "E-CUT", 64, 0},
        {"stages=2,cut=1:1:1", "E-CUT", 64, 0},
        {"stages=2,micro=4,sched=lp", "E-SCHED", 64, 0},
        {"stages=2,chunks=2,micro=3", "E-SCHED", 63, 0},
        {"stages=2,micro=4,sched=interleaved", "E-SCHED", 64, 0},
    };
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hp_strategy s;
        hp_reject why;
        assert_int_equal(hp_strategy_parse(bad[i].text, &s, &err), HP_OK);
        assert_false(hp_strategy_legal(&s, g, bad[i].batch, bad[i].devices, &why));
        assert_string_equal(why.code, bad[i].code);
        assert_true(why.limit[0] && why.fix[0]);
        if (strncmp(why.fix, "--batch ", 8) == 0)
            assert_true(hp_strategy_legal(&s, g, atoi(why.fix + 8), 0, NULL));
        if (strncmp(why.fix, "--gpus ", 7) == 0)
            assert_true(hp_strategy_legal(&s, g, bad[i].batch, atoi(why.fix + 7), NULL));
    }
    hp_arena_free(arena);
}

/* Every pass once; backward after forward; no more micro-batches in flight than the schedule's bound. */
static void schedules_are_complete_and_bounded(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        dice d = {seed, 0};
        hp_strategy s = hp_strategy_default();
        s.stages = roll(&d, 1, 9);
        s.sched = roll(&d, 1, 3);
        s.chunks = s.sched == HP_SCHED_INTERLEAVED && s.stages > 1 ? roll(&d, 2, 4) : 1;
        s.micro = s.chunks > 1 ? s.stages * roll(&d, 1, 4) : roll(&d, 1, 20);
        for (int stage = 0; stage < s.stages; stage++) {
            const int total = 2 * s.micro * s.chunks;
            hp_sched_step step[2 * 9 * 4 * 4 + 64];
            int seen[2][4][64] = {{{0}}}, in_flight = 0, most = 0;
            hp_schedule(&s, stage, step);
            for (int i = 0; i < total; i++) {
                const hp_sched_step *t = &step[i];
                assert_true(t->chunk >= 0 && t->chunk < s.chunks && t->micro >= 0 && t->micro < s.micro);
                assert_int_equal(seen[t->backward][t->chunk][t->micro]++, 0);
                if (t->backward) assert_int_equal(seen[0][t->chunk][t->micro], 1);
                in_flight += t->backward ? -1 : 1;
                if (in_flight > most) most = in_flight;
            }
            assert_int_equal(in_flight, 0);
            if (s.sched == HP_SCHED_GPIPE && s.stages > 1) assert_int_equal(most, s.micro);
            if (s.sched == HP_SCHED_1F1B && s.stages > 1)
                assert_int_equal(most, s.micro < s.stages - stage ? s.micro : s.stages - stage);
            if (s.stages == 1) assert_int_equal(most, 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printing_and_parsing_are_inverse),
        cmocka_unit_test(strings_are_canonical),
        cmocka_unit_test(bad_strings_are_refused),
        cmocka_unit_test(refusals_name_the_limit_and_a_fix_that_works),
        cmocka_unit_test(schedules_are_complete_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
