/* test_shm.c - the law of comm_law.h holds for messages that ranks copy out of each other's memory, and for
 * collectives made of them. Ranks are threads or real MPI ranks; data is in that memory or elsewhere; some
 * pairs cannot reach each other. They count as many bytes as over MPI. */
#include "tests/support/exec/comm_law.h"
#include "tests/support/exec/thread_comm.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MAX_RANKS = 64 };

/* --- memory that some cannot open --- */

static _Thread_local uint64_t opened; /* by this rank so far */

/* Every third open fails. Ranks start counting at different values, so often only one of a pair fails. */
static hp_status open_or_not(const hp_memory *m, const hp_memory_name *name, void **at, hp_error *err) {
    if (++opened % 3 == 0) return hp_fail(err, HP_EUNAVAIL, "out of reach");
    return hp_memory_shared.peers->open(m, name, at, err);
}

static hp_memory_ops some_reach(hp_peer_ops *peers) {
    hp_memory_ops ops = hp_memory_shared;
    *peers = *ops.peers;
    peers->open = open_or_not;
    ops.peers = peers;
    return ops;
}

/* --- ranks --- */

typedef struct shm_case {
    const hp_memory_ops *memory;
    bool outside; /* some data lies elsewhere */
    bool sums;    /* collectives as well */
    uint64_t seed;
} shm_case;

static comm_room room_of(const shm_case *what) {
    comm_room room = comm_room_new(what->memory);
    room.backend = HP_BACKEND_SHM;
    room.outside = what->outside;
    return room;
}

/* `sent`: bytes sent to each rank by messages. Collectives send as well, some of it from other memory. */
static hp_status check_bytes(const hp_comm *comm, const shm_case *what, const int64_t *sent, hp_error *err) {
    int64_t all = 0, direct = comm->direct_bytes;
    for (int r = 0; r < comm->size; r++) all += sent[r];
    const bool whole = what->memory == &hp_memory_shared && !what->outside;
    if ((!whole || direct >= all) && (what->sums || direct <= all)) return HP_OK;
    return hp_fail(err, HP_EINTERNAL, "rank %d: %lld bytes went straight, %lld were sent by messages",
                   comm->rank, (long long)direct, (long long)all);
}

/* Routes messages below collectives through shared memory. */
static hp_status share_memory(hp_comm *own, const comm_room *room, hp_error *err) {
    hp_comm **messages = hp_comm_own_inner(own);
    opened = (uint64_t)own->rank;
    return hp_comm_peer(*messages, &room->memory, room->at, room->bytes, messages, err);
}

/* Checks the law over `inner`, wrapped; closes it. */
static hp_status shm_law(hp_comm *inner, const shm_case *what, int64_t *direct, hp_error *err) {
    int64_t sent[MAX_RANKS] = {0};
    hp_comm *comm = hp_comm_own(inner);
    comm_room room = room_of(what);
    hp_status s = share_memory(comm, &room, err);
    if (s == HP_OK) s = comm_law(comm, &room, what->sums, what->seed, sent, err);
    if (s == HP_OK) s = check_bytes(comm, what, sent, err);
    *direct = comm->direct_bytes;
    comm->ops->close(comm);
    comm_room_free(&room);
    return s;
}

/* --- threads --- */

typedef struct thread_rank {
    const shm_case *what;
    thread_world *world;
    int rank;
    pthread_t thread;
    int64_t direct;
    hp_status status;
    hp_error err;
} thread_rank;

static void *thread_main(void *arg) {
    thread_rank *me = arg;
    me->status = shm_law(thread_comm_new(me->world, me->rank), me->what, &me->direct, &me->err);
    if (me->status != HP_OK) thread_world_fail(me->world);
    return NULL;
}

/* Returns the bytes that went directly. */
static int64_t threads_obey(int n, const shm_case *what) {
    thread_rank rank[MAX_RANKS];
    thread_world *world = thread_world_new(n);
    int64_t direct = 0;
    for (int r = 0; r < n; r++) {
        rank[r] = (thread_rank){.what = what, .world = world, .rank = r};
        assert_int_equal(pthread_create(&rank[r].thread, NULL, thread_main, &rank[r]), 0);
    }
    for (int r = 0; r < n; r++) pthread_join(rank[r].thread, NULL);
    thread_world_free(world);
    for (int r = 0; r < n; r++) {
        if (rank[r].status != HP_OK && rank[r].status != HP_EDEAD) fail_msg("%s", rank[r].err.text);
        direct += rank[r].direct;
    }
    for (int r = 0; r < n; r++) assert_int_equal(rank[r].status, HP_OK);
    return direct;
}

static void threads_keep_messages_in_order(void **state) {
    (void)state;
    hp_peer_ops peers;
    const hp_memory_ops some = some_reach(&peers);
    int64_t direct[3] = {0};
    for (uint64_t seed = 1; seed <= law_cases(18); seed++) {
        const shm_case what = {seed % 3 == 2 ? &some : &hp_memory_shared, seed % 3 == 1, seed % 2 == 1, seed};
        direct[seed % 3] += threads_obey(2 + (int)(seed * 5 % 11), &what);
    }
    for (int i = 0; i < 3; i++) assert_true(direct[i] > 0);
}

/* --- more messages than a queue has notes --- */

/* Every other message is short enough to come with its note. */
enum { MANY = 300, WORDS = 12, TAG = 5 };

static int words_of(int i) {
    return i % 2 ? 1 : WORDS;
}

static hp_status start_many(hp_comm *comm, int32_t *value, int *handle, hp_error *err) {
    for (int i = 0; i < MANY; i++) {
        int32_t *at = &value[WORDS * i];
        for (int w = 0; w < WORDS; w++) at[w] = comm->rank == 0 ? 7 * i + w : -1;
        const hp_comm_op op = {.kind = comm->rank == 0 ? HP_COMM_SEND : HP_COMM_RECV,
                               .peer = 1 - comm->rank,
                               .tag = TAG + i % 3,
                               .dtype = HP_I32,
                               .count = words_of(i),
                               .data = at,
                               .backend = HP_BACKEND_SHM};
        HP_TRY(comm->ops->start(comm, &op, &handle[i], err));
    }
    return HP_OK;
}

/* The sender polls its last message first; the receiver starts once the sender has sent all it can. */
static hp_status play_many(hp_comm *comm, int32_t *value, hp_error *err) {
    int handle[MANY];
    double all[2];
    if (comm->rank == 0) HP_TRY(start_many(comm, value, handle, err));
    HP_TRY(hp_comm_share(comm, 0, all, "the other", err));
    if (comm->rank == 1) HP_TRY(start_many(comm, value, handle, err));
    for (int i = MANY - 1; i >= 0; i--)
        for (bool done = false; !done; sched_yield()) HP_TRY(comm->ops->test(comm, handle[i], &done, err));
    for (int i = 0; i < MANY; i++)
        for (int w = 0; w < words_of(i); w++)
            if (value[WORDS * i + w] != 7 * i + w)
                return hp_fail(err, HP_EINTERNAL, "message %d, word %d: %d", i, w, value[WORDS * i + w]);
    return HP_OK;
}

static void *many_main(void *arg) {
    thread_rank *me = arg;
    const shm_case what = {.memory = &hp_memory_shared};
    comm_room room = room_of(&what);
    hp_comm *comm;
    me->status = hp_comm_peer(thread_comm_new(me->world, me->rank), &room.memory, room.at, room.bytes, &comm,
                              &me->err);
    if (me->status == HP_OK) me->status = play_many(comm, (int32_t *)(void *)room.at, &me->err);
    me->direct = comm->direct_bytes;
    if (me->status != HP_OK) thread_world_fail(me->world);
    comm->ops->close(comm);
    comm_room_free(&room);
    return NULL;
}

static void more_messages_than_notes_have_room_arrive_in_order(void **state) {
    (void)state;
    thread_rank rank[2];
    thread_world *world = thread_world_new(2);
    for (int r = 0; r < 2; r++) {
        rank[r] = (thread_rank){.world = world, .rank = r};
        assert_int_equal(pthread_create(&rank[r].thread, NULL, many_main, &rank[r]), 0);
    }
    for (int r = 0; r < 2; r++) pthread_join(rank[r].thread, NULL);
    thread_world_free(world);
    for (int r = 0; r < 2; r++)
        if (rank[r].status != HP_OK) fail_msg("rank %d: %s", r, rank[r].err.text);
    int words = 0;
    for (int i = 0; i < MANY; i++) words += words_of(i);
    assert_int_equal(rank[0].direct, words * (int)sizeof(int32_t));
}

/* --- real ranks: first over MPI only, then directly, with the same messages --- */

static hp_status same_bytes(hp_comm *comm, const shm_case *what, const comm_room *room, hp_error *err) {
    int64_t sent[MAX_RANKS] = {0};
    const int64_t begin = comm->sent_bytes;
    HP_TRY(comm_law(comm, room, true, what->seed, NULL, err));
    const int64_t want = comm->sent_bytes - begin;
    HP_TRY(share_memory(comm, room, err));
    const int64_t middle = comm->sent_bytes;
    HP_TRY(comm_law(comm, room, true, what->seed, sent, err));
    HP_TRY(check_bytes(comm, what, sent, err));
    const int64_t have = comm->sent_bytes - middle;
    if (have == want && (what->memory != &hp_memory_shared || comm->direct_bytes > 0)) return HP_OK;
    return hp_fail(err, HP_EINTERNAL, "rank %d sent %lld bytes over MPI, now %lld, of them %lld straight",
                   comm->rank, (long long)want, (long long)have, (long long)comm->direct_bytes);
}

static int ranks_main(int number) {
    hp_comm *comm;
    hp_error err;
    hp_peer_ops peers;
    const hp_memory_ops some = some_reach(&peers);
    if (hp_comm_mpi_open(&comm, &err) != HP_OK) return 1;
    comm = hp_comm_own(comm);
    const shm_case what = {number == 2 ? &some : &hp_memory_shared, number == 1, true,
                           (uint64_t)(100 + number)};
    comm_room room = room_of(&what);
    if (same_bytes(comm, &what, &room, &err) != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        comm->ops->abort(comm, 1);
    }
    comm->ops->close(comm);
    comm_room_free(&room);
    return 0;
}

static void ranks_of_mpi_keep_messages_in_order_and_count_their_bytes(void **state) {
    (void)state;
    if (system("command -v mpirun >/dev/null") != 0) skip();
    const bool all = law_all("two to five ranks with each of three kinds of memory, not one");
    for (int n = 2; n <= 5; n++)
        for (int number = 0; number < 3; number++) {
            if (!all && number != n % 3) continue;
            char word[2] = {(char)('0' + number), 0};
            assert_int_equal(start_ranks(n, word), 0);
        }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_keep_messages_in_order),
        cmocka_unit_test(more_messages_than_notes_have_room_arrive_in_order),
        cmocka_unit_test(ranks_of_mpi_keep_messages_in_order_and_count_their_bytes),
    };
    if (argc > 1) return ranks_main(atoi(argv[1]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
