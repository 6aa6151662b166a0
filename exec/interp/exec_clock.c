/* exec_clock.c - the common clock. */
#include "exec/interp/exec_clock.h"

#include "base/hash.h"

#include <string.h>
#include <time.h>

enum { ROUNDS = 20, TAG = 1 << 24 /* above the tags of programs */ };
static const double LIMIT_S = 120; /* as the exchanges of comm.c: other ranks may still be starting */

int64_t hp_clock_now_ns(const hp_clock *c) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + c->offset_ns;
}

/* A number that two processes share when CLOCK_MONOTONIC means the same to them. Exact in a double. */
static double boot_number(void) {
    char id[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!f) return 0;
    const size_t n = fread(id, 1, sizeof id, f);
    fclose(f);
    return n ? (double)(hp_hash64(id, n, 0) >> 12) : 0;
}

static hp_status message(hp_comm *comm, hp_comm_kind kind, int peer, double *value, hp_error *err) {
    const hp_comm_op op = {
        .kind = kind, .peer = peer, .tag = TAG, .dtype = HP_F64, .count = 1, .data = value};
    return hp_comm_run(comm, &op, LIMIT_S, "the clocks to be compared", err);
}

/* Rank 0 answers with its time, the other rank believes the answer of the shortest round trip. */
static hp_status answer(hp_comm *comm, int peer, hp_error *err) {
    const hp_clock here = {0};
    for (int i = 0; i < ROUNDS; i++) {
        double t = 0;
        HP_TRY(message(comm, HP_COMM_RECV, peer, &t, err));
        t = (double)hp_clock_now_ns(
            &here); /* microseconds of error after 2^53 ns = 104 days of uptime: harmless */
        HP_TRY(message(comm, HP_COMM_SEND, peer, &t, err));
    }
    return HP_OK;
}

static hp_status ask(hp_comm *comm, hp_clock *c, hp_error *err) {
    const hp_clock here = {0};
    int64_t best = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        double t = 0;
        const int64_t t0 = hp_clock_now_ns(&here);
        HP_TRY(message(comm, HP_COMM_SEND, 0, &t, err));
        HP_TRY(message(comm, HP_COMM_RECV, 0, &t, err));
        const int64_t t1 = hp_clock_now_ns(&here);
        if (t1 - t0 >= best) continue;
        best = t1 - t0;
        c->offset_ns = (int64_t)t - (t0 + t1) / 2;
    }
    return HP_OK;
}

hp_status hp_clock_open(hp_comm *comm, hp_clock *c, hp_error *err) {
    *c = (hp_clock){0};
    double boot[comm->size];
    HP_TRY(hp_comm_share(comm, boot_number(), boot, "the clocks to be compared", err));
    for (int r = 1; r < comm->size; r++) {
        if (boot[r] == boot[0] && boot[0] != 0) continue;
        if (comm->rank == 0) HP_TRY(answer(comm, r, err));
        if (comm->rank == r) HP_TRY(ask(comm, c, err));
    }
    return HP_OK;
}
