/* test_parallel.c - every work item is done once, by a thread that does one at a time. */
#include "base/parallel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 1000, THREADS = 8 };

typedef struct work {
    atomic_int done[MOST], busy[THREADS], overlaps;
    int threads;
} work;

static void piece(void *self, int thread, int i) {
    work *w = self;
    if (thread < 0 || thread >= w->threads || atomic_fetch_add(&w->busy[thread], 1))
        atomic_fetch_add(&w->overlaps, 1);
    atomic_fetch_add(&w->done[i], 1);
    atomic_fetch_sub(&w->busy[thread], 1);
}

static void every_piece_is_done_once(void **state) {
    (void)state;
    static const int counts[] = {0, 1, 2, 7, MOST};
    for (int threads = 1; threads <= THREADS; threads++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            static work w;
            w = (work){.threads = threads};
            hp_parallel_for(threads, counts[k], piece, &w);
            for (int i = 0; i < MOST; i++) assert_int_equal(atomic_load(&w.done[i]), i < counts[k]);
            assert_int_equal(atomic_load(&w.overlaps), 0);
        }
    assert_true(hp_parallel_threads() >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_piece_is_done_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
