/* test_family.c - the kind of parallelism that a strategy represents. */
#include "plan/strategy/family.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void strategies_belong_to_the_family_that_marks_them(void **state) {
    (void)state;
    static const struct {
        const char *strategy, *family;
        bool plain;
    } cases[] = {
        {"dp=1", "data", true},
        {"dp=128", "data", true},
        {"dp=4,micro=2", "data", false},
        {"dp=4,recompute=full", "data", false},
        {"stages=4", "layer", false},
        {"dp=2,stages=4,micro=8,sched=1f1b", "pipeline", false},
        {"stages=2,sched=gems", "GEMS", false},
        {"sp=2x2", "spatial", false},
        {"sp=2x2,micro=4", "spatial", false},
        {"stages=2,sp=2x2", "spatial+layer", false},
        {"stages=2,sp=2x2,tail=shared,micro=4", "spatial+layer", false}, /* one position: no pipeline */
        {"stages=3,sp=2x2,micro=4", "spatial+pipeline", false},
        {"stages=3,sp=4x1,sched=gems,gems=4", "spatial+GEMS", false},
        {"dp=2,cp=2", "channel", false},
        {"dp=2,bp=2", "branch", false},
        {"dp=2,tp=2", "tensor", false},
        {"seq=2:a2a", "sequence", false},
        {"dp=2,clients=2", "clients", false},
        {"strips=4", "strips", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_strategy s;
        hp_error err;
        assert_int_equal(hp_strategy_parse(cases[i].strategy, &s, &err), HP_OK);
        assert_string_equal(hp_family_name(hp_family_of(&s)), cases[i].family);
        assert_int_equal(hp_strategy_is_plain(&s), cases[i].plain);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(strategies_belong_to_the_family_that_marks_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
