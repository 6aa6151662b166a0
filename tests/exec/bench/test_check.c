/* test_check.c - ranks as threads check hplan's own collectives: no element is wrong; and if a communicator
 * spoils some elements in transit, exactly these are counted. */
#include "exec/bench/pattern.h"
#include "exec/bench/turn.h"
#include "tests/support/exec/thread_comm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { RANKS = 3, COUNT = 3 * 1000, SPOILT = 17 };

/* A communicator that passes everything on. On the spoiling rank it changes SPOILT elements of what a
 * collective delivered. */
typedef struct spoiling_comm {
    hp_comm base;
    hp_comm *inner;
    bool spoils;
    hp_comm_op op; /* the newest */
} spoiling_comm;

static hp_status spoiling_start(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err) {
    spoiling_comm *c = (spoiling_comm *)comm;
    c->op = *op;
    return c->inner->ops->start(c->inner, op, handle, err);
}

static void spoil(const hp_comm_op *op, int me) {
    const hp_bench_case c = {
        .what = op->what, .ranks = RANKS, .me = me, .root = op->root, .count = op->count};
    int64_t first, n;
    hp_bench_ends(&c, &first, &n);
    for (int64_t i = 0; i < SPOILT; i++) ((float *)op->data)[first + i * (n / SPOILT)] += 0.5f;
}

static hp_status spoiling_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    spoiling_comm *c = (spoiling_comm *)comm;
    const hp_status s = c->inner->ops->test(c->inner, handle, done, err);
    const bool data =
        c->op.kind == HP_COMM_COLLECTIVE && c->op.what != HP_COLLECTIVE_BARRIER && c->op.dtype == HP_F32;
    if (s == HP_OK && *done && c->spoils && data) spoil(&c->op, comm->rank);
    return s;
}

static const hp_comm_ops SPOILING = {.name = "spoiling", .start = spoiling_start, .test = spoiling_test};

typedef struct thread_rank {
    thread_world *world;
    int rank;
    bool spoils;
    pthread_t thread;
    double wrong[HP_COLLECTIVES][HP_BENCH_PLACES];
    double sample;
} thread_rank;

static void check_all(thread_rank *me, const hp_bench_room *room) {
    hp_error err;
    for (int what = 0; what < HP_COLLECTIVES; what++)
        for (int place = 0; place < HP_BENCH_PLACES; place++) {
            const hp_bench_run s = {.what = what, .backend = HP_BACKEND_OWN};
            HP_ASSERT(hp_bench_check(room, &s, COUNT, place, &me->wrong[what][place], &err) == HP_OK);
            HP_ASSERT(hp_bench_turn(room, &s, COUNT, place, HP_BENCH_PIPELINED, &me->sample, &err) == HP_OK);
        }
}

static void *rank_main(void *arg) {
    thread_rank *me = arg;
    const hp_bench_request r = {.iterations = 1, .turns = 1, .root = 1};
    const hp_bench_setup setup = {.r = &r, .dtype = HP_F32, .ranks = RANKS};
    hp_comm *own = hp_comm_own(thread_comm_new(me->world, me->rank));
    spoiling_comm comm = {
        .base = {.ops = &SPOILING, .rank = me->rank, .size = RANKS}, .inner = own, .spoils = me->spoils};
    const hp_yard_waiter w = {.comm = &comm.base, .limit_s = 600};
    hp_bench_room room = {.setup = &setup, .w = &w, .crowded = true};
    float *memory = calloc(3 * COUNT, sizeof *memory);
    HP_ASSERT(memory);
    room.private.data = (unsigned char *)memory;
    room.private.source = (unsigned char *)(memory + COUNT);
    room.private.aside = (unsigned char *)(memory + 2 * COUNT);
    check_all(me, &room);
    free(memory);
    own->ops->close(own);
    return NULL;
}

static void run_ranks(thread_rank rank[RANKS], int spoiler) {
    thread_world *world = thread_world_new(RANKS);
    for (int r = 0; r < RANKS; r++) {
        rank[r] = (thread_rank){.world = world, .rank = r, .spoils = r == spoiler};
        assert_int_equal(pthread_create(&rank[r].thread, NULL, rank_main, &rank[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) pthread_join(rank[r].thread, NULL);
    thread_world_free(world);
}

static void own_collectives_deliver_what_they_must(void **state) {
    (void)state;
    thread_rank rank[RANKS];
    run_ranks(rank, -1);
    for (int r = 0; r < RANKS; r++) {
        for (int what = 0; what < HP_COLLECTIVES; what++)
            for (int place = 0; place < HP_BENCH_PLACES; place++)
                assert_true(rank[r].wrong[what][place] == 0);
        assert_true(rank[r].sample > 0);
    }
}

/* Rank 1, the root, spoils. */
static void exactly_the_elements_that_were_spoilt_are_counted(void **state) {
    (void)state;
    thread_rank rank[RANKS];
    run_ranks(rank, 1);
    for (int what = 0; what < HP_COLLECTIVES; what++)
        for (int place = 0; place < HP_BENCH_PLACES; place++)
            for (int r = 0; r < RANKS; r++)
                assert_true(rank[r].wrong[what][place] ==
                            (r == 1 && what != HP_COLLECTIVE_BARRIER ? SPOILT : 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_collectives_deliver_what_they_must),
        cmocka_unit_test(exactly_the_elements_that_were_spoilt_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
