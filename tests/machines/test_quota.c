/* test_quota.c - quotas of CPU time: their syntax and the files written. Where control groups can be made, a
 * process gets its share and leaves no group behind. */
#include "machines/quota.h"
#include "tests/support/plan/tree.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void shares_are_of_each_rank_or_of_all(void **state) {
    (void)state;
    hp_error err;
    double got;
    assert_int_equal(hp_quota_parse("1:0.5:0.25", 1, 3, &got, &err), HP_OK);
    assert_true(got == 0.5);
    assert_int_equal(hp_quota_parse("1:0.5:0.25", 2, 3, &got, &err), HP_OK);
    assert_true(got == 0.25);
    assert_int_equal(hp_quota_parse("0.75", 2, 3, &got, &err), HP_OK);
    assert_true(got == 0.75);
    static const char *const WRONG[] = {"1:0.5", "1:2:3:4", "",       "1::1", "0:1:1",
                                        "a",     "0.5x",    "-1:1:1", "nan",  "1:1:1e9"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        hp_status any = HP_OK;
        for (int rank = 0; rank < 3; rank++)
            if (hp_quota_parse(WRONG[i], rank, 3, &got, &err) != HP_OK) any = err.code;
        assert_int_equal(any, HP_EUSAGE);
        assert_non_null(strstr(err.text, "--quota"));
    }
}

/* --- the files --- */

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A child that computes for a while under a quota. Returns its share of a processor in thousandths; -1: no
 * groups can be made here. */
static int share_under(double processors) {
    int out[2], thousandths = -2;
    assert_int_equal(pipe(out), 0);
    const pid_t child = fork();
    if (child == 0) {
        hp_quota q;
        hp_error err;
        if (hp_quota_join(&q, "", processors, &err) != HP_OK)
            thousandths = -1;
        else {
            const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
            while (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu < 0.2) {
            }
            thousandths = (int)(200 / (seconds(CLOCK_MONOTONIC) - wall));
            hp_quota_leave(&q);
        }
        const ssize_t n = write(out[1], &thousandths, sizeof thousandths);
        _exit(n == sizeof thousandths ? 0 : 1);
    }
    close(out[1]);
    assert_int_equal(read(out[0], &thousandths, sizeof thousandths), sizeof thousandths);
    close(out[0]);
    waitpid(child, NULL, 0);
    return thousandths;
}

/* Is there a group of that process? Others come and go beside this test. */
static bool has_group(pid_t owner) {
    char folder[HP_CGROUP_PATH], path[HP_CGROUP_PATH + 64];
    bool version_2;
    if (!hp_cgroup_cpu("", folder, &version_2)) return false;
    snprintf(path, sizeof path, "%s/hplan-%d", folder, (int)owner);
    return access(path, F_OK) == 0;
}

/* Never more than the share, whatever else runs here; on a busy machine, possibly less. */
static void a_process_gets_its_share(void **state) {
    (void)state;
    const int half = share_under(0.5), tenth = share_under(0.1);
    if (half == -1) skip();
    assert_in_range(half, 1, 560);
    assert_in_range(tenth, 1, 120);
}

static void groups_of_the_killed_are_removed(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        hp_quota q;
        hp_error err;
        if (hp_quota_join(&q, "", 0.5, &err) != HP_OK) _exit(1);
        kill(getpid(), SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) skip();
    hp_quota_sweep("");
    assert_false(has_group(child));
}

static void what_cannot_be_done_is_said(void **state) {
    tree *t = *state;
    hp_quota q;
    hp_error err;
    assert_int_equal(hp_quota_join(&q, t->root, 0.5, &err), HP_EUNAVAIL);
    assert_non_null(strstr(err.text, "no control groups"));
    hp_quota_leave(&q);
    tree_write(t, "/proc/self/cgroup", "0::/job\n");
    tree_write(t, "/proc/self/mountinfo", "35 30 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    assert_int_equal(hp_quota_join(&q, t->root, 0.5, &err), HP_EUNAVAIL); /* no folder of that group */
    assert_non_null(strstr(err.text, "/sys/fs/cgroup/job/hplan-"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_of_each_rank_or_of_all),
        cmocka_unit_test(a_process_gets_its_share),
        cmocka_unit_test(groups_of_the_killed_are_removed),
        cmocka_unit_test_setup_teardown(what_cannot_be_done_is_said, tree_open, tree_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
