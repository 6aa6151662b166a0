/* bench_shm.c - messages between two ranks of a node: through shared memory (comm/peer.c) and over MPI, in
 * turns. usage: mpirun -n 2 bench_shm [ROUNDS]
 *
 * A round of a size is a batch of round trips by either way; which goes first alternates. The figure is half
 * a round trip: median over the rounds, with the middle half of their ratios. Waiting ranks poll without a
 * pause, so two cores must be free. */
#include "exec/comm/comm.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20, WAYS = 2, MOST_ROUNDS = 1000, WARM_ROUNDS = 2 };

typedef struct way {
    const char *name;
    int32_t backend;
} way;
static const way WAY[WAYS] = {{"shm", HP_BACKEND_SHM}, {"MPI", HP_BACKEND_MPI}};

static void must(const hp_comm *comm, hp_status s, const hp_error *err) {
    if (s == HP_OK) return;
    fprintf(stderr, "rank %d: %s\n", comm->rank, err->text);
    comm->ops->abort((hp_comm *)(uintptr_t)comm, 1);
}

static void pass(hp_comm *comm, int kind, int32_t backend, void *data, int64_t bytes) {
    const hp_comm_op op = {.kind = kind,
                           .peer = 1 - comm->rank,
                           .dtype = HP_U8,
                           .count = bytes,
                           .data = data,
                           .backend = backend};
    hp_error err;
    int handle;
    must(comm, comm->ops->start(comm, &op, &handle, &err), &err);
    for (bool done = false; !done;) must(comm, comm->ops->test(comm, handle, &done, &err), &err);
}

/* Seconds of half a round trip. */
static double trip_s(hp_comm *comm, int32_t backend, unsigned char *data, int64_t bytes, int trips) {
    const int first = comm->rank == 0 ? HP_COMM_SEND : HP_COMM_RECV,
              second = comm->rank == 0 ? HP_COMM_RECV : HP_COMM_SEND;
    const double start_s = hp_now_s();
    for (int i = 0; i < trips; i++) {
        data[0] = (unsigned char)i; /* new data every time, in this processor's cache */
        pass(comm, first, backend, data, bytes);
        pass(comm, second, backend, data, bytes);
    }
    return (hp_now_s() - start_s) / (2 * trips);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(hp_comm *comm, unsigned char *data, int64_t bytes, int rounds) {
    static double each[WAYS + 1][MOST_ROUNDS];
    const int trips = bytes < 64 << 10 ? 200 : bytes < 1 << 20 ? 20 : 2;
    for (int r = -WARM_ROUNDS; r < rounds; r++) {
        double s[WAYS];
        for (int k = 0; k < WAYS; k++) {
            const int w = (k + r) & 1;
            s[w] = trip_s(comm, WAY[w].backend, data, bytes, trips);
        }
        if (r < 0) continue;
        for (int w = 0; w < WAYS; w++) each[w][r] = s[w];
        each[WAYS][r] = s[1] / s[0];
    }
    for (int w = 0; w <= WAYS; w++) qsort(each[w], (size_t)rounds, sizeof each[w][0], by_value);
    if (comm->rank > 0) return;
    printf("%9lld B:", (long long)bytes);
    for (int w = 0; w < WAYS; w++)
        printf("  %s %10.2f us %7.2f GB/s", WAY[w].name, 1e6 * each[w][rounds / 2],
               1e-9 * (double)bytes / each[w][rounds / 2]);
    printf("  MPI/shm %5.2f (%.2f to %.2f)\n", each[WAYS][rounds / 2], each[WAYS][rounds / 4],
           each[WAYS][3 * rounds / 4]);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const int asked = argc > 1 ? atoi(argv[1]) : 41, rounds = asked < MOST_ROUNDS ? asked : MOST_ROUNDS;
    const hp_memory memory = {.ops = &hp_memory_shared};
    hp_comm *mpi, *comm;
    void *data;
    hp_error err;
    if (hp_comm_mpi_open(&mpi, &err) != HP_OK || mpi->size != 2) {
        fprintf(stderr, "usage: mpirun -n 2 bench_shm [ROUNDS]\n");
        return 2;
    }
    must(mpi, memory.ops->alloc(&memory, MOST_BYTES, &data, &err), &err);
    must(mpi, hp_comm_peer(mpi, &memory, data, MOST_BYTES, &comm, &err), &err);
    memset(data, 1, MOST_BYTES);
    for (int64_t bytes = 1; bytes <= MOST_BYTES; bytes *= 4) measure(comm, data, bytes, rounds);
    if (comm->rank == 0 && comm->direct_bytes == 0)
        fprintf(stderr, "no message went through shared memory\n");
    comm->ops->close(comm);
    memory.ops->free(&memory, data, MOST_BYTES);
    return 0;
}
