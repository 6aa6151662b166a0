/* test_options.c - each option of `simulate` is read, into a place of its own. */
#include "cli/options/simulate.h"
#include "tests/support/words/words.h"

#include <string.h>

/* The first byte that parsing the option sets; -1: none. */
static int place_of(const struct argp_option *option) {
    static char word[] = "word";
    simulate_options o;
    unsigned char bytes[sizeof o];
    struct argp_state state = {.input = &o};
    memset(&o, 0, sizeof o);
    assert_int_equal(simulate_argp.parser(option->key, option->arg ? word : NULL, &state), 0);
    memcpy(bytes, &o, sizeof o);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i]) return (int)i;
    return -1;
}

static void each_option_has_a_place_of_its_own(void **state) {
    (void)state;
    const char *had[sizeof(simulate_options)] = {NULL};
    for (const struct argp_option *option = simulate_argp.options; option->name; option++) {
        if (!option->key) continue; /* an alias */
        const int at = place_of(option);
        if (at < 0) fail_msg("--%s sets nothing", option->name);
        const int field =
            at - at % (int)sizeof(char *) * (option->arg != NULL); /* a pointer may begin with zeros */
        if (had[field]) fail_msg("--%s sets what --%s does", option->name, had[field]);
        had[field] = option->name;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_has_a_place_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
