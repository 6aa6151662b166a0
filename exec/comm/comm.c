/* comm.c - waiting with a deadline, and the small exchanges of a run's start and end. */
#include "exec/comm/comm.h"
#include "base/alloc.h"
#include "base/clock.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const char *const KINDS[] = {"send to rank", "receive from rank", "collective"};

static hp_status with_collectives(hp_status opened, hp_comm **comm) {
    if (opened == HP_OK) *comm = hp_comm_own(*comm);
    return opened;
}

hp_status hp_comm_open(hp_comm **comm, hp_error *err) {
    /* set for each process by Open MPI's mpirun and by PMIx and PMI launchers (srun) */
    static const char *const SIGNS[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (getenv(SIGNS[i])) return with_collectives(hp_comm_mpi_open(comm, err), comm);
    return with_collectives(hp_comm_self_open(comm, err), comm);
}

static hp_status stalled(const hp_comm *comm, const hp_comm_op *op, double limit_s, const char *what,
                         hp_error *err) {
    char peer[32] = "";
    if (op->kind != HP_COMM_COLLECTIVE) snprintf(peer, sizeof peer, " %d", op->peer);
    return hp_fail(err, HP_ESTALL,
                   "stalled: rank %d waited %.0f s for %s (%s%s); is another rank stopped or dead?",
                   comm->rank, limit_s, what, KINDS[op->kind], peer);
}

hp_status hp_comm_run(hp_comm *comm, const hp_comm_op *op, double limit_s, const char *what, hp_error *err) {
    int handle = -1;
    HP_TRY(comm->ops->start(comm, op, &handle, err));
    const double start_s = hp_now_s();
    for (bool done = false;;) {
        HP_TRY(comm->ops->test(comm, handle, &done, err));
        if (done) return HP_OK;
        if (hp_now_s() - start_s > limit_s) return stalled(comm, op, limit_s, what, err);
        sched_yield();
    }
}

hp_status hp_comm_share_within(hp_comm *comm, double value, double *all, double limit_s, const char *what,
                               hp_error *err) {
    for (int r = 0; r < comm->size; r++) all[r] = r == comm->rank ? value : 0;
    const hp_comm_op op = {.kind = HP_COMM_COLLECTIVE,
                           .group = HP_COMM_WORLD,
                           .dtype = HP_F64,
                           .count = comm->size,
                           .data = all};
    return hp_comm_run(comm, &op, limit_s, what, err);
}

hp_status hp_comm_share(hp_comm *comm, double value, double *all, const char *what, hp_error *err) {
    return hp_comm_share_within(comm, value, all, HP_COMM_SETUP_LIMIT_S, what, err);
}

/* Sends the bytes as sums of whole numbers, which double precision holds exactly: all
 * terms but one are zero. */
hp_status hp_comm_share_bytes(hp_comm *comm, const void *mine, int64_t n, void *all, const char *what,
                              hp_error *err) {
    double *value = hp_zeroed((size_t)(n * comm->size) + 1, sizeof *value);
    for (int64_t i = 0; i < n; i++) value[comm->rank * n + i] = ((const unsigned char *)mine)[i];
    const hp_comm_op op = {.kind = HP_COMM_COLLECTIVE,
                           .group = HP_COMM_WORLD,
                           .dtype = HP_F64,
                           .count = n * comm->size,
                           .data = value};
    const hp_status s = hp_comm_run(comm, &op, HP_COMM_SETUP_LIMIT_S, what, err);
    for (int64_t i = 0; i < n * comm->size && s == HP_OK; i++)
        ((unsigned char *)all)[i] = (unsigned char)value[i];
    free(value);
    return s;
}

hp_status hp_comm_agree_within(hp_comm *comm, hp_status mine, bool *speaker, double limit_s, const char *what,
                               hp_error *err) {
    double *all = hp_alloc(sizeof(double) * (size_t)comm->size);
    hp_error own = {.code = HP_OK, .text = ""};
    hp_status result = hp_comm_share_within(comm, (double)mine, all, limit_s, what, &own);
    *speaker = true;
    if (result != HP_OK) { /* the exchange itself failed: an error of this rank takes precedence */
        if (mine == HP_OK && err) *err = own;
        free(all);
        return mine != HP_OK ? mine : result;
    }
    for (int r = 0; r < comm->size && result == HP_OK; r++) {
        result = (hp_status)all[r];
        *speaker = result != HP_OK && r == comm->rank;
    }
    free(all);
    return result;
}

hp_status hp_comm_agree(hp_comm *comm, hp_status mine, bool *speaker, hp_error *err) {
    return hp_comm_agree_within(comm, mine, speaker, HP_COMM_SETUP_LIMIT_S, "the other ranks to get ready",
                                err);
}
