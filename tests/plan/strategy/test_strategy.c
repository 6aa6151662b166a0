/* test_strategy.c - strategy strings: canonical, stable, rejected with reasons. Legality: every rejection
 * names a limit and a fix, and following the fixes ends in a legal strategy. */
#include "plan/strategy/layout.h"
#include "plan/strategy/change.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/plan/wild_strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* --- strings --- */

static void printing_and_parsing_are_inverse(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        dice d = {seed, 0};
        const hp_graph *g = random_net(arena, seed % 7, 8);
        hp_strategy s = random_strategy_of(&d, g, roll(&d, 1, 12), 64, seed % 2 ? DRAW_ALL : 0);
        draw_compress(&d, &s);
        char text[HP_STRATEGY_TEXT], again[HP_STRATEGY_TEXT];
        hp_strategy back;
        hp_error err;
        assert_int_equal(hp_strategy_parse(hp_strategy_text(&s, text), &back, &err), HP_OK);
        assert_string_equal(text, hp_strategy_text(&back, again));
        assert_true(hp_strategy_equal(&s, &back));
        assert_int_equal(hp_strategy_ranks(&s), hp_strategy_ranks(&back));
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
        {"micro=4,sched=zb", "micro=4"},
        {"fuse=1Mi", "fuse=1048576"},
        {"sp=1x1,prec=fp32,bn=sync,ldp=1", "dp=1"},
        {"sync=allreduce,dp=4", "dp=4"},
        {"sync=ps,dp=4", "dp=4,sync=ps"},
        {"sync=local:8,dp=4", "dp=4,sync=local:8"},
        {"sync=ps:1,dp=4,micro=2", "dp=4,sync=ps:1,micro=2"},
        {"halo=2,sp=2x2", "sp=2x2,halo=2"},
        {"stages=3,sp=2x2:2x1", "stages=3,sp=2x2:2x1"},
        {"stages=3,sp=2x2:1x1", "stages=3,sp=2x2"},
        {"stages=3,sp=1x1:2x1", "stages=3,sp=1x1:2x1"},
        {"ldp=2,stages=2,sp=1x1", "stages=2,sp=1x1,ldp=2"},
        {"stages=2,sp=2x2,tail=shared,ldp=1", "stages=2,sp=2x2,tail=shared"},
        {"stages=2,sp=2x2,tail=shared,micro=4,sched=1f1b", "stages=2,sp=2x2,tail=shared,micro=4"},
        {"stages=3,gems=4", "stages=3,sched=gems,gems=4"},
        {"stages=3,gems=2", "stages=3,sched=gems"},
        {"stages=3,sched=gems", "stages=3,sched=gems"},
        {"stages=3,gems=1", "stages=3"},
        {"stages=2,sched=gems,gems=1", "stages=2,sched=gems,gems=1"},
        {"stages=2,sched=gpipe,gems=4", "stages=2,sched=gpipe,gems=4"},
        {"stages=2,sched=lp,gems=4", "stages=2,sched=lp,gems=4"},
        {"stages=2,chunks=2,micro=2", "stages=2,chunks=2,micro=2,sched=interleaved"},
        {"compress=none,dp=2", "dp=2"},
        {"seq=4,tp=2,dp=2", "dp=2,tp=2,seq=4:ring"},
        {"seq=1:a2a", "dp=1"},
        {"stages=2,seq=3:a2a", "stages=2,seq=3:a2a"},
        {"compress=allreduce:bf16+stage:fp16+halo:int8,dp=2",
         "dp=2,compress=halo:int8+stage:fp16+allreduce:bf16"},
        {"stages=2,chunks=2,micro=2,sched=gpipe", "stages=2,chunks=2,micro=2,sched=gpipe"},
        {"clients=2,bn=local,cp=3,sp=5x1,stages=2,micro=2,sched=zb,dp=2",
         "dp=2,stages=2,sp=5x1,cp=3,micro=2,sched=zb,bn=local,clients=2"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        hp_strategy s;
        hp_error err;
        char text[HP_STRATEGY_TEXT];
        assert_int_equal(hp_strategy_parse(pairs[i][0], &s, &err), HP_OK);
        assert_string_equal(hp_strategy_text(&s, text), pairs[i][1]);
        assert_int_equal(hp_strategy_parse(text, &s, &err), HP_OK);
        assert_string_equal(hp_strategy_text(&s, text), pairs[i][1]);
    }
}

static void bad_strings_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        hp_status code;
    } bad[] = {
        {"dp", HP_EUSAGE},
        {"dp=0", HP_EUSAGE},
        {"dp=-1", HP_EUSAGE},
        {"dp=2x", HP_EUSAGE},
        {"dp=2,dp=2", HP_EUSAGE},
        {"what=3", HP_EUSAGE},
        {"sched=fast", HP_EUSAGE},
        {"cut=", HP_EUSAGE},
        {"cut=1:0", HP_EUSAGE},
        {"cut=1::2", HP_EUSAGE},
        {"cut=1:", HP_EUSAGE},
        {"fuse=-1", HP_EUSAGE},
        {"sp=", HP_EUSAGE},
        {"dp=99999999999", HP_EUSAGE},
        {"sp=4", HP_EUSAGE},
        {"sp=2x", HP_EUSAGE},
        {"sp=x2", HP_EUSAGE},
        {"sp=2x2:", HP_EUSAGE},
        {"sp=2x2::2x2", HP_EUSAGE},
        {"sp=0x2", HP_EUSAGE},
        {"sp=2x2x2", HP_EUSAGE},
        {"sp=-2x2", HP_EUSAGE},
        {"sp=70000x1", HP_EUSAGE},
        {"tail=both", HP_EUSAGE},
        {"bn=none", HP_EUSAGE},
        {"gems=0", HP_EUSAGE},
        {"halo=0", HP_EUSAGE},
        {"clients=0", HP_EUSAGE},
        {"prec=int4", HP_EUNAVAIL},
        {"recompute=all", HP_EUSAGE},
        {"ep=2", HP_EUNAVAIL},
        {"tp=0", HP_EUSAGE},
        {"seq=2:star", HP_EUSAGE},
        {"seq=", HP_EUSAGE},
        {"seq=0:ring", HP_EUSAGE},
        {"compress=bf16", HP_EUSAGE},
        {"compress=halo:bf16+halo:bf16", HP_EUSAGE},
        {"compress=stats:bf16", HP_EUSAGE},
        {"compress=halo", HP_EUSAGE},
        {"compress=halo:bf17", HP_EUSAGE},
        {"compress=halo:int80", HP_EUSAGE},
        {"compress=", HP_EUSAGE},
        {"compress=none+halo:bf16", HP_EUSAGE},
        {"zero=4", HP_EUSAGE},
        {"zero=", HP_EUSAGE},
        {"zero=:keep", HP_EUSAGE},
        {"zero=1:keep", HP_EUSAGE},
        {"zero=3:65", HP_EUSAGE},
        {"zero=3:kept", HP_EUSAGE},
        {"zero=-1", HP_EUSAGE},
        {"sync=ring", HP_EUSAGE},
        {"sync=ps:0", HP_EUSAGE},
        {"sync=p:1", HP_EUSAGE},
        {"sync=ps:", HP_EUSAGE},
        {"sync=psx", HP_EUSAGE},
        {"sync=local", HP_EUSAGE},
        {"sync=local:0", HP_EUSAGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hp_strategy s;
        hp_error err = {HP_OK, ""};
        if (hp_strategy_parse(bad[i].text, &s, &err) != bad[i].code || !err.text[0])
            fail_msg("'%s': %d %s", bad[i].text, err.code, err.text);
    }
}

/* Every field at its maximum length. */
static void the_longest_strategy_has_room(void **state) {
    (void)state;
    hp_strategy s = hp_strategy_default(), back;
    int32_t *degree[] = {&s.dp,    &s.stages, &s.chunks,  &s.cp,     &s.ldp,
                         &s.micro, &s.gems,   &s.sp.halo, &s.clients};
    for (size_t i = 0; i < sizeof degree / sizeof degree[0]; i++) *degree[i] = 65536;
    s.sp.tail = HP_TAIL_SHARED;
    s.bn = HP_BN_LOCAL;
    s.sched = HP_SCHED_INTERLEAVED;
    s.recompute = HP_RECOMPUTE_EXCEPT_LAST;
    s.fuse_bytes = INT64_MAX;
    s.sp.n = HP_MAX_SPATIAL;
    for (int i = 0; i < s.sp.n; i++) s.sp.rows[i] = s.sp.cols[i] = 65536;
    s.cut.n = HP_MAX_STAGES;
    for (int i = 0; i < s.cut.n; i++) s.cut.units[i] = 65536;
    char text[HP_STRATEGY_TEXT];
    hp_error err;
    assert_in_range(strlen(hp_strategy_text(&s, text)), 2000, HP_STRATEGY_TEXT - 2);
    assert_non_null(strstr(text, ",fuse=9223372036854775807"));
    char *fuse = strstr(text, ",fuse=");
    strcpy(fuse, ",fuse=1"); /* bytes are read as a double */
    assert_int_equal(hp_strategy_parse(text, &back, &err), HP_OK);
    s.fuse_bytes = 1;
    assert_true(hp_strategy_equal(&s, &back));
    assert_int_equal(hp_strategy_ranks(&s), INT32_MAX);
    assert_int_equal(hp_strategy_devices(&s), INT32_MAX);
    assert_true(hp_strategy_batch(&s, 1) > 0);
}

/* --- legality --- */

/* Follows the fixes to a legal strategy; returns their number. */
static int repair(hp_question q, const hp_graph *g) {
    char before[HP_STRATEGY_TEXT];
    hp_reject why;
    for (int steps = 0; steps < 20; steps++) {
        if (hp_strategy_legal(&q.s, g, q.batch, q.n_devices, &why)) {
            assert_int_equal(why.code, HP_FEASIBLE);
            return steps;
        }
        assert_true(why.code && why.limit[0] && why.fix[0]);
        assert_true(strlen(why.limit) < sizeof why.limit - 1 && strlen(why.fix) < sizeof why.fix - 1);
        if (hp_change_apply(&q, why.fix, NULL) != HP_OK) fail_msg("'%s' is no fix", why.fix);
    }
    fail_msg("%s: no end: %s: %s", hp_strategy_text(&q.s, before), why.limit, why.fix);
    return -1;
}

static void refusals_name_the_limit_and_a_fix_that_works(void **state) {
    (void)state;
    static const struct {
        const char *text, *code, *fix;
        int batch, devices;
    } bad[] = {
        {"dp=3", "E-BATCH", "--batch 66", 64, 0},
        {"stages=2,micro=5", "E-BATCH", "--batch 65", 64, 0},
        {"dp=4,stages=4", "E-GPUS", "--gpus 16", 64, 8},
        {"stages=20", "E-STAGES", NULL, 64, 0},
        {"stages=2,cut=1:1", "E-CUT", "cut=balanced", 64, 0},
        {"cut=1:1", "E-CUT", "cut=balanced", 64, 0},
        {"dp=2,cut=2:3:5", "E-CUT", "stages=3", 64, 0},
        {"stages=2,cut=1:1:1", "E-CUT", NULL, 64, 0},
        {"stages=2,micro=4,sched=lp", "E-SCHED", "sched=gpipe", 64, 0},
        {"stages=2,chunks=2,micro=3", "E-SCHED", "micro=4", 63, 0},
        {"stages=2,micro=4,sched=interleaved", "E-SCHED", "sched=1f1b", 64, 0},
        {"stages=2,micro=4,sched=zb,recompute=full", "E-SCHED", "recompute=none", 64, 0},
        {"sp=2x2:2x1", "E-SP", "stages=2", 64, 0},
        {"stages=3,sp=2x2,tail=shared", "E-TAIL", "stages=2", 64, 0},
        {"sp=2x2,tail=shared", "E-TAIL", "stages=2", 64, 0},
        {"stages=2,tail=shared", "E-TAIL", "tail=own", 64, 0},
        {"stages=2,sp=2x2,tail=shared,ldp=2", "E-TAIL", "ldp=1", 64, 0},
        {"sp=2x2,ldp=2", "E-TAIL", "ldp=1", 64, 0},
        {"stages=2,sp=2x2,ldp=3", "E-BATCH", "--batch 66", 64, 0},
        {"stages=2,sp=3x1,tail=shared", "E-BATCH", "--batch 66", 64, 0},
        {"stages=3,gems=3", "E-GEMS", "gems=4", 64, 0},
        {"stages=2,sched=gpipe,gems=2", "E-GEMS", "gems=1", 64, 0},
        {"stages=2,chunks=2,sched=gems", "E-SCHED", "chunks=1", 64, 0},
        {"stages=3,gems=6", "E-BATCH", "--batch 66", 64, 0},
        {"dp=3,clients=2", "E-BATCH", "--batch 66", 64, 0},
        {"cp=1000", "E-CP", "cp=512", 64, 0},
        {"dp=65536,clients=2", "E-GPUS", "dp=32768", 64, 0},
        {"sp=300x300", "E-GPUS", "sp=1x1", 64, 0},
        {"sp=65536x65536,dp=65536,cp=65536", "E-GPUS", "dp=1", 64, 0},
    };
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hp_question q = {.batch = bad[i].batch, .n_devices = bad[i].devices};
        hp_reject why;
        assert_int_equal(hp_strategy_parse(bad[i].text, &q.s, &err), HP_OK);
        assert_false(hp_strategy_legal(&q.s, g, q.batch, q.n_devices, NULL));
        assert_false(hp_strategy_legal(&q.s, g, q.batch, q.n_devices, &why));
        assert_string_equal(hp_reject_text(why.code), bad[i].code);
        if (bad[i].fix) assert_string_equal(why.fix, bad[i].fix);
        assert_true(repair(q, g) > 0);
    }
    hp_arena_free(arena);
}

/* Everything a user may try is legal, or becomes legal by following one fix after another. */
static void fixes_lead_to_a_legal_strategy(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_graph *big = NULL, *tiny = random_net(arena, 5, 0);
    assert_int_equal(hp_net_build(arena, "resnet101", 64, 64, 10, &big, &err), HP_OK);
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        dice d = {seed, 0};
        const hp_question q = {wild_strategy(&d), roll(&d, 1, 100), coin(&d) ? roll(&d, 1, 100) : 0};
        repair(q, seed % 4 ? big : tiny);
    }
    hp_arena_free(arena);
}

/* Details that a string omits do not affect the verdict. */
static void legality_belongs_to_the_string(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = random_net(arena, 3, 8);
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        dice d = {seed, 1};
        hp_strategy s = wild_strategy(&d), back;
        if (s.stages == 1 && s.chunks == 1) s.cut.n = 0; /* strings have no cut with one part, programs do */
        char text[HP_STRATEGY_TEXT];
        hp_error err;
        hp_reject x = {0}, y = {0};
        assert_int_equal(hp_strategy_parse(hp_strategy_text(&s, text), &back, &err), HP_OK);
        const int64_t batch = hp_strategy_batch(&s, roll(&d, 1, 50));
        assert_int_equal(hp_strategy_legal(&s, g, batch, 0, &x), hp_strategy_legal(&back, g, batch, 0, &y));
        assert_string_equal(x.limit, y.limit);
    }
    hp_arena_free(arena);
}

/* The smallest legal multiple, however the batch is sliced. */
static void the_default_batch_is_the_smallest_legal_one(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (uint64_t seed = 1; seed <= 300; seed++) {
        dice d = {seed, 2};
        const hp_graph *g = random_net(arena, seed % 7, 8);
        const hp_strategy s = random_strategy_of(&d, g, roll(&d, 1, 12), 200, DRAW_ALL);
        const int64_t least = roll(&d, 1, 200), batch = hp_strategy_batch(&s, least);
        assert_true(batch >= least && hp_strategy_legal(&s, g, batch, 0, NULL));
        for (int64_t b = least; b < batch; b++) assert_false(hp_strategy_legal(&s, g, b, 0, NULL));
    }
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printing_and_parsing_are_inverse),
        cmocka_unit_test(strings_are_canonical),
        cmocka_unit_test(bad_strings_are_refused),
        cmocka_unit_test(the_longest_strategy_has_room),
        cmocka_unit_test(refusals_name_the_limit_and_a_fix_that_works),
        cmocka_unit_test(fixes_lead_to_a_legal_strategy),
        cmocka_unit_test(legality_belongs_to_the_string),
        cmocka_unit_test(the_default_batch_is_the_smallest_legal_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
