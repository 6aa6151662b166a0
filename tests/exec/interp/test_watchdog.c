/* test_watchdog.c - the board of heart beats: who is silent, asked by several ranks at once. */
#include "exec/interp/watchdog.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, STOPPED = 2, TASK = 7, ITER = 5 };

typedef struct asking {
    hp_watch *watch;
    pthread_barrier_t *start;
    int blamed;
    int32_t task, iter;
} asking;

static void *ask(void *self) {
    asking *a = self;
    pthread_barrier_wait(a->start);
    a->blamed = hp_watch_silent(a->watch, &a->task, &a->iter);
    return NULL;
}

/* A stopped rank lets all others run into their deadline together: each names that rank, none another that
 * looks as well. */
static void ranks_that_look_together_name_the_stopped_one(void **state) {
    (void)state;
    char path[] = "/tmp/hplan-board-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    hp_error err;
    pthread_t thread[RANKS];
    pthread_barrier_t start;
    asking rank[RANKS] = {{0}};
    pthread_barrier_init(&start, NULL, RANKS - 1);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(hp_watch_open(path, r, RANKS, &rank[r].watch, &err), HP_OK);
        rank[r].start = &start;
        hp_watch_note(rank[r].watch, r == STOPPED ? TASK : 0, ITER);
    }
    for (int r = 0; r < RANKS; r++)
        if (r != STOPPED) assert_int_equal(pthread_create(&thread[r], NULL, ask, &rank[r]), 0);
    for (int r = 0; r < RANKS; r++)
        if (r != STOPPED) pthread_join(thread[r], NULL);
    for (int r = 0; r < RANKS; r++) {
        if (r == STOPPED) continue;
        assert_int_equal(rank[r].blamed, STOPPED);
        assert_int_equal(rank[r].task, TASK);
        assert_int_equal(rank[r].iter, ITER);
    }
    assert_true(hp_watch_speak(rank[0].watch));
    assert_false(hp_watch_speak(rank[1].watch)); /* one message is enough */
    for (int r = 0; r < RANKS; r++) hp_watch_close(rank[r].watch);
    pthread_barrier_destroy(&start);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_that_look_together_name_the_stopped_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
