/* ranks.c - NCCL's communicators: finds out who has which GPU, and connects the communicators of all ranks
 * and of groups before the first step. */
#include "exec/cuda/nccl/nccl_inside.h"
#include "base/hash.h"
#include "base/clock.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- errors --- */

hp_status hp_nccl_refused(const hp_nccl *c, ncclResult_t code, ncclComm_t comm, const char *call,
                          hp_error *err) {
    const char *more = comm ? ncclGetLastError(comm) : "";
    return hp_fail(err, code == ncclRemoteError ? HP_EDEAD : HP_EUNAVAIL, "rank %d: %s: %s%s%s", c->base.rank,
                   call, ncclGetErrorString(code), more && *more ? ": " : "", more ? more : "");
}

hp_status hp_nccl_settled(const hp_nccl *c, ncclComm_t comm, ncclResult_t code, const char *call,
                          hp_error *err) {
    const double begin_s = hp_now_s();
    while (code == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
        code = asked == ncclSuccess ? state : asked;
        if (code == ncclInProgress && hp_now_s() - begin_s > (double)HP_COMM_SETUP_LIMIT_S)
            return hp_fail(err, HP_ESTALL,
                           "stalled: rank %d waited %.0f s in %s; is another rank stopped or dead?",
                           c->base.rank, (double)HP_COMM_SETUP_LIMIT_S, call);
        if (code == ncclInProgress) sched_yield();
    }
    return code == ncclSuccess ? HP_OK : hp_nccl_refused(c, code, comm, call, err);
}

/* --- communicators --- */

/* What ranks exchange first: their GPU and, from rank 0, NCCL's identifier; or why there is none. */
typedef struct card {
    int32_t code; /* hp_status */
    char why[256];
    uint64_t gpu;
    ncclUniqueId id;
} card;

static uint64_t gpu_identity(const hp_cuda *cuda) {
    char text[HOST_NAME_MAX + 64] = "", bus[32] = "";
    gethostname(text, HOST_NAME_MAX);
    cudaDeviceGetPCIBusId(bus, (int)sizeof bus, cuda->id);
    memcpy(text + strlen(text), bus, sizeof bus);
    return hp_hash64(text, strlen(text), 0);
}

/* Defaults for NCCL's environment variables, which it reads at its first call. Connections are made with the
 * communicator, not during the first all-reduce that switches to another algorithm. In-switch reduction is
 * off, because its order of additions is not ours to fix. ("NCCL user guide", environment variables.) */
static void set_defaults(void) {
    static const char *const DEFAULTS[][2] = {{"NCCL_RUNTIME_CONNECT", "0"}, {"NCCL_NVLS_ENABLE", "0"}};
    for (size_t i = 0; i < sizeof DEFAULTS / sizeof *DEFAULTS; i++) setenv(DEFAULTS[i][0], DEFAULTS[i][1], 0);
}

static hp_status fill_card(hp_nccl *c, card *mine, hp_error *err) {
    const size_t bytes = 2 * sizeof *c->greeting;
    HP_CUDA(cudaMalloc((void **)&c->greeting, bytes));
    HP_CUDA(cudaMemset(c->greeting, 0, bytes));
    mine->gpu = gpu_identity(c->cuda);
    const ncclResult_t made = c->base.rank == 0 ? ncclGetUniqueId(&mine->id) : ncclSuccess;
    return made == ncclSuccess ? HP_OK : hp_nccl_refused(c, made, NULL, "ncclGetUniqueId", err);
}

/* All ranks reach the same answer, in the same words. */
static hp_status check_cards(const hp_nccl *c, const card *all, hp_error *err) {
    for (int a = 0; a < c->base.size; a++)
        if (all[a].code != HP_OK) return hp_fail(err, (hp_status)all[a].code, "%s", all[a].why);
    for (int a = 0; a < c->base.size; a++)
        for (int b = 0; b < a; b++)
            if (all[a].gpu == all[b].gpu)
                return hp_fail(
                    err, HP_EUNAVAIL,
                    "ranks %d and %d have the same GPU, which NCCL does not allow: start one rank per "
                    "GPU, or make the plan with comm=mpi",
                    b, a);
    return HP_OK;
}

static hp_status open_world(hp_nccl *c, const ncclUniqueId *id, hp_error *err) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t code = ncclCommInitRankConfig(&c->world, c->base.size, *id, c->base.rank, &config);
    return hp_nccl_settled(c, c->world, code, "ncclCommInitRankConfig", err);
}

hp_status hp_nccl_open(hp_nccl *c, hp_error *err) {
    hp_error why = {.code = HP_OK, .text = ""};
    card mine = {0}, *all = calloc((size_t)c->base.size, sizeof *all);
    HP_ASSERT(all);
    set_defaults();
    mine.code = fill_card(c, &mine, &why);
    snprintf(mine.why, sizeof mine.why, "%.250s", why.text);
    hp_status s = hp_comm_share_bytes(c->inner, &mine, sizeof mine, all, "the other ranks' GPUs", err);
    if (s == HP_OK) s = check_cards(c, all, err);
    if (s == HP_OK) s = open_world(c, &all[0].id, err);
    free(all);
    return s;
}

/* --- their end --- */

/* A finalised communicator can be destroyed without waiting for the others. */
static void retire(const hp_nccl *c, ncclComm_t comm) {
    hp_error ignored;
    if (!comm) return;
    hp_nccl_settled(c, comm, ncclCommFinalize(comm), "ncclCommFinalize", &ignored);
    ncclCommDestroy(comm);
}

static void leave(hp_nccl *c) {
    for (int g = 0; g < c->n_group; g++) retire(c, c->group[g]);
    free(c->group);
    c->group = NULL;
    c->n_group = 0;
}

void hp_nccl_close(hp_nccl *c) {
    leave(c);
    retire(c, c->world);
    cudaFree(c->greeting);
}

/* --- groups --- */

static bool has_sums(const hp_program *p, int group) {
    for (int r = 0; r < p->n_role; r++)
        for (int q = 0; q < p->role[r].n_queue; q++) {
            const hp_queue *queue = &p->role[r].queue[q];
            if (queue->kind == HP_QUEUE_COLL && queue->peer == group && queue->backend == HP_BACKEND_NCCL)
                return true;
        }
    return false;
}

/* All ranks call every split; ranks in no group pass no colour. Replicas' groups with the same index share a
 * call, each with its own colour. */
static hp_status split(hp_nccl *c, const hp_program *p, int group, hp_error *err) {
    const int role = c->base.rank % p->n_role, replica = c->base.rank / p->n_role;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    int colour = NCCL_SPLIT_NOCOLOR;
    if (hp_group_has_role(p, group, role)) colour = p->group[group].all_replicas ? 0 : replica;
    const ncclResult_t code = ncclCommSplit(c->world, colour, c->base.rank, &c->group[group], &config);
    HP_TRY(hp_nccl_settled(c, c->world, code, "ncclCommSplit", err));
    return c->group[group] ? hp_nccl_settled(c, c->group[group], ncclInProgress, "ncclCommSplit", err)
                           : HP_OK;
}

/* --- first messages --- */

static bool carries(const hp_queue *q, bool sums) {
    return q->kind != HP_QUEUE_COMPUTE && q->backend == HP_BACKEND_NCCL && (q->kind == HP_QUEUE_COLL) == sums;
}

/* Exchanges a byte with every peer and direction that the program uses. */
static ncclResult_t greet_peers(hp_nccl *c, const hp_role *r, int replica) {
    ncclResult_t code = ncclGroupStart();
    for (int q = 0; q < r->n_queue && code == ncclSuccess; q++) {
        if (!carries(&r->queue[q], false)) continue;
        const int peer = replica * c->program->n_role + r->queue[q].peer;
        if (r->queue[q].kind == HP_QUEUE_SEND)
            code = ncclSend(c->greeting, 1, ncclUint8, peer, c->world, c->cuda->messages);
        else
            code = ncclRecv(c->greeting + 1, 1, ncclUint8, peer, c->world, c->cuda->messages);
        if (code == ncclInProgress) code = ncclSuccess;
    }
    const ncclResult_t end = ncclGroupEnd();
    return code == ncclSuccess ? end : code;
}

static hp_status finished(const hp_nccl *c, cudaStream_t stream, hp_error *err) {
    const double begin_s = hp_now_s();
    for (bool idle = false;;) {
        HP_TRY(hp_cuda_asked(cudaStreamQuery(stream), "cudaStreamQuery", &idle, err));
        if (idle) return HP_OK;
        if (hp_now_s() - begin_s > (double)HP_COMM_SETUP_LIMIT_S)
            return hp_fail(
                err, HP_ESTALL,
                "stalled: rank %d waited %.0f s for NCCL's first messages; is another rank stopped or "
                "dead?",
                c->base.rank, (double)HP_COMM_SETUP_LIMIT_S);
        sched_yield();
    }
}

/* NCCL connects two ranks at their first message, in a call that blocks. Here all ranks come in the same
 * order; within a step, a rank blocked in such a call would carry no messages for others. All-reduces
 * are connected when their communicator is made (connect_early), whatever algorithm they use later; the
 * one here proves it. */
static hp_status connect_all(hp_nccl *c, hp_error *err) {
    const hp_role *r = &c->program->role[c->base.rank % c->program->n_role];
    HP_TRY(hp_nccl_settled(c, c->world, greet_peers(c, r, c->base.rank / c->program->n_role),
                           "NCCL's first messages", err));
    HP_TRY(finished(c, c->cuda->messages, err));
    for (int g = 0; g < c->n_group; g++) {
        const ncclComm_t comm = c->group[g];
        if (!comm) continue;
        const ncclResult_t code =
            ncclAllReduce(c->greeting, c->greeting, 1, ncclFloat32, ncclSum, comm, c->cuda->sums);
        HP_TRY(hp_nccl_settled(c, comm, code, "NCCL's first all-reduce", err));
        HP_TRY(finished(c, c->cuda->sums, err));
    }
    return HP_OK;
}

hp_status hp_nccl_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    hp_nccl *c = (hp_nccl *)comm;
    HP_TRY(c->inner->ops->join(c->inner, p, err));
    leave(c);
    c->program = p;
    c->group = calloc((size_t)p->n_group + 1, sizeof *c->group);
    HP_ASSERT(c->group);
    c->n_group = p->n_group;
    for (int g = 0; g < p->n_group; g++)
        if (has_sums(p, g)) HP_TRY(split(c, p, g, err));
    return connect_all(c, err);
}
