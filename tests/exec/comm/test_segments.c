/* test_segments.c - a killed rank leaves none of the files that it shared with others of its node, and
 * removes none that another still maps. The files are this test's, named like Open MPI's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec/comm/segments.h"
#include "base/clock.h"

enum { BYTES = 4096, HANGS_S = 120 /* nothing here takes so long even on a busy machine */ };

/* Name of rank `k`'s file, in a job named after this process. */
static const char *segment(int k) {
    static char path[2][128];
    snprintf(path[k % 2], sizeof path[0], "/dev/shm/vader_segment.a.host.%u.%x0001.%d", (unsigned)geteuid(),
             (unsigned)getpid(), k);
    return path[k % 2];
}

static bool exists(int k) {
    return access(segment(k), F_OK) == 0;
}

static void map(const char *path) {
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, BYTES) != 0 ||
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
        _exit(1);
    close(fd);
}

/* Starts a rank that maps its file, reports that, and runs until it is killed. */
static pid_t start_rank(int k, bool first) {
    int said[2];
    char yes;
    const char *path = segment(k);
    assert_int_equal(pipe(said), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        setenv("OMPI_COMM_WORLD_LOCAL_RANK", first ? "0" : "1", 1);
        const int watch = hp_segments_watch();
        if ((watch >= 0) != first) _exit(1);
        map(path);
        hp_segments_tell(watch);
        if (write(said[1], "y", 1) == 1) pause();
        _exit(1);
    }
    assert_int_equal(read(said[0], &yes, 1), 1);
    close(said[0]), close(said[1]);
    return pid;
}

static void end_rank(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void pause_s(double s) {
    nanosleep(&(struct timespec){(time_t)s, (long)(1e9 * (s - (double)(time_t)s))}, NULL);
}

static bool vanishes(int k) {
    for (const double start_s = hp_now_s(); exists(k) && hp_now_s() - start_s < HANGS_S;) pause_s(0.02);
    return !exists(k);
}

static void nothing_is_left_of_ranks_that_are_killed(void **state) {
    (void)state;
    const pid_t first = start_rank(0, true), second = start_rank(1, false);
    assert_true(exists(0) && exists(1));
    end_rank(second);
    pause_s(0.3);
    assert_true(exists(1)); /* nobody looks before the first rank has ended */
    end_rank(first);
    assert_true(vanishes(0));
    assert_true(vanishes(1));
}

static void what_another_rank_has_mapped_stays(void **state) {
    (void)state;
    const pid_t first = start_rank(0, true), second = start_rank(1, false);
    end_rank(first);
    pause_s(0.5);
    assert_true(exists(1));
    end_rank(second);
    assert_true(vanishes(1));
    assert_true(vanishes(0));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_left_of_ranks_that_are_killed),
                                       cmocka_unit_test(what_another_rank_has_mapped_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
