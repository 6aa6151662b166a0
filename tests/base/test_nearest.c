/* test_nearest.c - mistyped names lead to the intended one, and nonsense to none. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {"simulate", "run", "nodes", "devices_per_node", "device"};
enum { N = sizeof names / sizeof *names };

/* A name with one letter omitted, doubled or replaced is still nearest to itself. */
static void one_slip_leads_to_the_name(void **state) {
    (void)state;
    for (int i = 0; i < N; i++) {
        const size_t n = strlen(names[i]);
        assert_string_equal(hp_nearest(names[i], names, N), names[i]);
        for (size_t k = 0; k < n; k++) {
            char less[32] = "", more[32] = "", other[32] = "";
            memcpy(less, names[i], k);
            memcpy(less + k, names[i] + k + 1, n - k - 1);
            memcpy(more, names[i], k);
            memcpy(more + k + 1, names[i] + k, n - k);
            more[k] = names[i][k];
            memcpy(other, names[i], n);
            other[k] = '#';
            assert_string_equal(hp_nearest(less, names, N), names[i]);
            assert_string_equal(hp_nearest(more, names, N), names[i]);
            assert_string_equal(hp_nearest(other, names, N), names[i]);
        }
    }
}

static void nonsense_leads_nowhere(void **state) {
    (void)state;
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    static const char *const words[] = {"", "zzzzzzzz", "evaluation", "-"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) assert_null(hp_nearest(words[i], names, N));
    assert_null(hp_nearest(longest, names, N));
    assert_null(hp_nearest("run", names, 0));
    /* a name of a thousand letters among them does no harm */
    const char *const two[] = {longest, "run"};
    assert_string_equal(hp_nearest("rum", two, 2), "run");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_slip_leads_to_the_name),
                                       cmocka_unit_test(nonsense_leads_nowhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
