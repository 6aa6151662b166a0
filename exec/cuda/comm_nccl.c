/* comm_nccl.c - NCCL behind the executor's communicator. */
#include "exec/cuda/comm_nccl.h"
#include "exec/cuda/cuda.h"
#include "plan/base/hash.h"

#include <limits.h>
#include <nccl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Communicators are made by all members at once: as long as the slowest rank needs to get there. */
static const double SETUP_LIMIT_S = 120;

typedef struct nccl_group { /* of the joined program; NULL: not a member, or MPI's */
    ncclComm_t comm;
} nccl_group;

typedef struct nccl_op { /* started; its handle is its place */
    bool used, direct;   /* direct: inner's */
    int handle;          /* inner's */
    ncclComm_t comm;
    cudaEvent_t done;
} nccl_op;

typedef struct nccl_pending { /* given between begin and end */
    hp_comm_op op;
    hp_order order;
    cudaEvent_t *after;
} nccl_pending;

typedef struct nccl_comm {
    hp_comm base;
    hp_comm *inner;
    hp_cuda *cuda;
    const hp_program *program;
    ncclComm_t world;
    int n_group;
    nccl_group *group;
    int n_op;
    nccl_op *op;
    int n_pending, room;
    nccl_pending *pending;
    int64_t own_bytes; /* sent by NCCL */
    float *greeting;   /* room for first messages, in the GPU's memory */
} nccl_comm;

/* --- errors --- */

static hp_status refused(const nccl_comm *c, ncclResult_t code, ncclComm_t comm, const char *call,
                         hp_error *err) {
    const char *more = comm ? ncclGetLastError(comm) : "";
    return hp_fail(err, code == ncclRemoteError ? HP_EDEAD : HP_EUNAVAIL, "rank %d: %s: %s%s%s", c->base.rank,
                   call, ncclGetErrorString(code), more && *more ? ": " : "", more ? more : "");
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A non-blocking communicator answers `in progress` until a call has got to its end. */
static hp_status settled(const nccl_comm *c, ncclComm_t comm, ncclResult_t code, const char *call,
                         hp_error *err) {
    const double begin_s = now_s();
    while (code == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
        code = asked == ncclSuccess ? state : asked;
        if (code == ncclInProgress && now_s() - begin_s > SETUP_LIMIT_S)
            return hp_fail(err, HP_ESTALL,
                           "stalled: rank %d waited %.0f s in %s; is another rank stopped or dead?",
                           c->base.rank, SETUP_LIMIT_S, call);
        if (code == ncclInProgress) sched_yield();
    }
    return code == ncclSuccess ? HP_OK : refused(c, code, comm, call, err);
}

/* --- communicators --- */

/* Who has which GPU, as 48 bits that double precision carries. */
static double gpu_identity(const hp_cuda *cuda) {
    char text[HOST_NAME_MAX + 64] = "", bus[32] = "";
    gethostname(text, HOST_NAME_MAX);
    cudaDeviceGetPCIBusId(bus, (int)sizeof bus, cuda->id);
    memcpy(text + strlen(text), bus, sizeof bus);
    return (double)(hp_hash64(text, strlen(text), 0) & 0xffffffffffff);
}

static hp_status check_gpus(nccl_comm *c, hp_error *err) {
    double all[c->base.size];
    HP_TRY(hp_comm_share(c->inner, gpu_identity(c->cuda), all, "the other ranks' GPUs", err));
    for (int a = 0; a < c->base.size; a++)
        for (int b = 0; b < a; b++)
            if (all[a] == all[b])
                return hp_fail(
                    err, HP_EUNAVAIL,
                    "ranks %d and %d have the same GPU, which NCCL does not allow: start one rank per "
                    "GPU, or make the plan with comm=mpi",
                    b, a);
    return HP_OK;
}

/* The first member's identifier, on all members: bytes travel as whole numbers in doubles. */
static hp_status share_id(nccl_comm *c, bool first, ncclUniqueId *id, hp_error *err) {
    double all[c->base.size];
    unsigned char *byte = (unsigned char *)id->internal;
    for (size_t at = 0; at < sizeof id->internal; at += 4) {
        uint32_t word;
        memcpy(&word, byte + at, 4);
        HP_TRY(hp_comm_share(c->inner, first ? (double)word : 0, all, "NCCL's identifier", err));
        double sum = 0;
        for (int r = 0; r < c->base.size; r++) sum += all[r];
        word = (uint32_t)sum;
        memcpy(byte + at, &word, 4);
    }
    return HP_OK;
}

static hp_status open_world(nccl_comm *c, hp_error *err) {
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const bool first = c->base.rank == 0;
    config.blocking = 0;
    memset(&id, 0, sizeof id);
    const ncclResult_t made = first ? ncclGetUniqueId(&id) : ncclSuccess;
    bool speaker;
    HP_TRY(hp_comm_agree(c->inner,
                         made == ncclSuccess ? HP_OK : refused(c, made, NULL, "ncclGetUniqueId", err),
                         &speaker, err));
    HP_TRY(share_id(c, first, &id, err));
    const ncclResult_t code = ncclCommInitRankConfig(&c->world, c->base.size, id, c->base.rank, &config);
    return settled(c, c->world, code, "ncclCommInitRankConfig", err);
}

static void close_groups(nccl_comm *c) {
    for (int g = 0; g < c->n_group; g++)
        if (c->group[g].comm && c->group[g].comm != c->world) ncclCommDestroy(c->group[g].comm);
    free(c->group);
    c->group = NULL;
    c->n_group = 0;
}

static bool has_sums(const hp_program *p, int group) {
    for (int r = 0; r < p->n_role; r++)
        for (int q = 0; q < p->role[r].n_queue; q++) {
            const hp_queue *queue = &p->role[r].queue[q];
            if (queue->kind == HP_QUEUE_COLL && queue->peer == group && queue->backend == HP_BACKEND_NCCL)
                return true;
        }
    return false;
}

/* Splits are calls of all ranks: those of no group pass no colour. Replicas' groups of one number share a
 * call, each with its own colour. */
static hp_status split(nccl_comm *c, const hp_program *p, int group, hp_error *err) {
    const int role = c->base.rank % p->n_role, replica = c->base.rank / p->n_role;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    int colour = NCCL_SPLIT_NOCOLOR;
    if (hp_group_has_role(p, group, role)) colour = p->group[group].all_replicas ? 0 : replica;
    const ncclResult_t code = ncclCommSplit(c->world, colour, c->base.rank, &c->group[group].comm, &config);
    HP_TRY(settled(c, c->world, code, "ncclCommSplit", err));
    return c->group[group].comm ? settled(c, c->group[group].comm, ncclInProgress, "ncclCommSplit", err)
                                : HP_OK;
}

/* --- first messages --- */

static bool carries(const hp_queue *q, bool sums) {
    return q->kind != HP_QUEUE_COMPUTE && q->backend == HP_BACKEND_NCCL && (q->kind == HP_QUEUE_COLL) == sums;
}

/* A byte each way that the program sends anything. */
static ncclResult_t greet_peers(nccl_comm *c, const hp_role *r, int replica) {
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

static hp_status finished(const nccl_comm *c, cudaStream_t stream, hp_error *err) {
    const double begin_s = now_s();
    for (cudaError_t code; (code = cudaStreamQuery(stream)) != cudaSuccess;) {
        if (code != cudaErrorNotReady) return hp_cuda_checked(code, "cudaStreamQuery", err);
        if (now_s() - begin_s > SETUP_LIMIT_S)
            return hp_fail(
                err, HP_ESTALL,
                "stalled: rank %d waited %.0f s for NCCL's first messages; is another rank stopped or "
                "dead?",
                c->base.rank, SETUP_LIMIT_S);
        sched_yield();
    }
    return HP_OK;
}

/* NCCL connects ranks at their first message, in a call that waits for the others: so here, where all ranks
 * come in the same order, and not within a step, where a rank that waits in a call carries no messages for
 * others. */
static hp_status connect_all(nccl_comm *c, hp_error *err) {
    const hp_role *r = &c->program->role[c->base.rank % c->program->n_role];
    HP_TRY(settled(c, c->world, greet_peers(c, r, c->base.rank / c->program->n_role), "NCCL's first messages",
                   err));
    HP_TRY(finished(c, c->cuda->messages, err));
    for (int g = 0; g < c->n_group; g++) {
        const ncclComm_t comm = c->group[g].comm;
        if (!comm) continue;
        const ncclResult_t code =
            ncclAllReduce(c->greeting, c->greeting, 1, ncclFloat32, ncclSum, comm, c->cuda->sums);
        HP_TRY(settled(c, comm, code, "NCCL's first all-reduce", err));
        HP_TRY(finished(c, c->cuda->sums, err));
    }
    return HP_OK;
}

static hp_status nccl_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    nccl_comm *c = (nccl_comm *)comm;
    HP_TRY(c->inner->ops->join(c->inner, p, err));
    close_groups(c);
    c->program = p;
    c->group = calloc((size_t)p->n_group + 1, sizeof *c->group);
    HP_ASSERT(c->group);
    c->n_group = p->n_group;
    for (int g = 0; g < p->n_group; g++)
        if (has_sums(p, g)) HP_TRY(split(c, p, g, err));
    return connect_all(c, err);
}

/* --- operations --- */

static ncclDataType_t type_of(int32_t dtype) {
    static const ncclDataType_t TYPES[] = {ncclFloat32, ncclFloat64,  ncclInt32,
                                           ncclUint8,   ncclBfloat16, ncclFloat16}; /* as hp_dtype */
    return TYPES[dtype];
}

static bool ours(const hp_comm *comm, int backend) {
    (void)comm;
    return backend == HP_BACKEND_NCCL;
}

static int free_handle(nccl_comm *c) {
    int i = 0;
    while (i < c->n_op && c->op[i].used) i++;
    if (i == c->n_op) {
        c->op = realloc(c->op, sizeof *c->op * (size_t)++c->n_op);
        HP_ASSERT(c->op);
    }
    c->op[i] = (nccl_op){.used = true};
    return i;
}

static ncclComm_t comm_of(const nccl_comm *c, const hp_comm_op *op) {
    return op->kind == HP_COMM_ALLREDUCE ? c->group[op->group].comm : c->world;
}

static cudaStream_t stream_of(const nccl_comm *c, const hp_comm_op *op) {
    return op->kind == HP_COMM_ALLREDUCE ? c->cuda->sums : c->cuda->messages;
}

/* Keeps what start was given until the group is whole. */
static void keep(nccl_comm *c, const hp_comm_op *op) {
    if (c->n_pending == c->room) {
        c->room = c->room ? 2 * c->room : 16;
        c->pending = realloc(c->pending, sizeof *c->pending * (size_t)c->room);
        HP_ASSERT(c->pending);
    }
    nccl_pending *p = &c->pending[c->n_pending++];
    *p = (nccl_pending){.op = *op, .order = *op->order};
    p->after = malloc(sizeof *p->after * (size_t)(op->order->n + 1));
    HP_ASSERT(p->after);
    for (int i = 0; i < op->order->n; i++) p->after[i] = (cudaEvent_t)op->order->after[i];
    p->order.after = (hp_event *const *)(void *)p->after;
    p->op.order = NULL;
}

static hp_status nccl_start(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err) {
    nccl_comm *c = (nccl_comm *)comm;
    *handle = free_handle(c);
    nccl_op *o = &c->op[*handle];
    if (op->backend != HP_BACKEND_NCCL || !op->order) {
        o->direct = true;
        return c->inner->ops->start(c->inner, op, &o->handle, err);
    }
    o->comm = comm_of(c, op);
    o->done = (cudaEvent_t)op->order->done;
    keep(c, op);
    return HP_OK;
}

static ncclResult_t give(nccl_comm *c, const hp_comm_op *op) {
    const ncclDataType_t type = type_of(op->dtype);
    const cudaStream_t s = stream_of(c, op);
    const size_t n = (size_t)op->count;
    if (op->kind == HP_COMM_SEND) return ncclSend(op->data, n, type, op->peer, comm_of(c, op), s);
    if (op->kind == HP_COMM_RECV) return ncclRecv(op->data, n, type, op->peer, comm_of(c, op), s);
    return ncclAllReduce(op->data, op->data, n, type, ncclSum, comm_of(c, op), s);
}

static void count_sent(nccl_comm *c, const hp_comm_op *op) {
    const int64_t bytes = op->count * hp_dtype_bytes((hp_dtype)op->dtype);
    if (op->kind == HP_COMM_SEND) c->own_bytes += bytes;
    if (op->kind != HP_COMM_ALLREDUCE) return;
    const int64_t n = hp_group_size(c->program, op->group);
    c->own_bytes += 2 * (n - 1) * bytes / n; /* a ring's; NCCL may choose another */
}

static hp_status give_all(nccl_comm *c, hp_error *err) {
    ncclResult_t code = ncclGroupStart();
    for (int i = 0; i < c->n_pending && (code == ncclSuccess || code == ncclInProgress); i++)
        code = give(c, &c->pending[i].op);
    const ncclResult_t end = ncclGroupEnd();
    if (code == ncclSuccess || code == ncclInProgress) code = end;
    return settled(c, comm_of(c, &c->pending[0].op), code, "ncclGroupEnd", err);
}

/* One group: its stream waits for all that its members wait for, and then their events happen together. */
static hp_status nccl_end(hp_comm *comm, hp_error *err) {
    nccl_comm *c = (nccl_comm *)comm;
    hp_status s = HP_OK;
    for (int i = 0; i < c->n_pending && s == HP_OK; i++)
        s = hp_cuda_wait(stream_of(c, &c->pending[i].op), &c->pending[i].order, err);
    if (s == HP_OK && c->n_pending) s = give_all(c, err);
    for (int i = 0; i < c->n_pending; i++) {
        if (s == HP_OK) s = hp_cuda_record(stream_of(c, &c->pending[i].op), &c->pending[i].order, err);
        count_sent(c, &c->pending[i].op);
        free(c->pending[i].after);
    }
    c->n_pending = 0;
    return s;
}

static hp_status alive(const nccl_comm *c, ncclComm_t comm, hp_error *err) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
    if (asked != ncclSuccess) return refused(c, asked, comm, "ncclCommGetAsyncError", err);
    return state == ncclSuccess || state == ncclInProgress ? HP_OK : refused(c, state, comm, "NCCL", err);
}

static hp_status nccl_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    nccl_comm *c = (nccl_comm *)comm;
    nccl_op *o = &c->op[handle];
    if (o->direct) {
        HP_TRY(c->inner->ops->test(c->inner, o->handle, done, err));
    } else {
        const cudaError_t code = cudaEventQuery(o->done);
        *done = code == cudaSuccess;
        if (code != cudaErrorNotReady) HP_TRY(hp_cuda_checked(code, "cudaEventQuery", err));
        if (!*done) HP_TRY(alive(c, o->comm, err));
    }
    if (*done) o->used = false;
    c->base.sent_bytes = c->own_bytes + c->inner->sent_bytes;
    return HP_OK;
}

static void nccl_close(hp_comm *comm) {
    nccl_comm *c = (nccl_comm *)comm;
    close_groups(c);
    if (c->world) {
        hp_error ignored;
        settled(c, c->world, ncclCommFinalize(c->world), "ncclCommFinalize", &ignored);
        ncclCommDestroy(c->world);
    }
    cudaFree(c->greeting);
    c->inner->ops->close(c->inner);
    free(c->op);
    free(c->pending);
    free(c);
}

/* NCCL's kernels may wait for a rank that is gone: they are told to stop before the process is. */
static void nccl_abort(hp_comm *comm, int code) {
    nccl_comm *c = (nccl_comm *)comm;
    for (int g = 0; g < c->n_group; g++)
        if (c->group[g].comm) ncclCommAbort(c->group[g].comm);
    if (c->world) ncclCommAbort(c->world);
    c->inner->ops->abort(c->inner, code);
}

static const hp_comm_ops NCCL = {.name = "nccl",
                                 .join = nccl_join,
                                 .start = nccl_start,
                                 .end = nccl_end,
                                 .test = nccl_test,
                                 .ordered = ours,
                                 .close = nccl_close,
                                 .abort = nccl_abort};

hp_status hp_comm_nccl(hp_comm *inner, hp_comm **comm, hp_error *err) {
    nccl_comm *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    c->base =
        (hp_comm){.ops = &NCCL, .rank = inner->rank, .size = inner->size, .sent_bytes = inner->sent_bytes};
    c->inner = inner;
    hp_status s = hp_cuda_open(&c->cuda, err);
    if (s == HP_OK) s = check_gpus(c, err);
    if (s == HP_OK)
        s = hp_cuda_checked(cudaMalloc((void **)&c->greeting, 2 * sizeof *c->greeting), "cudaMalloc", err);
    if (s == HP_OK)
        s = hp_cuda_checked(cudaMemset(c->greeting, 0, 2 * sizeof *c->greeting), "cudaMemset", err);
    if (s == HP_OK) s = open_world(c, err);
    if (s == HP_OK)
        *comm = &c->base;
    else
        free(c);
    return s;
}
