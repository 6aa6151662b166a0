/* test_sampler.c - ranks, as threads, sample their yardsticks between steps: all after the same steps and
 * equally often, whatever their clocks and the lengths of their steps; a missing rank is named. */
#include "exec/yardstick/sampler.h"
#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/exec/thread_comm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_RANKS = 4, MOST_STEPS = 60 };

typedef struct sampled_rank {
    thread_world *world;
    const char *folder;
    int rank;
    int64_t steps;
    uint64_t seed;
    bool gone; /* stops coming after half of the steps */
    double limit_s;
    volatile sig_atomic_t stop;
    pthread_t thread;
    hp_status status;
    hp_error err;
} sampled_rank;

static const char *path_of(const char *folder, const char *what, int rank, char out[256]) {
    snprintf(out, 256, "%s/%s-%d", folder, what, rank);
    return out;
}

static void sleep_us(int64_t us) {
    const struct timespec t = {.tv_nsec = 1000 * us};
    nanosleep(&t, NULL);
}

/* Steps of up to a millisecond, different on each rank; the ranks' clocks disagree about
 * the start of the run. */
static void *sample_steps(void *arg) {
    sampled_rank *me = arg;
    char path[256];
    hp_ring *ring;
    hp_watch *watch;
    hp_error err;
    const hp_clock clock = {0};
    HP_ASSERT(hp_watch_open(path_of(me->folder, "board", 0, path), me->rank, me->world->size, &watch, &err) ==
              HP_OK);
    HP_ASSERT(hp_ring_create(path_of(me->folder, "ring", me->rank, path), me->rank, 0, 1, 1 << 16, &ring,
                             &err) == HP_OK);
    hp_comm *comm = thread_comm_new(me->world, me->rank);
    const hp_sampler_config c = {.comm = comm,
                                 .clock = &clock,
                                 .ring = ring,
                                 .watch = watch,
                                 .stop = &me->stop,
                                 .start_s = hp_now_s() - 1 - me->rank};
    hp_sampler *s = hp_sampler_open(&c);
    me->status = HP_OK;
    for (int64_t done = 0; done <= me->steps && me->status == HP_OK; done++) {
        if (me->gone && done > me->steps / 2) break;
        if (done > 0)
            sleep_us((int64_t)(1000 * hp_rng_uniform(me->seed, (uint64_t)me->rank, (uint64_t)done)));
        me->status = hp_sampler_visit(s, done, done == me->steps, me->limit_s, &me->err);
    }
    while (me->gone && !atomic_load(&me->world->failed)) sleep_us(1000); /* alive, but without a sign of it */
    if (me->status != HP_OK) thread_world_fail(me->world);
    hp_sampler_close(s);
    comm->ops->close(comm);
    hp_ring_close(ring);
    hp_watch_close(watch);
    return NULL;
}

static void run_ranks(sampled_rank *rank, int n, const char *folder, const sampled_rank *like) {
    thread_world *world = thread_world_new(n);
    for (int r = 0; r < n; r++) {
        const bool gone = like->gone && r == n - 1;
        rank[r] = *like;
        rank[r].world = world, rank[r].folder = folder, rank[r].rank = r, rank[r].gone = gone;
        assert_int_equal(pthread_create(&rank[r].thread, NULL, sample_steps, &rank[r]), 0);
    }
    for (int r = 0; r < n; r++) pthread_join(rank[r].thread, NULL);
    thread_world_free(world);
}

static void remove_folder(const char *folder) {
    char path[256];
    unlink(path_of(folder, "board", 0, path));
    for (int r = 0; r < MOST_RANKS; r++) unlink(path_of(folder, "ring", r, path));
    rmdir(folder);
}

/* count[yardstick][iteration] */
static void count_samples(const char *folder, int rank, int32_t count[HP_YARDSTICKS][MOST_STEPS]) {
    char path[256];
    hp_ring_data d;
    hp_error err;
    memset(count, 0, sizeof(int32_t) * HP_YARDSTICKS * MOST_STEPS);
    assert_int_equal(hp_ring_read(path_of(folder, "ring", rank, path), &d, &err), HP_OK);
    for (int64_t i = 0; i < d.n_sample; i++) {
        const int k = d.sample[i].name - (int)HP_COUNTER_YARD_ARITH;
        assert_true(k >= 0 && k < HP_YARDSTICKS && d.sample[i].value > 0);
        assert_true(d.sample[i].iter >= 0 && d.sample[i].iter < MOST_STEPS);
        count[k][d.sample[i].iter]++;
    }
    hp_ring_free(&d);
}

static void check_samples(const char *folder, int n, int64_t steps) {
    int32_t first[HP_YARDSTICKS][MOST_STEPS], other[HP_YARDSTICKS][MOST_STEPS];
    count_samples(folder, 0, first);
    assert_true(first[HP_YARD_ARITH][0] > 0 && first[HP_YARD_ARITH][steps - 1] > 0);
    assert_true(steps > 1 || first[HP_YARD_ARITH][0] > 1); /* before and after */
    for (int64_t i = 0; i < MOST_STEPS; i++) {
        assert_true(i < steps || first[HP_YARD_ARITH][i] == 0);
        for (int k = 0; k < HP_YARD_KERNELS; k++) assert_int_equal(first[k][i], first[HP_YARD_ARITH][i]);
        assert_int_equal(first[HP_YARD_SMALL][i], first[HP_YARD_LARGE][i]);
    }
    assert_int_equal(first[HP_YARD_SMALL][0] > 0, n > 1);
    for (int r = 1; r < n; r++) {
        count_samples(folder, r, other);
        for (int k = 0; k < HP_YARD_KERNELS; k++) assert_memory_equal(other[k], first[k], sizeof first[k]);
        for (int64_t i = 0; i < MOST_STEPS; i++) assert_int_equal(other[HP_YARD_SMALL][i], 0);
    }
}

static void all_ranks_sample_after_the_same_steps(void **state) {
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            sampled_rank rank[MOST_RANKS];
            char folder[] = "/tmp/hplan-sampler-XXXXXX";
            assert_non_null(mkdtemp(folder));
            const sampled_rank like = {.steps = 1 + (int64_t)hp_rng_below(seed, 9, (uint64_t)n, MOST_STEPS),
                                       .seed = seed,
                                       .limit_s = 600};
            run_ranks(rank, n, folder, &like);
            for (int r = 0; r < n; r++) assert_int_equal(rank[r].status, HP_OK);
            check_samples(folder, n, like.steps);
            remove_folder(folder);
        }
}

/* Do the others name the last of three ranks, which stops coming? */
static bool absent_rank_is_named(double limit_s) {
    sampled_rank rank[MOST_RANKS];
    char folder[] = "/tmp/hplan-sampler-XXXXXX";
    bool named = false;
    assert_non_null(mkdtemp(folder));
    const sampled_rank like = {.steps = 4, .seed = 1, .limit_s = limit_s, .gone = true};
    run_ranks(rank, 3, folder, &like);
    for (int r = 0; r < 2; r++) {
        assert_true(rank[r].status == HP_ESTALL || rank[r].status == HP_EDEAD);
        named |= rank[r].status == HP_ESTALL && strstr(rank[r].err.text, "rank 2 gives no sign of life");
    }
    remove_folder(folder);
    return named;
}

/* The rank that runs out of patience first names it; no rank waits for ever. With little patience, a rank
 * that gets no processor looks absent: then the test repeats with more. */
static void a_rank_that_stays_away_is_named(void **state) {
    (void)state;
    double limit_s = 0.5;
    while (!absent_rank_is_named(limit_s)) {
        limit_s *= 2;
        assert_true(limit_s < 100);
    }
}

static void a_signal_ends_the_run(void **state) {
    (void)state;
    sampled_rank rank[1];
    char folder[] = "/tmp/hplan-sampler-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const sampled_rank like = {.steps = 4, .seed = 1, .limit_s = 600, .stop = 15};
    run_ranks(rank, 1, folder, &like);
    assert_int_equal(rank[0].status, 128 + 15);
    remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_ranks_sample_after_the_same_steps),
                                       cmocka_unit_test(a_rank_that_stays_away_is_named),
                                       cmocka_unit_test(a_signal_ends_the_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
