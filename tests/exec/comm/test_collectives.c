/* test_collectives.c - every collective of every back end does what plan/collectives defines, by the
 * laws of comm_law.h: on ranks as threads, and on real MPI ranks, for which this program starts
 * itself under mpirun. */
#include "base/clock.h"
#include "tests/support/exec/collective_case.h"
#include "tests/support/exec/comm_law.h"
#include "tests/support/exec/thread_comm.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { OWN = 1 << HP_BACKEND_OWN, MPI = 1 << HP_BACKEND_MPI, SHM = 1 << HP_BACKEND_SHM, MAX_RANKS = 8 };

/* One sweep, and random groups. */
static hp_status laws(hp_comm *comm, uint32_t backends, uint64_t seed, hp_error *err) {
    const bool shares = backends & SHM;
    comm_room room = comm_room_new(shares ? &hp_memory_shared : &hp_memory_host);
    hp_comm **messages = hp_comm_own_inner(comm);
    hp_status s = shares ? hp_comm_peer(*messages, &room.memory, room.at, room.bytes, messages, err) : HP_OK;
    for (int b = 0; b < HP_BACKENDS && s == HP_OK; b++)
        if (backends >> b & 1) s = comm_law_sweep(comm, &room, b, 1, seed, err);
    for (uint64_t k = 0; k < 4 && s == HP_OK; k++)
        s = comm_law_collectives(comm, &room, backends, seed + 1 + k, err);
    if (s == HP_OK && shares) comm->ops->close(comm); /* closed first: it reads the room */
    comm_room_free(&room);
    return s;
}

/* --- threads --- */

static void a_process_alone_has_what_it_gave(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(5); seed++) {
        hp_comm *comm;
        hp_error err;
        assert_int_equal(hp_comm_self_open(&comm, &err), HP_OK);
        comm = hp_comm_own(comm);
        if (laws(comm, OWN, seed * 10, &err) != HP_OK) fail_msg("%s", err.text);
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
    hp_comm *comm = hp_comm_own(thread_comm_new(me->world, me->rank));
    me->status = laws(comm, OWN, me->seed, &me->err);
    if (me->status != HP_OK) thread_world_fail(me->world);
    comm->ops->close(comm);
    return NULL;
}

static void threads_obey(int n, uint64_t seed) {
    thread_rank rank[MAX_RANKS];
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

static void steps_among_threads_do_every_collective(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(8); seed++)
        threads_obey(1 + (int)(seed % MAX_RANKS), seed * 10);
}

/* --- real ranks: "ranks SEED BACKENDS" --- */

static int ranks_main(const char *argument) {
    hp_comm *comm;
    hp_error err;
    char *end;
    const uint64_t seed = strtoull(argument + strlen("ranks "), &end, 10);
    const uint32_t backends = (uint32_t)strtoul(end, NULL, 10);
    if (hp_comm_mpi_open(&comm, &err) != HP_OK) return 1;
    comm = hp_comm_own(comm);
    if (laws(comm, backends, seed, &err) != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        comm->ops->abort(comm, 1);
    }
    if (!(backends & SHM)) comm->ops->close(comm);
    return 0;
}

static void ranks_obey(uint32_t backends, uint64_t seed) {
    char argument[64];
    snprintf(argument, sizeof argument, "ranks %llu %u", (unsigned long long)seed * 10, backends);
    assert_int_equal(start_ranks(2 + (int)(seed % (MAX_RANKS - 1)), argument), 0);
}

static bool no_launcher(void) {
    return system("command -v mpirun >/dev/null") != 0;
}

static const char ALONE[] = "ranks of MPI by one back end alone";

static void steps_among_ranks_do_every_collective(void **state) {
    (void)state;
    if (no_launcher() || !law_all(ALONE)) skip();
    for (uint64_t seed = 1; seed <= law_cases(2); seed++) ranks_obey(OWN, seed);
}

static void the_library_does_every_collective(void **state) {
    (void)state;
    if (no_launcher() || !law_all(ALONE)) skip();
    for (uint64_t seed = 1; seed <= law_cases(2); seed++) ranks_obey(MPI, seed);
}

static void shared_memory_does_every_collective(void **state) {
    (void)state;
    if (no_launcher() || !law_all(ALONE)) skip();
    for (uint64_t seed = 1; seed <= law_cases(2); seed++) ranks_obey(SHM, seed + 1);
}

static void all_do_beside_each_other(void **state) {
    (void)state;
    if (no_launcher()) skip();
    const uint64_t before = law_all("six and seven ranks by all back ends, not three") ? 3 : 0;
    for (uint64_t seed = 1; seed <= law_cases(2); seed++) ranks_obey(OWN | MPI | SHM, seed + before);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_alone_has_what_it_gave),
        cmocka_unit_test(steps_among_threads_do_every_collective),
        cmocka_unit_test(steps_among_ranks_do_every_collective),
        cmocka_unit_test(the_library_does_every_collective),
        cmocka_unit_test(shared_memory_does_every_collective),
        cmocka_unit_test(all_do_beside_each_other),
    };
    if (argc > 1 && strncmp(argv[1], "ranks ", 6) == 0) return ranks_main(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
