/* test_axes.c - the list of keys: every row is complete, its example parses, and defaults are left out. */
#include "plan/strategy/strategy_axis.h"
#include "tests/support/plan/wild_strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[HP_STRATEGY_AXES] = {
#define AXIS(key, ...) #key,
#include "plan/strategy/axes.def"
};

static bool is_planned(const hp_axis *a) {
    return strstr(a->means, "(planned)") != NULL;
}

static void every_key_says_what_it_has_to(void **state) {
    (void)state;
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        assert_string_equal(a->name, names[i]);
        assert_non_null(a->parse);
        assert_non_null(a->print);
        assert_non_null(a->omits);
        assert_int_equal(strncmp(a->example, a->name, strlen(a->name)), 0);
        assert_int_equal(a->example[strlen(a->name)], '=');
        assert_true(a->usual[0] && a->means[0]);
    }
}

/* What the example says is not the default: it is written, and read again. */
static void examples_are_examples(void **state) {
    (void)state;
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        hp_strategy s = hp_strategy_default(), again = s;
        const char *value = a->example + strlen(a->name) + 1;
        char text[HP_STRATEGY_TEXT] = "";
        hp_error err;
        if (is_planned(a)) {
            assert_int_equal(a->parse(a, value, &s, &err), HP_EUNAVAIL);
            continue;
        }
        assert_int_equal(a->parse(a, value, &s, &err), HP_OK);
        assert_false(a->omits(a, &s));
        a->print(a, &s, text);
        assert_string_equal(text, value);
        assert_int_equal(a->parse(a, text, &again, &err), HP_OK);
        assert_memory_equal(&s, &again, sizeof s);
    }
}

/* A default is left out, and means the same where it is written. */
static void defaults_are_left_out(void **state) {
    (void)state;
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        const hp_strategy none = hp_strategy_default();
        hp_strategy s = none;
        char text[HP_STRATEGY_TEXT] = "";
        hp_error err;
        assert_true(a->omits(a, &none));
        a->print(a, &none, text);
        assert_int_equal(a->parse(a, text, &s, &err), HP_OK);
        assert_memory_equal(&s, &none, sizeof s);
    }
}

static void settling_twice_is_settling_once(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        dice d = {seed, 0};
        const hp_strategy wild = wild_strategy(&d), once = hp_strategy_canonical(&wild),
                          twice = hp_strategy_canonical(&once);
        assert_memory_equal(&once, &twice, sizeof once);
    }
}

/* The words of others name strategies that can be read, once numbers stand for their letters. */
static void words_of_others_are_strategies(void **state) {
    (void)state;
    int n = 0;
    for (int i = 0; i < HP_STRATEGY_AXES; i++)
        for (int k = 0; k < HP_AXIS_ALIASES && hp_strategy_axes[i]->alias[k].word; k++, n++) {
            const hp_axis_alias *alias = &hp_strategy_axes[i]->alias[k];
            char text[HP_STRATEGY_TEXT];
            hp_strategy s;
            hp_error err;
            snprintf(text, sizeof text, "%s", alias->text);
            for (char *c = text; *c; c++)
                if (*c == 'N' || *c == 'M') *c = '2';
            assert_int_equal(hp_strategy_parse(text, &s, &err), HP_OK);
            assert_string_equal(hp_strategy_called(alias->word), alias->text);
        }
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_says_what_it_has_to),  cmocka_unit_test(examples_are_examples),
        cmocka_unit_test(defaults_are_left_out),          cmocka_unit_test(settling_twice_is_settling_once),
        cmocka_unit_test(words_of_others_are_strategies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
