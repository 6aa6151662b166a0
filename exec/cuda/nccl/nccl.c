/* nccl.c - NCCL behind the executor's communicator: messages and all-reduces as groups of NCCL calls. */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include "exec/cuda/nccl/nccl_inside.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* --- operations --- */

static ncclDataType_t type_of(int32_t dtype) {
    static const ncclDataType_t TYPES[] = {ncclFloat32,  ncclFloat64, ncclInt32, ncclUint8,
                                           ncclBfloat16, ncclFloat16, ncclInt8}; /* as hp_dtype */
    return TYPES[dtype];
}

static bool ours(const hp_comm *comm, int backend) {
    (void)comm;
    return backend == HP_BACKEND_NCCL;
}

static int free_handle(hp_nccl *c) {
    int i = 0;
    while (i < c->n_op && c->op[i].used) i++;
    if (i == c->n_op) {
        c->op = realloc(c->op, sizeof *c->op * (size_t)++c->n_op);
        HP_ASSERT(c->op);
    }
    c->op[i] = (hp_nccl_op){.used = true};
    return i;
}

static ncclComm_t comm_of(const hp_nccl *c, const hp_comm_op *op) {
    return op->kind == HP_COMM_COLLECTIVE ? c->group[op->group] : c->world;
}

static cudaStream_t stream_of(const hp_nccl *c, const hp_comm_op *op) {
    return op->kind == HP_COMM_COLLECTIVE ? c->cuda->sums : c->cuda->messages;
}

static int lane_of(const hp_comm_op *op) {
    return op->kind == HP_COMM_COLLECTIVE ? op->group : HP_COMM_WORLD;
}

/* Keeps started operations until the group is complete, sorted by communicator. One stream runs communicators
 * in the order of their first calls. That order must be the same on all ranks, although a member without a
 * part of the data makes no call. */
static void keep(hp_nccl *c, const hp_comm_op *op) {
    if (c->n_pending == c->room) {
        c->room = c->room ? 2 * c->room : 16;
        c->pending = realloc(c->pending, sizeof *c->pending * (size_t)c->room);
        HP_ASSERT(c->pending);
    }
    int at = c->n_pending++;
    for (; at > 0 && lane_of(&c->pending[at - 1].op) > lane_of(op); at--) c->pending[at] = c->pending[at - 1];
    hp_nccl_pending *p = &c->pending[at];
    *p = (hp_nccl_pending){.op = *op, .order = *op->order};
    p->after = malloc(sizeof *p->after * (size_t)(op->order->n + 1));
    HP_ASSERT(p->after);
    for (int i = 0; i < op->order->n; i++) p->after[i] = (cudaEvent_t)op->order->after[i];
    p->order.after = (hp_event *const *)(void *)p->after;
    p->op.order = NULL;
}

static hp_status nccl_start(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err) {
    hp_nccl *c = (hp_nccl *)comm;
    *handle = free_handle(c);
    hp_nccl_op *o = &c->op[*handle];
    if (op->backend != HP_BACKEND_NCCL || !op->order) {
        o->direct = true;
        return c->inner->ops->start(c->inner, op, &o->handle, err);
    }
    const char *lacks = op->kind == HP_COMM_COLLECTIVE
                            ? hp_backend_lacks(op->backend, (hp_collective)op->what,
                                               (hp_reduction)op->reduction, (hp_dtype)op->dtype, !op->source)
                            : NULL;
    if (lacks) {
        o->used = false;
        return hp_fail(err, HP_EUNAVAIL, "rank %d: %s of %s: %s", c->base.rank,
                       hp_collective_infos[op->what].name, hp_dtype_names[op->dtype], lacks);
    }
    o->comm = comm_of(c, op);
    o->done = (cudaEvent_t)op->order->done;
    keep(c, op);
    return HP_OK;
}

static ncclResult_t give(hp_nccl *c, const hp_comm_op *op) {
    const ncclDataType_t type = type_of(op->dtype);
    const cudaStream_t s = stream_of(c, op);
    const size_t n = (size_t)op->count;
    if (op->kind == HP_COMM_SEND) return ncclSend(op->data, n, type, op->peer, comm_of(c, op), s);
    if (op->kind == HP_COMM_RECV) return ncclRecv(op->data, n, type, op->peer, comm_of(c, op), s);
    int me = 0;
    const ncclResult_t code = ncclCommUserRank(comm_of(c, op), &me);
    if (code != ncclSuccess) return code;
    hp_comm_op what = *op;
    if (what.what == HP_COLLECTIVE_BARRIER) what.data = c->greeting; /* nobody reads it */
    return hp_nccl_collective(&what, type, hp_group_size(c->program, op->group), me, comm_of(c, op), s);
}

static void count_sent(hp_nccl *c, const hp_comm_op *op) {
    const int64_t bytes = op->count * hp_dtype_bytes((hp_dtype)op->dtype);
    double share = op->kind == HP_COMM_SEND ? 1 : 0;
    if (op->kind == HP_COMM_COLLECTIVE) /* bytes of an ideal algorithm: NCCL does not tell the real number */
        share = hp_collective_volume((hp_collective)op->what, hp_group_size(c->program, op->group));
    const int64_t sent = (int64_t)(share * (double)bytes);
    c->own_bytes += sent;
    if (op->sent) *op->sent += sent;
}

/* Each communicator reports its own status, and takes no further call before it has. */
static hp_status give_all(hp_nccl *c, hp_error *err) {
    ncclResult_t code = ncclGroupStart();
    for (int i = 0; i < c->n_pending && (code == ncclSuccess || code == ncclInProgress); i++)
        code = give(c, &c->pending[i].op);
    const ncclResult_t end = ncclGroupEnd();
    if (code == ncclSuccess || code == ncclInProgress) code = end;
    hp_status s = HP_OK;
    for (int i = 0; i < c->n_pending && s == HP_OK; i++)
        s = hp_nccl_settled(c, comm_of(c, &c->pending[i].op), code, "ncclGroupEnd", err);
    return s;
}

/* Submits a group: its stream waits for everything that its members wait for, and records all their events
 * together at the end. */
static hp_status nccl_end(hp_comm *comm, hp_error *err) {
    hp_nccl *c = (hp_nccl *)comm;
    hp_status s = HP_OK;
    for (int i = 0; i < c->n_pending && s == HP_OK; i++)
        s = hp_cuda_wait(stream_of(c, &c->pending[i].op), &c->pending[i].order, err);
    if (s == HP_OK && c->n_pending) s = give_all(c, err);
    for (int i = 0; i < c->n_pending; i++) {
        if (s == HP_OK)
            s = hp_cuda_record(c->cuda, stream_of(c, &c->pending[i].op), &c->pending[i].order, err);
        count_sent(c, &c->pending[i].op);
        free(c->pending[i].after);
    }
    c->n_pending = 0;
    return s;
}

static hp_status alive(const hp_nccl *c, ncclComm_t comm, hp_error *err) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
    if (asked != ncclSuccess) return hp_nccl_refused(c, asked, comm, "ncclCommGetAsyncError", err);
    return state == ncclSuccess || state == ncclInProgress ? HP_OK
                                                           : hp_nccl_refused(c, state, comm, "NCCL", err);
}

static hp_status nccl_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    hp_nccl *c = (hp_nccl *)comm;
    hp_nccl_op *o = &c->op[handle];
    if (o->direct) {
        HP_TRY(c->inner->ops->test(c->inner, o->handle, done, err));
    } else {
        HP_TRY(hp_cuda_asked(cudaEventQuery(o->done), "cudaEventQuery", done, err));
        if (!*done) HP_TRY(alive(c, o->comm, err));
    }
    if (*done) o->used = false;
    c->base.sent_bytes = c->own_bytes + c->inner->sent_bytes;
    c->base.direct_bytes = c->inner->direct_bytes;
    return HP_OK;
}

static void nccl_close(hp_comm *comm) {
    hp_nccl *c = (hp_nccl *)comm;
    hp_nccl_close(c);
    c->inner->ops->close(c->inner);
    free(c->op);
    free(c->pending);
    free(c);
}

static void *stop_kernels(void *of) {
    hp_nccl *c = of;
    for (int g = 0; g < c->n_group; g++)
        if (c->group[g]) ncclCommAbort(c->group[g]);
    if (c->world) ncclCommAbort(c->world);
    return NULL;
}

/* NCCL's kernels may wait for a rank that is gone, so they are told to stop before the process exits. That
 * call has no time limit and was seen to hang (NCCL's issues 549 and 992). So another thread calls it, while
 * this one watches and ends the process in any case. */
static void nccl_abort(hp_comm *comm, int code) {
    enum { PATIENCE_S = 10 };
    hp_nccl *c = (hp_nccl *)comm;
    struct timespec until;
    pthread_t thread;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_create(&thread, NULL, stop_kernels, c) == 0) pthread_timedjoin_np(thread, NULL, &until);
    c->inner->ops->abort(c->inner, code);
}

static const hp_comm_ops NCCL = {.name = "nccl",
                                 .join = hp_nccl_join,
                                 .start = nccl_start,
                                 .end = nccl_end,
                                 .test = nccl_test,
                                 .ordered = ours,
                                 .close = nccl_close,
                                 .abort = nccl_abort};

hp_status hp_comm_nccl(hp_comm *inner, const hp_memory *memory, hp_comm **comm, hp_error *err) {
    hp_nccl *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    c->base =
        (hp_comm){.ops = &NCCL, .rank = inner->rank, .size = inner->size, .sent_bytes = inner->sent_bytes};
    c->inner = inner;
    c->cuda = hp_cuda_of(memory);
    const hp_status s = hp_nccl_open(c, err);
    if (s == HP_OK)
        *comm = &c->base;
    else
        free(c);
    return s;
}
