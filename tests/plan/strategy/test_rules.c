/* test_rules.c - MPI4DL's verdicts, according to its code (v0.6) and its authors' thesis. */
#include "plan/strategy/rules_mpi4dl.h"
#include "plan/strategy/change.h"
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

static hp_graph *net(hp_arena *arena, const char *name, int h, int w) {
    hp_graph *g = NULL;
    hp_error err;
    if (hp_net_build(arena, name, h, w, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    return g;
}

/* Asks both; hplan's rules always accept here. */
static bool mpi4dl_allows(const char *text, const hp_graph *g, hp_reject *why) {
    const hp_strategy s = parsed(text);
    const int64_t batch = hp_strategy_batch(&s, 1);
    if (!hp_rules_allow(HP_RULES_HPLAN, &s, g, batch, 0, why)) fail_msg("%s: %s", text, why->limit);
    return hp_rules_allow(HP_RULES_MPI4DL, &s, g, batch, 0, why);
}

/* Thesis, figure 3.3: 4 tiles and one more stage, mirrored on 5 ranks. Figure 3.4: 8 ranks. */
static void mirrored_tiles_need_ranks_of_their_own(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net(arena, "resnet-v2-110", 1024, 1024);
    hp_reject why;
    assert_false(mpi4dl_allows("stages=2,sp=2x2,sched=gems", g, &why));
    assert_int_equal(why.code, HP_REJECT_MPI4DL);
    assert_string_equal(why.limit,
                        "ranks 1-3 of 5 would owe halos to both replicas: 4 tiles twice need 8 ranks");
    assert_string_equal(why.fix, "stages=5");
    assert_true(mpi4dl_allows("stages=5,sp=2x2,sched=gems", g, &why));
    assert_false(mpi4dl_allows("stages=4,sp=2x2,sched=gems", g, &why));
    assert_string_equal(why.limit,
                        "rank 3 of 7 would owe halos to both replicas: 4 tiles twice need 8 ranks");
    assert_true(mpi4dl_allows("stages=2,sp=2x2", g, &why));
    hp_arena_free(arena);
}

/* Counts the ranks that hold tiles of both replicas one by one: the check is that there are none, for one
 * spatial stage. */
static void the_mirror_check_is_about_shared_ranks(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net(arena, "resnet-v2-110", 1024, 1024);
    for (int tiles = 1; tiles <= 16; tiles *= 2) {
        for (int stages = 2; stages <= 20; stages++) {
            for (int ldp = 1; ldp <= 4; ldp++) {
                char text[64];
                snprintf(text, sizeof text, "stages=%d,sp=%dx1,ldp=%d,sched=gems", stages, tiles, ldp);
                const int ranks = tiles + (stages - 1) * ldp;
                int shared = 0;
                for (int r = 0; r < ranks; r++) shared += r < tiles && ranks - 1 - r < tiles;
                hp_reject why;
                assert_int_equal(mpi4dl_allows(text, g, &why), shared == 0);
            }
        }
    }
    hp_arena_free(arena);
}

/* Hy-Fi's 12 GPUs pass although ranks 4-7 are in both replicas' second partition: only the first is
 * tested. */
static void published_layouts_pass(void **state) {
    (void)state;
    static const char *const good[] = {
        "stages=6,sp=2x2:2x2,sched=gems",
        "stages=3,sp=2x2:2x2,sched=gems",
        "dp=2,stages=6,sp=2x2:2x2,sched=gems,gems=4",
        "stages=3,sp=2x2:2x2",
        "stages=2,sp=2x2,ldp=2,micro=2",
        "stages=2,sp=1x4,halo=2",
        "stages=4,micro=8",
        "stages=4,sched=gems,micro=2",
        "stages=5,sched=gems",
        "dp=4,stages=2",
        "dp=1",
    };
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net(arena, "resnet-v2-110", 2048, 2048);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        hp_reject why;
        if (!mpi4dl_allows(good[i], g, &why)) fail_msg("%s: %s", good[i], why.limit);
    }
    hp_arena_free(arena);
}

static void its_limits_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *limit, *fix;
    } bad[] = {
        {"sp=2x2", "last stage", "stages=2"},
        {"stages=2,sp=2x2:2x2", "last stage", NULL},
        {"stages=2,sp=2x4", "squares or strips", "sp=8x1"},
        {"stages=3,sp=2x2:2x1", "alike", "sp=2x2"},
        {"stages=3,sp=2x2:4x1", "alike", "sp=2x2"},
        {"stages=2,sp=1x3", "1024/3 = 341", "sp=1x2"},
        {"stages=2,sp=5x1", "1024/5 = 204", "sp=4x1"},
        {"stages=2,sp=3x3", "1024/3 = 341", "sp=2x2"},
        {"stages=2,sp=2x2,tail=shared", "tail", "tail=own"},
        {"cp=2", "channel", "cp=1"},
        {"clients=2", "processes per device", "clients=1"},
        {"stages=2,micro=2,recompute=full", "recomputation", "recompute=none"},
        {"stages=2,micro=2,sched=1f1b", "forward pass", "sched=gpipe"},
        {"stages=2,micro=2,sched=zb", "forward pass", "sched=gpipe"},
        {"stages=2,chunks=2,micro=2", "interleaved", "chunks=1,sched=gpipe"},
        {"dp=2,bn=all", "batch norm", "bn=local"},
    };
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net(arena, "resnet-v2-110", 1024, 1024);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hp_reject why;
        assert_false(mpi4dl_allows(bad[i].text, g, &why));
        if (!strstr(why.limit, bad[i].limit) || (bad[i].fix && strcmp(why.fix, bad[i].fix) != 0))
            fail_msg("%s: %s; %s", bad[i].text, why.limit, why.fix);
    }
    hp_arena_free(arena);
}

/* `int(side / parts)` is tested, so some odd counts pass, and so does a tile without pixels. */
static void sides_are_rounded_down_before_the_test(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net(arena, "resnet-v2-110", 1024, 1024);
    static const struct {
        const char *text;
        bool allowed;
    } rows[] = {{"stages=2,sp=127x1", true},
                {"stages=2,sp=126x1", true},
                {"stages=2,sp=129x1", false},
                {"stages=2,sp=2048x1", true},
                {"stages=2,sp=1x64", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hp_reject why;
        assert_int_equal(mpi4dl_allows(rows[i].text, g, &why), rows[i].allowed);
    }
    hp_arena_free(arena);
}

static void images_are_square_powers_of_two(void **state) {
    (void)state;
    static const struct {
        const char *net, *text, *fix; /* NULL: fine */
        int h, w;
    } rows[] = {
        {"resnet-v2-110", "stages=2,sp=2x2", NULL, 256, 256},
        {"resnet-v2-110", "stages=2,sp=2x2", "--image 96", 96, 160},
        {"resnet-v2-110", "stages=2,sp=2x2", "--image 64", 96, 96},
        {"resnet-v2-110", "stages=2", NULL, 96, 96},
        {"resnet-v2-110", "stages=2", "--image 96", 101, 101},
        {"resnet18", "stages=2,sp=2x2", "--image 64", 67, 67},
        {"resnet18", "stages=2", NULL, 67, 67},
    };
    hp_arena *arena = hp_arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const hp_graph *g = net(arena, rows[i].net, rows[i].h, rows[i].w);
        hp_reject why;
        assert_int_equal(mpi4dl_allows(rows[i].text, g, &why), rows[i].fix == NULL);
        if (rows[i].fix) assert_string_equal(why.fix, rows[i].fix);
    }
    hp_arena_free(arena);
}

/* Shapes scale from 512 pixels; the first spatial stage holds more than the stem. */
static void amoebanets_start_beyond_their_stem(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net(arena, "amoebanetd:18,416", 1024, 1024);
    assert_int_equal(g->n_unit, 24); /* MPI4DL's layers */
    hp_reject why;
    assert_true(mpi4dl_allows("stages=2,sp=2x2", g, &why));
    assert_true(mpi4dl_allows("stages=3,sp=2x2,cut=4:10:10", g, &why));
    assert_false(mpi4dl_allows("stages=3,sp=2x2,cut=3:11:10", g, &why));
    assert_true(mpi4dl_allows("stages=3,cut=3:11:10", g, &why));
    assert_true(mpi4dl_allows("stages=6,sp=2x2", g, &why));
    assert_false(mpi4dl_allows("stages=7,sp=2x2", g, &why));
    assert_string_equal(why.fix, "stages=6");
    assert_false(mpi4dl_allows("stages=2,sp=2x2", net(arena, "amoebanetd:18,416", 256, 256), &why));
    assert_string_equal(why.fix, "--image 512");
    hp_arena_free(arena);
}

/* Anything that hplan runs leads to something that MPI4DL runs, by following one fix after another. */
static void fixes_lead_to_what_mpi4dl_runs(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net(arena, "resnet-v2-110", 1024, 1024);
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        dice d = {seed, 0};
        const int groups = roll(&d, 1, 12);
        hp_question q = {.s = random_strategy_of(&d, g, groups, 200, DRAW_ALL)};
        hp_reject why;
        int steps = 0;
        for (; steps < 20; steps++) {
            q.batch = hp_strategy_batch(&q.s, groups);
            if (hp_rules_allow(HP_RULES_MPI4DL, &q.s, g, q.batch, 0, &why)) break;
            if (hp_change_apply(&q, why.fix, NULL) != HP_OK) fail_msg("'%s' is no fix", why.fix);
        }
        if (steps == 20) fail_msg("no end: %s: %s", why.limit, why.fix);
    }
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mirrored_tiles_need_ranks_of_their_own),
        cmocka_unit_test(the_mirror_check_is_about_shared_ranks),
        cmocka_unit_test(published_layouts_pass),
        cmocka_unit_test(its_limits_are_named),
        cmocka_unit_test(sides_are_rounded_down_before_the_test),
        cmocka_unit_test(images_are_square_powers_of_two),
        cmocka_unit_test(amoebanets_start_beyond_their_stem),
        cmocka_unit_test(fixes_lead_to_what_mpi4dl_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
