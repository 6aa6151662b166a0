/* A program's output is captured to its end, whatever it leaves behind. */
#include "cli/launch/launch_capture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static bool shell(const char *script, char *out, size_t size) {
    return cli_capture((const char *const[]){"sh", "-c", script, NULL}, 60, out, size);
}

static void a_process_that_is_left_behind_is_not_waited_for(void **state) {
    (void)state;
    char said[64];
    assert_true(shell("sleep 600 & echo $!", said, sizeof said)); /* it holds the pipe open */
    const pid_t left = atoi(said);
    assert_true(left > 1 && kill(left, SIGKILL) == 0);
}

static void output_beyond_the_buffer_is_dropped(void **state) {
    (void)state;
    char said[8];
    assert_true(shell("i=0; while [ $i -lt 20000 ]; do echo 12345678; i=$((i+1)); done", said, sizeof said));
    assert_string_equal(said, "1234567");
}

static void failures_are_told(void **state) {
    (void)state;
    char said[8];
    assert_false(shell("exit 3", said, sizeof said));
    assert_false(cli_capture((const char *const[]){"/nonexistent/program", NULL}, 60, said, sizeof said));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_is_left_behind_is_not_waited_for),
        cmocka_unit_test(output_beyond_the_buffer_is_dropped),
        cmocka_unit_test(failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
