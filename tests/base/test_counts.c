/* test_counts.c - lists of counts: how dots expand, and which texts are rejected. */
#include "base/counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROOM = 32 };

static void dots_go_on_as_the_numbers_do(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int n, count[16];
    } rows[] = {
        {"8", 1, {8}},
        {"1,2,4", 3, {1, 2, 4}},
        {"4,2,1", 3, {4, 2, 1}},
        {"1,2,4,...,1536", 12, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1536}},
        {"1,2,4,\xe2\x80\xa6,16", 5, {1, 2, 4, 8, 16}},
        {"1,2,...,8", 4, {1, 2, 4, 8}},
        {"6,...,48", 4, {6, 12, 24, 48}},
        {"1,2,3,...,6", 6, {1, 2, 3, 4, 5, 6}},
        {"8,16,24,...,50", 7, {8, 16, 24, 32, 40, 48, 50}},
        {"1,3,9,...,100", 6, {1, 3, 9, 27, 81, 100}},
        {"1,4,...,12", 5, {1, 4, 7, 10, 12}},
        {"4,6,9,...,15", 5, {4, 6, 9, 12, 15}},
        {"1,2,...,4,6", 4, {1, 2, 4, 6}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int count[ROOM], n = 0;
        hp_error err = {HP_OK, ""};
        if (hp_parse_counts(rows[i].text, "--gpus", ROOM, count, &n, &err) != HP_OK) fail_msg("%s", err.text);
        assert_int_equal(n, rows[i].n);
        for (int k = 0; k < n; k++) assert_int_equal(count[k], rows[i].count[k]);
    }
}

static void what_is_no_list_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",        ",",       "0",           "x",
                                      "...,8",   "1,2,...", "1,...,...,8", "8,4,...,16",
                                      "4,...,4", "8,...,4", "2,2,...,8",   "1,2,3,...,40"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int count[ROOM], n = 0;
        hp_error err = {HP_OK, ""};
        if (hp_parse_counts(bad[i], "--gpus", ROOM, count, &n, &err) != HP_EUSAGE || !err.text[0])
            fail_msg("'%s' is taken", bad[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dots_go_on_as_the_numbers_do),
        cmocka_unit_test(what_is_no_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
