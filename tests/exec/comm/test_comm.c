/* test_comm.c - the law of comm_law.h holds for a single process, for ranks as threads (the communicator that
 * the other laws trust), and for real MPI ranks, for which this program starts itself under mpirun. */
#include "tests/support/exec/comm_law.h"
#include "tests/support/exec/thread_comm.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static hp_status host_law(hp_comm *comm, uint64_t seed, hp_error *err) {
    comm_room room = comm_room_new(&hp_memory_host);
    const hp_status s = comm_law(comm, &room, true, seed, NULL, err);
    comm_room_free(&room);
    return s;
}

/* --- one process, threads --- */

static void a_process_alone_sums_over_any_group_at_once(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(25); seed++) {
        hp_comm *comm;
        hp_error err;
        assert_int_equal(hp_comm_self_open(&comm, &err), HP_OK);
        if (host_law(comm, seed, &err) != HP_OK) fail_msg("%s", err.text);
        comm->ops->close(comm);
    }
}

typedef struct thread_rank {
    thread_world *world;
    int rank;
    uint64_t seed;
    pthread_t thread;
    hp_status status;
    hp_error err;
} thread_rank;

static void *thread_main(void *arg) {
    thread_rank *me = arg;
    hp_comm *comm = thread_comm_new(me->world, me->rank);
    me->status = host_law(comm, me->seed, &me->err);
    if (me->status != HP_OK) thread_world_fail(me->world);
    comm->ops->close(comm);
    return NULL;
}

static void threads_obey(int n, uint64_t seed) {
    thread_rank rank[64];
    thread_world *world = thread_world_new(n);
    for (int r = 0; r < n; r++) {
        rank[r] = (thread_rank){.world = world, .rank = r, .seed = seed};
        assert_int_equal(pthread_create(&rank[r].thread, NULL, thread_main, &rank[r]), 0);
    }
    for (int r = 0; r < n; r++) pthread_join(rank[r].thread, NULL);
    thread_world_free(world);
    for (int r = 0; r < n; r++)
        if (rank[r].status != HP_OK && rank[r].status != HP_EDEAD) fail_msg("%s", rank[r].err.text);
    for (int r = 0; r < n; r++) assert_int_equal(rank[r].status, HP_OK);
}

static void threads_sum_over_any_groups_and_keep_messages_in_order(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(15); seed++) threads_obey(2 + (int)(seed * 5 % 15), seed);
}

/* --- real ranks --- */

static int ranks_main(void) {
    hp_comm *comm;
    hp_error err;
    if (hp_comm_mpi_open(&comm, &err) != HP_OK) return 1;
    comm = hp_comm_own(comm);
    for (uint64_t seed = 1; seed <= law_cases(6); seed++)
        if (host_law(comm, seed * 100 + (uint64_t)comm->size, &err) != HP_OK) {
            fprintf(stderr, "%s\n", err.text);
            comm->ops->abort(comm, 1);
        }
    comm->ops->close(comm);
    return 0;
}

static void ranks_of_mpi_sum_over_any_groups_and_keep_messages_in_order(void **state) {
    (void)state;
    if (system("command -v mpirun >/dev/null") != 0) skip();
    const int step = law_all("three and five ranks of MPI") ? 1 : 2;
    for (int n = 2; n <= 6; n += step) assert_int_equal(start_ranks(n, "ranks"), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_alone_sums_over_any_group_at_once),
        cmocka_unit_test(threads_sum_over_any_groups_and_keep_messages_in_order),
        cmocka_unit_test(ranks_of_mpi_sum_over_any_groups_and_keep_messages_in_order),
    };
    if (argc > 1 && strcmp(argv[1], "ranks") == 0) return ranks_main();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
