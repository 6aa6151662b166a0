/* test_template.c - a star becomes the number that occupies all devices, if there is one. */
#include "plan/strategy/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The oracle: every number, one by one. */
static void the_star_fills_all_devices_or_none_does(void **state) {
    (void)state;
    static const char *const templates[] = {"dp=*",
                                            "dp=*,stages=2",
                                            "dp=3,stages=*",
                                            "stages=3,sp=*x2",
                                            "dp=*,clients=2",
                                            "stages=3,sp=2x2,ldp=*",
                                            "dp=2,cp=*",
                                            "stages=*,sp=2x1,dp=2",
                                            "dp=*,micro=4,prec=bf16"};
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        assert_int_equal(hp_template_check(templates[i], NULL), HP_OK);
        for (int devices = 1; devices <= 60; devices++) {
            hp_filled f;
            int exact = 0, below = 0;
            assert_int_equal(hp_template_fill(templates[i], devices, &f, NULL), HP_OK);
            for (int star = 1; star <= devices; star++) {
                char text[128];
                hp_strategy s;
                const char *at = strchr(templates[i], '*');
                snprintf(text, sizeof text, "%.*s%d%s", (int)(at - templates[i]), templates[i], star, at + 1);
                if (hp_strategy_parse(text, &s, NULL) != HP_OK) continue;
                if (hp_strategy_devices(&s) <= devices) below = star;
                if (hp_strategy_devices(&s) == devices) exact = star;
            }
            assert_int_equal(f.exact, exact > 0);
            assert_int_equal(f.star, below);
            if (f.star) assert_true(hp_strategy_devices(&f.s) <= devices);
            if (!f.exact && f.has_above) assert_true(hp_strategy_devices(&f.above) > devices);
        }
    }
}

static void a_plain_strategy_is_itself(void **state) {
    (void)state;
    hp_filled f;
    assert_int_equal(hp_template_fill("dp=2,stages=2", 4, &f, NULL), HP_OK);
    assert_true(f.exact);
    assert_int_equal(hp_template_fill("dp=2,stages=2", 8, &f, NULL), HP_OK);
    assert_false(f.exact);
    assert_int_equal(hp_strategy_devices(&f.s), 4);
}

static void what_is_no_template_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"dp=*,stages=*", "micro=*", "halo=*", "dp=**",
                                      "what=*",        "prec=*",  "dp=x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hp_error err = {HP_OK, ""};
        if (hp_template_check(bad[i], &err) != HP_EUSAGE || !err.text[0]) fail_msg("'%s' is taken", bad[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_star_fills_all_devices_or_none_does),
        cmocka_unit_test(a_plain_strategy_is_itself),
        cmocka_unit_test(what_is_no_template_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
