/* test_shrink.c - a strategy on fewer devices uses no more than there are, splits the batch into the same
 * groups, is legal and fits, over random networks and strategies. tests/laws/test_resume.c has the law that
 * it trains alike. */
#include "networks/nets/nets.h"
#include "sim/shrink/shrink.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/sim/random_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 256 };

static int64_t groups_of(const hp_strategy *s) {
    return (int64_t)s->micro * s->gems * (s->bn == HP_BN_ALL ? 1 : s->dp * s->clients);
}

/* For a random strategy, on a random number of devices. */
static void must_list(uint64_t seed) {
    world w = random_world(seed);
    dice d = {seed, 9300};
    const int n_devices = roll(&d, 1, 26);
    hp_strategy *list = HP_NEW(w.arena, hp_strategy, MOST);
    const int n = hp_strategy_fewer(&w.s, n_devices, list, MOST);
    char from[HP_STRATEGY_TEXT], to[HP_STRATEGY_TEXT];
    bool one = false;
    hp_strategy_text(&w.s, from);
    for (int i = 0; i < n; i++) {
        if (hp_strategy_ranks(&list[i]) > n_devices)
            fail_msg("seed %d: %s on %d: %s", (int)seed, from, n_devices, hp_strategy_text(&list[i], to));
        assert_int_equal(groups_of(&list[i]), groups_of(&w.s));
        one |= hp_strategy_ranks(&list[i]) == 1;
    }
    assert_true(one || n == MOST);
    if (hp_strategy_ranks(&w.s) <= n_devices && w.s.clients == 1 && !hp_strategy_equal(&list[0], &w.s))
        fail_msg("seed %d: %s on %d begins with %s", (int)seed, from, n_devices,
                 hp_strategy_text(&list[0], to));
    hp_arena_free(w.arena);
}

static void lists_are_on_the_devices_with_the_same_groups(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) must_list(seed);
    must_list(1532); /* tiles that collapse beside slices */
}

/* A replica loses no kind of parallelism needlessly: two ranks are enough for one kind, whichever it is. */
static void a_kind_stays_while_there_are_ranks_for_it(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        int n_devices;
    } cases[] = {
        {"dp=16,stages=2", "stages=2,micro=16", 2},
        {"dp=16,stages=2", "dp=2,stages=2,micro=8", 5},
        {"dp=64", "dp=2,micro=32", 2},
        {"dp=64,micro=2", "dp=1,micro=128", 1},
        {"dp=4,stages=8,micro=8,sched=1f1b", "stages=4,micro=32,sched=1f1b", 4},
        {"stages=4,chunks=2,micro=4,sched=interleaved", "stages=2,chunks=2,micro=4,sched=interleaved", 2},
        {"stages=4,sched=gems", "stages=2,sched=gems", 2},
        {"stages=4,sched=gems,micro=3", "dp=1,micro=6", 1},
        {"sp=4x4", "sp=2x2", 4},
        {"sp=1x3,cols=2:1:1", "sp=1x2", 2},
        {"stages=2,sp=2x2,tail=shared", "stages=2,sp=2x1,tail=shared", 2},
        {"dp=2,stages=4,sp=2x2:1x2,ldp=2", "stages=2,sp=2x2,ldp=2,micro=2", 6},
        {"dp=4,cp=2", "cp=2,micro=4", 3},
        {"tp=4", "tp=2", 2},
        {"tp=4", "dp=1", 1},
        {"dp=2,tp=3,seq=4", "tp=3,seq=2,micro=2", 7},
        {"seq=2:a2a", "dp=1", 1},
        {"dp=8,bn=all,micro=2", "dp=2,micro=2,bn=all", 2},
        {"dp=4,clients=2", "dp=4,micro=2", 4},
        {"dp=8,sync=ps:4", "dp=2,sync=ps:2,micro=4", 2},
        {"dp=2,stages=2,place=3:2:1:0", "stages=2,micro=2", 2},
    };
    hp_arena *arena = hp_arena_new();
    hp_strategy *list = HP_NEW(arena, hp_strategy, MOST), from, to;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[HP_STRATEGY_TEXT];
        hp_error err = {HP_OK, ""};
        if (hp_strategy_parse(cases[i].from, &from, &err) != HP_OK ||
            hp_strategy_parse(cases[i].to, &to, &err) != HP_OK)
            fail_msg("%s", err.text);
        assert_true(hp_strategy_fewer(&from, cases[i].n_devices, list, MOST) > 0);
        if (!hp_strategy_equal(&list[0], &to))
            fail_msg("%s on %d: %s, not %s", cases[i].from, cases[i].n_devices,
                     hp_strategy_text(&list[0], text), cases[i].to);
    }
    hp_arena_free(arena);
}

/* A set-up on devices with this much memory. */
typedef struct setting {
    hp_machine machine;
    hp_cost_table *table;
    hp_eval_setup setup;
} setting;

static void make_setting(hp_arena *arena, const hp_graph *g, int64_t batch, setting *s) {
    hp_error err = {HP_OK, ""};
    if (hp_machine_load("thesis-a100", &s->machine, &err) != HP_OK ||
        hp_cost_load(arena, NULL, &s->machine, &s->table, &err) != HP_OK)
        fail_msg("%s", err.text);
    s->setup = (hp_eval_setup){.graph = g,
                               .machine = &s->machine,
                               .table = s->table,
                               .mode = HP_MODE_TRAIN,
                               .dtype = HP_F32,
                               .batch = batch,
                               .straggler_rank = -1};
}

/* For a random strategy, on a random number of devices with little memory: what is found is legal and
 * fits, or the nearest one is named with what it fails on. Returns whether one is found. */
static bool must_fit(uint64_t seed) {
    world w = random_world(seed);
    dice d = {seed, 9400};
    setting at;
    hp_evaluation got;
    hp_error err = {HP_OK, ""};
    make_setting(w.arena, w.g, hp_strategy_batch(&w.s, groups_of(&w.s)), &at);
    at.machine.device.memory_bytes = 1 << 16 << roll(&d, 0, 9);
    hp_eval *e = hp_eval_new(w.arena, &at.setup);
    hp_question q = hp_eval_question(e, &w.s, roll(&d, 1, 6));
    const hp_status s = hp_search_shrink(e, &q, &q.s, &err);
    if (s == HP_OK) {
        assert_int_equal(hp_question_evaluate(e, &q, HP_EVAL_FITS, w.arena, &got, &err), HP_OK);
        if (got.reject.code) fail_msg("seed %d: %s", (int)seed, got.reject.limit);
    } else {
        assert_int_equal(s, HP_EPLAN);
        if (strncmp(err.text, "nothing like it fits on ", 24) != 0 || !strstr(err.text, ": E-"))
            fail_msg("seed %d: %s", (int)seed, err.text);
    }
    hp_arena_free(w.arena);
    return s == HP_OK;
}

static void what_is_found_is_legal_and_fits(void **state) {
    (void)state;
    int found = 0, refused = 0;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        const bool fits = must_fit(seed);
        found += fits;
        refused += !fits;
    }
    assert_true(found >= (int)law_cases(60) / 3);
    assert_true(refused >= (int)law_cases(60) / 20);
    must_fit(2639); /* refused once its buffers are placed */
}

/* If memory is short, recomputation comes before smaller groups of samples; if nothing fits, that is
 * reported. */
static void less_memory_recomputes(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err = {HP_OK, ""};
    setting at;
    hp_evaluation got;
    hp_strategy asked;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    assert_int_equal(hp_strategy_parse("dp=4", &asked, &err), HP_OK);
    make_setting(arena, g, 64, &at);
    hp_eval *e = hp_eval_new(arena, &at.setup);
    hp_question q = hp_eval_question(e, &asked, 1);
    assert_int_equal(hp_search_shrink(e, &q, &q.s, &err), HP_OK);
    assert_int_equal(q.s.micro, 4);
    assert_int_equal(q.s.recompute, HP_RECOMPUTE_NONE);
    assert_int_equal(hp_question_evaluate(e, &q, HP_EVAL_FITS, arena, &got, &err), HP_OK);

    at.machine.device.memory_bytes = got.figures.memory_bytes - 1;
    e = hp_eval_new(arena, &at.setup);
    q.s = asked;
    assert_int_equal(hp_search_shrink(e, &q, &q.s, &err), HP_OK);
    assert_int_equal(q.s.micro, 4);
    assert_int_equal(q.s.recompute, HP_RECOMPUTE_BOUNDARY);

    at.machine.device.memory_bytes = 1000000; /* weights alone are 45 MB */
    e = hp_eval_new(arena, &at.setup);
    q.s = asked;
    assert_int_equal(hp_search_shrink(e, &q, &q.s, &err), HP_EPLAN);
    assert_non_null(strstr(err.text, "has 1.00 MB"));
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_on_the_devices_with_the_same_groups),
        cmocka_unit_test(a_kind_stays_while_there_are_ranks_for_it),
        cmocka_unit_test(what_is_found_is_legal_and_fits),
        cmocka_unit_test(less_memory_recomputes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
