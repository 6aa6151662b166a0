/* test_change.c - a change turns one question into another; written and read back, it still does. */
#include "plan/strategy/change.h"
#include "tests/support/plan/wild_strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static hp_strategy drawn(dice *d) {
    hp_strategy s = wild_strategy(d);
    s.sp.n = s.sp.n > 3 ? 3 : s.sp.n;
    s.bp = roll(d, 1, 2);
    s.sp.overlap = roll(d, 0, 1);
    s.strips.n = roll(d, 1, 3);
    s.strips.deep = roll(d, 0, 2);
    s.prec = roll(d, 0, 3);
    s.fuse_bytes = roll(d, 1, 40) * INT64_C(1000000);
    draw_comm(d, &s);
    if (s.cut.n == 1) s.cut.n = 0; /* strings have no cut with one part */
    return s;
}

static hp_question question(dice *d) {
    return (hp_question){.s = drawn(d),
                         .batch = roll(d, 1, 3),
                         .n_devices = roll(d, 1, 3),
                         .image_h = roll(d, 10, 12),
                         .image_w = roll(d, 10, 12),
                         .infer = coin(d),
                         .device = &hp_devices[roll(d, 0, HP_DEVICES - 1)]};
}

static void a_change_leads_from_one_question_to_the_other(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        dice d = {seed, 0};
        hp_question a = question(&d);
        const hp_question b = question(&d);
        char change[2 * HP_STRATEGY_TEXT];
        hp_error err = {HP_OK, ""};
        assert_true(hp_change_text(&a, &b, change, sizeof change) >= 0);
        if (hp_change_apply(&a, change, &err) != HP_OK) fail_msg("%s: %s", change, err.text);
        char got[HP_STRATEGY_TEXT], want[HP_STRATEGY_TEXT];
        assert_string_equal(hp_strategy_text(&a.s, got), hp_strategy_text(&b.s, want));
        assert_true(a.batch == b.batch && a.n_devices == b.n_devices && a.infer == b.infer);
        assert_true(a.image_h == b.image_h && a.image_w == b.image_w && a.device == b.device);
        assert_int_equal(hp_change_text(&a, &b, change, sizeof change), 0);
        assert_string_equal(change, "");
    }
}

static void only_what_differs_is_named(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *change;
        int n;
    } rows[] = {
        {"dp=2", "dp=2,recompute=full", "recompute=full", 1},
        {"dp=2,recompute=full", "dp=2", "recompute=none", 1},
        {"stages=2,micro=4", "stages=2", "micro=1", 1},
        {"stages=2,sched=gems", "stages=2", "sched=lp", 1},
        {"stages=2,cut=3:4,micro=2", "stages=2,micro=2", "cut=balanced", 1},
        {"sp=2x2,halo=2", "dp=4", "dp=4,sp=none,halo=1", 3},
        {"comm=mpi", "dp=1", "comm=auto", 1},
        {"strips=4,deep=2", "strips=4", "deep=0", 1},
        {"dp=2", "micro=2,dp=2", "micro=2", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hp_strategy from, to;
        char change[HP_STRATEGY_TEXT];
        assert_int_equal(hp_strategy_parse(rows[i].from, &from, NULL), HP_OK);
        assert_int_equal(hp_strategy_parse(rows[i].to, &to, NULL), HP_OK);
        assert_int_equal(hp_strategy_change(&from, &to, change), rows[i].n);
        assert_string_equal(change, rows[i].change);
    }
}

static void what_is_no_change_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"--batch",  "--batch x",   "--seed 3", "--image 3x", "--mode fast",
                                      "--gpus 0", "--device no", "micro",    "micro=0",    "what=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hp_question q = {.s = hp_strategy_default()};
        hp_error err = {HP_OK, ""};
        if (hp_change_apply(&q, bad[i], &err) != HP_EUSAGE || !err.text[0]) fail_msg("'%s' is taken", bad[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_leads_from_one_question_to_the_other),
        cmocka_unit_test(only_what_differs_is_named),
        cmocka_unit_test(what_is_no_change_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
