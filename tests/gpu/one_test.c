/* one_test.c - linked to a cmocka program: HPLAN_TEST_FILTER=PATTERN runs the tests of that name alone, so
 * that each has a process and a time limit of its own. What goes wrong on a GPU is wrong in its process from
 * then on: tests that come later would fail with the first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void choose_tests(void) {
    const char *pattern = getenv("HPLAN_TEST_FILTER");
    if (pattern) cmocka_set_test_filter(pattern);
}
