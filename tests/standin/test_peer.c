/* test_peer.c - messages directly from one process's GPU memory to another's, on stand-in GPUs. The stand-in
 * keeps CUDA's laws of memory between processes. MPI ranks get every message, by whichever route, and none
 * passes through the host if memory can be reached. This program starts itself under mpirun. */
#include "exec/cuda/runtime/cuda.h"
#include "tests/support/exec/comm_law.h"
#include "tests/support/standin/standin_child.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 5000, SEEDS = 4, LAWS = 6, MAX_RANKS = 4 };

/* --- one process's memory in another --- */

static int to_other, from_other;

static void say(const void *what, size_t bytes) {
    CHECK(write(to_other, what, bytes) == (ssize_t)bytes);
}

static void hear(void *what, size_t bytes) {
    CHECK(read(from_other, what, bytes) == (ssize_t)bytes);
}

/* Runs the owner and a guest, which opens the owner's memory; ends when the guest does. */
static void two_processes(void (*owner)(void), void (*guest)(void)) {
    int there[2], back[2], status = 1;
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    const pid_t child = fork();
    to_other = child == 0 ? back[1] : there[1];
    from_other = child == 0 ? there[0] : back[0];
    if (child == 0) {
        guest();
        _exit(0);
    }
    owner();
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static cudaIpcMemHandle_t offered(unsigned char *d) {
    cudaIpcMemHandle_t handle, none;
    void *own;
    CHECK(cudaIpcGetMemHandle(&none, d + 1) == cudaErrorInvalidValue);
    CUDA(cudaIpcGetMemHandle(&handle, d));
    CHECK(cudaIpcOpenMemHandle(&own, handle, cudaIpcMemLazyEnablePeerAccess) == cudaErrorDeviceUninitialized);
    return handle;
}

static void *opened(void) {
    cudaIpcMemHandle_t handle;
    void *at = NULL;
    hear(&handle, sizeof handle);
    CHECK(cudaIpcOpenMemHandle(&at, handle, 0) == cudaErrorInvalidValue);
    CUDA(cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess));
    return at;
}

/* Offers memory, changes it while it is open in the guest, frees it after that. */
static void owns(void) {
    unsigned char host[N], *other = new_device(100), *d = new_device(N);
    char word;
    const cudaIpcMemHandle_t handle = offered(d);
    for (int i = 0; i < N; i++) host[i] = (unsigned char)(i % 251);
    CUDA(cudaMemcpy(d, host, N, cudaMemcpyHostToDevice));
    say(&handle, sizeof handle);
    hear(&word, 1);
    CUDA(cudaMemset(d, 255, 1));
    say("", 1);
    hear(&word, 1);
    CUDA(cudaFree(other));
    CUDA(cudaFree(d));
}

static void visits(void) {
    unsigned char host[N], *at = opened(), *copy = new_device(N);
    const cudaStream_t s = new_stream();
    char word;
    say("", 1);
    hear(&word, 1);
    CUDA(cudaMemcpyAsync(copy, at, N, cudaMemcpyDefault, s));
    CHECK(cudaMemcpyAsync(copy, at + 1, N, cudaMemcpyDefault, s) == cudaErrorInvalidValue);
    CHECK(cudaFree(at) == cudaErrorInvalidValue);
    CUDA(cudaIpcCloseMemHandle(at));
    CHECK(cudaIpcCloseMemHandle(at) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(copy, at, 1, cudaMemcpyDefault, s) == cudaErrorInvalidValue);
    CUDA(cudaMemcpy(host, copy, N, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) CHECK(host[i] == (i ? i % 251 : 255));
    say("", 1);
}

static void in_good_order(void) {
    two_processes(owns, visits);
}

static void frees_too_early(void) {
    void *d = new_device(N);
    char word;
    const cudaIpcMemHandle_t handle = offered(d);
    say(&handle, sizeof handle);
    hear(&word, 1);
    cudaFree(d);
}

static void opens_alone(void) {
    opened();
    say("", 1);
}

static void too_early(void) {
    two_processes(frees_too_early, opens_alone);
}

static void touches(void) {
    const volatile unsigned char *at = opened();
    say("", 1);
    (void)at[0]; /* reads it */
    _exit(0);
}

static void offers(void) {
    unsigned char *d = new_device(N);
    char word;
    const cudaIpcMemHandle_t handle = offered(d);
    say(&handle, sizeof handle);
    hear(&word, 1);
}

static void by_the_host(void) {
    two_processes(offers, touches);
}

static void memory_is_the_same_in_another_process(void **state) {
    (void)state;
    assert_int_equal(children_failed(in_good_order, SEEDS), 0);
    assert_false(child_law(too_early, NULL, NULL, true));
    assert_false(child_law(by_the_host, NULL, NULL, true));
}

/* --- ranks --- */

typedef struct route_law { /* the injected fault, and the pairs that it leaves without a direct route */
    const char *fails;
    bool sums;
    bool (*apart)(int a, int b);
} route_law;

static bool none(int a, int b) {
    return a == b;
}

static bool with_first(int a, int b) {
    return a == b || a == 0 || b == 0;
}

static bool with_each_other(int a, int b) {
    return a == b || a + b == 1; /* 0 and 1 */
}

/* Messages through the host need page-locked memory: without any, there were none. */
static const route_law ROUTES[] = {{"", true, none},
                                   {"cudaHostAlloc:1", false, none},
                                   {"cudaIpcGetMemHandle:1@0", true, with_first},
                                   {"cudaIpcOpenMemHandle:1@1", true, with_each_other},
                                   {"mapping:1@0", true, with_each_other}, /* opens, but reads other bytes */
                                   {"mapping:1@1", true, with_each_other}};

static hp_status play_route(hp_comm *comm, const comm_room *room, const route_law *route, hp_error *err) {
    int64_t sent[MAX_RANKS] = {0}, want = 0;
    for (uint64_t seed = 1; seed <= law_cases(LAWS); seed++)
        HP_TRY(comm_law(comm, room, route->sums, seed * 100 + (uint64_t)comm->size, sent, err));
    for (int r = 0; r < comm->size; r++)
        if (!route->apart(comm->rank, r)) want += sent[r];
    if (comm->direct_bytes == want && comm->sent_bytes >= want) return HP_OK;
    return hp_fail(err, HP_EINTERNAL, "rank %d: %lld bytes went straight, not %lld", comm->rank,
                   (long long)comm->direct_bytes, (long long)want);
}

/* Ranks connect; their trials leave the memory unchanged. */
static hp_status meet(hp_comm *inner, const comm_room *room, hp_comm **comm, hp_error *err) {
    const hp_memory *m = &room->memory;
    unsigned char before[3 * N], after[3 * N];
    for (int i = 0; i < 3 * N; i++) before[i] = (unsigned char)(i % 253);
    HP_TRY(m->ops->put(m, room->at, before, sizeof before, err));
    HP_TRY(hp_comm_peer(inner, m, room->at, room->bytes, comm, err));
    HP_TRY(m->ops->get(m, after, room->at, sizeof after, err));
    if (memcmp(before, after, sizeof before) == 0) return HP_OK;
    return hp_fail(err, HP_EINTERNAL, "rank %d: a trial changed the memory", inner->rank);
}

static int ranks_main(const route_law *route) {
    hp_comm *comm, *mpi;
    hp_error err;
    setenv("HPLAN_STANDIN_FAIL", route->fails, 1);
    if (hp_comm_mpi_open(&mpi, &err) != HP_OK) return 1;
    mpi = hp_comm_own(mpi);
    comm_room room = comm_room_new(&hp_memory_cuda);
    hp_status s = meet(hp_comm_staged(mpi, &room.memory), &room, &comm, &err);
    if (s == HP_OK) s = play_route(comm, &room, route, &err);
    if (s != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        comm->ops->abort(comm, 1);
    }
    comm->ops->close(comm);
    comm_room_free(&room);
    return 0;
}

static void messages_arrive_by_every_route(void **state) {
    (void)state;
    if (system("command -v mpirun >/dev/null") != 0) skip();
    const bool all = law_all("messages straight between two and four ranks, and another mapping that fails");
    const int routes = (int)(sizeof ROUTES / sizeof *ROUTES) - !all;
    for (int i = 0; i < routes; i++) {
        const bool any =
            all && i == 0; /* number of ranks; with three there are pairs with a route, and one without */
        for (int n = any ? 2 : 3; n <= (any ? MAX_RANKS : 3); n++) {
            char seed[16], route[16];
            snprintf(seed, sizeof seed, "%d", n + i);
            snprintf(route, sizeof route, "%d", i);
            setenv("HPLAN_STANDIN_SEED", seed, 1);
            assert_int_equal(start_ranks(n, route), 0);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_the_same_in_another_process),
        cmocka_unit_test(messages_arrive_by_every_route),
    };
    if (argc > 1) return ranks_main(&ROUTES[atoi(argv[1])]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
