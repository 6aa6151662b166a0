/* test_watchdog.c - the board of heart beats: which rank is silent, asked by several ranks at once. */
#include "exec/interp/watchdog.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, STOPPED = 2, TASK = 7, ITER = 5, MOST_TIMES = 20 };

static void new_file(char *template) {
    const int fd = mkstemp(template);
    assert_true(fd >= 0);
    close(fd);
}

typedef struct asking {
    hp_watch *watch;
    pthread_barrier_t *start;
    atomic_int *asking; /* number of ranks without a verdict */
    hp_waited verdict;
    hp_suspect suspect;
} asking;

/* The patience is far longer than the time between two lines of this test, and than any machine has run: the
 * clock's origin is no moment at which a rank ended to read. */
enum { WAITED_S = 2000000000, LIMIT_S = 1000000000 };

/* A rank with a verdict goes on sending beats, as ranks that look later expect. */
static void *ask(void *self) {
    asking *a = self;
    pthread_barrier_wait(a->start);
    a->verdict = hp_watch_wait(a->watch, WAITED_S, LIMIT_S, &a->suspect);
    for (atomic_fetch_sub(a->asking, 1); atomic_load(a->asking) > 0; usleep(1000)) hp_watch_beat(a->watch);
    return NULL;
}

/* Does every rank name the stopped one? */
static bool stopped_rank_is_named(void) {
    char path[] = "/tmp/hplan-board-XXXXXX";
    new_file(path);
    hp_error err;
    pthread_t thread[RANKS];
    pthread_barrier_t start;
    atomic_int looking = RANKS - 1;
    bool named = true;
    asking rank[RANKS] = {{0}};
    pthread_barrier_init(&start, NULL, RANKS - 1);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(hp_watch_open(path, r, RANKS, &rank[r].watch, &err), HP_OK);
        rank[r].start = &start;
        rank[r].asking = &looking;
        hp_watch_note(rank[r].watch, r == STOPPED ? TASK : 0, ITER);
    }
    for (int r = 0; r < RANKS; r++)
        if (r != STOPPED) assert_int_equal(pthread_create(&thread[r], NULL, ask, &rank[r]), 0);
    for (int r = 0; r < RANKS; r++)
        if (r != STOPPED) pthread_join(thread[r], NULL);
    for (int r = 0; r < RANKS; r++) {
        if (r == STOPPED) continue;
        assert_int_equal(rank[r].verdict, HP_WAITED_STALLED);
        named &= rank[r].suspect.rank == STOPPED;
        if (rank[r].suspect.rank != STOPPED) continue;
        assert_int_equal(rank[r].suspect.task, TASK);
        assert_int_equal(rank[r].suspect.iter, ITER);
    }
    assert_true(hp_watch_speak(rank[0].watch));
    assert_false(hp_watch_speak(rank[1].watch)); /* one message is enough */
    for (int r = 0; r < RANKS; r++) hp_watch_close(rank[r].watch);
    pthread_barrier_destroy(&start);
    unlink(path);
    return named;
}

/* When a rank stops, all others reach their deadline together. Each must name that rank, never another
 * one that is looking as well. A rank that gets no processor during another's whole look counts as
 * stopped: then they look again. */
static void ranks_that_look_together_name_the_stopped_one(void **state) {
    (void)state;
    for (int times = 1; !stopped_rank_is_named(); times++) assert_true(times < MOST_TIMES);
}

/* For a reading rank, one row in several seconds is a sign of life; for a computing rank, a fifth of a second
 * without one is not. */
static void a_rank_that_reads_is_waited_for_as_long_as_rows_come(void **state) {
    (void)state;
    char path[] = "/tmp/hplan-board-XXXXXX";
    new_file(path);
    hp_error err;
    hp_suspect who;
    hp_watch *me, *reader;
    assert_int_equal(hp_watch_open(path, 0, 2, &me, &err), HP_OK);
    assert_int_equal(hp_watch_open(path, 1, 2, &reader, &err), HP_OK);
    hp_watch_note(reader, TASK, ITER);
    hp_watch_reads(reader, true);
    for (int turn = 0; turn < 3; turn++) { /* a row after the first half of the wait, nothing at its end */
        assert_int_equal(hp_watch_wait(me, 0.1, LIMIT_S, &who), HP_WAITED_WAIT);
        assert_int_equal(hp_watch_wait(me, 0.6 * LIMIT_S, LIMIT_S, &who), HP_WAITED_WAIT);
        hp_watch_beat(reader);
        assert_int_equal(hp_watch_wait(me, WAITED_S, LIMIT_S, &who), HP_WAITED_AGAIN);
    }
    assert_int_equal(hp_watch_wait(me, 0.1, LIMIT_S, &who), HP_WAITED_WAIT);
    assert_int_equal(hp_watch_wait(me, 0.6 * LIMIT_S, LIMIT_S, &who), HP_WAITED_WAIT); /* no row after it */
    assert_int_equal(hp_watch_wait(me, WAITED_S, LIMIT_S, &who), HP_WAITED_STALLED);
    assert_int_equal(who.rank, 1);
    assert_true(who.reads);
    assert_int_equal(who.state, HP_PROCESS_RUNS); /* both are this process */
    hp_watch_beat(reader);
    hp_watch_reads(reader, false); /* the step continues now, and its time starts here */
    assert_int_equal(hp_watch_wait(me, WAITED_S, LIMIT_S, &who), HP_WAITED_WAIT);
    usleep(20000);
    assert_int_equal(hp_watch_wait(me, WAITED_S, 0.01, &who), HP_WAITED_STALLED);
    assert_int_equal(who.rank, 1); /* without a beat */
    assert_false(who.reads);
    hp_watch_close(reader);
    hp_watch_close(me);
    unlink(path);
}

/* The verdict of a rank that looks for silence while the other's reading ends. */
static hp_waited verdict_while_reading_ends(void) {
    char path[] = "/tmp/hplan-board-XXXXXX";
    new_file(path);
    hp_error err;
    hp_watch *reader;
    pthread_t thread;
    pthread_barrier_t start;
    atomic_int looking = 0;
    asking me = {.start = &start, .asking = &looking};
    pthread_barrier_init(&start, NULL, 2);
    assert_int_equal(hp_watch_open(path, 0, 2, &me.watch, &err), HP_OK);
    assert_int_equal(hp_watch_open(path, 1, 2, &reader, &err), HP_OK);
    hp_watch_reads(reader, true);
    assert_int_equal(pthread_create(&thread, NULL, ask, &me), 0);
    pthread_barrier_wait(&start);
    usleep(80000);
    hp_watch_beat(reader);
    hp_watch_reads(reader, false);
    pthread_join(thread, NULL);
    hp_watch_close(reader);
    hp_watch_close(me.watch);
    pthread_barrier_destroy(&start);
    unlink(path);
    return me.verdict;
}

/* Before the look the reading rank's time does not count; after it, nobody reads, so the verdict must be to
 * look again. Without a processor, threads may miss each other: a verdict before the look is to wait, one
 * after it that the reader was silent. Then the test repeats. */
static void a_rank_that_ends_to_read_while_another_looks_has_its_time(void **state) {
    (void)state;
    for (int times = 1; verdict_while_reading_ends() != HP_WAITED_AGAIN; times++)
        assert_true(times < MOST_TIMES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_look_together_name_the_stopped_one),
        cmocka_unit_test(a_rank_that_reads_is_waited_for_as_long_as_rows_come),
        cmocka_unit_test(a_rank_that_ends_to_read_while_another_looks_has_its_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
