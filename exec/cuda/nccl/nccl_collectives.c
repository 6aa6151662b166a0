/* nccl_collectives.c - collectives as NCCL calls: its own collective for equal parts where it has one, else
 * groups of sends and receives, or of reductions. */
#include "exec/cuda/nccl/nccl_inside.h"

/* Reductions as hplan defines them, except for hp_backend_lacks. NCCL rounds after every addition.
 * It averages integers by dividing the sum, towards zero, and floats by multiplying each
 * contribution by 1/n first. */
static const ncclRedOp_t reductions[HP_REDUCTIONS] = {[HP_REDUCE_SUM] = ncclSum,
                                                      [HP_REDUCE_MIN] = ncclMin,
                                                      [HP_REDUCE_MAX] = ncclMax,
                                                      [HP_REDUCE_AVG] = ncclAvg};

typedef struct call {
    const hp_comm_op *op;
    ncclDataType_t type;
    ncclComm_t comm;
    cudaStream_t stream;
    int n, me;
    int64_t elem;
} call;

typedef struct part {
    int64_t at, count;
} part;

/* Member i's part of the data; in an all-to-all, what goes to i (out) or comes from i. */
static part part_of(const call *k, int i, bool out) {
    const hp_comm_op *op = k->op;
    const bool exchange = op->what == HP_COLLECTIVE_ALL_TO_ALL; /* a remainder stays where it is */
    const int64_t block = exchange ? op->count / k->n : (op->count + k->n - 1) / k->n;
    part p = {0, 0};
    for (int j = 0; j <= i; j++) {
        const int64_t row = out ? (int64_t)k->me * k->n + j : (int64_t)j * k->n + k->me;
        p.at += p.count;
        const int64_t left = op->count - p.at, equal = block < left ? block : left;
        p.count = op->part ? op->part[exchange ? row : j] : equal;
    }
    return p;
}

static bool even(const call *k) {
    return !k->op->part && k->op->count % k->n == 0;
}

static unsigned char *data_at(const call *k, int64_t at) {
    return (unsigned char *)k->op->data + at * k->elem;
}

/* A member's contribution: all of it in `source`, or in place in the data. */
static const void *from(const call *k, int64_t in_place, int64_t in_source) {
    return k->op->source ? (const unsigned char *)k->op->source + in_source * k->elem
                         : (const unsigned char *)data_at(k, in_place);
}

static ncclResult_t send(const call *k, const void *at, int64_t count, int to) {
    return count ? ncclSend(at, (size_t)count, k->type, to, k->comm, k->stream) : ncclSuccess;
}

static ncclResult_t receive(const call *k, int64_t at, int64_t count, int sender) {
    return count ? ncclRecv(data_at(k, at), (size_t)count, k->type, sender, k->comm, k->stream) : ncclSuccess;
}

#define NCCL_TRY(e)                                                                                          \
    do {                                                                                                     \
        const ncclResult_t code_ = (e);                                                                      \
        if (code_ != ncclSuccess && code_ != ncclInProgress) return code_;                                   \
    } while (0)

static ncclResult_t allreduce(const call *k) {
    return ncclAllReduce(from(k, 0, 0), k->op->data, (size_t)k->op->count, k->type,
                         reductions[k->op->reduction], k->comm, k->stream);
}

static ncclResult_t reduce_part(const call *k, int i) {
    const part p = part_of(k, i, false);
    if (!p.count) return ncclSuccess;
    return ncclReduce(from(k, p.at, p.at), data_at(k, p.at), (size_t)p.count, k->type,
                      reductions[k->op->reduction], i, k->comm, k->stream);
}

static ncclResult_t reduce_scatter(const call *k) {
    const part mine = part_of(k, k->me, false);
    if (even(k))
        return ncclReduceScatter(from(k, 0, 0), data_at(k, mine.at), (size_t)mine.count, k->type,
                                 reductions[k->op->reduction], k->comm, k->stream);
    for (int i = 0; i < k->n; i++) NCCL_TRY(reduce_part(k, i));
    return ncclSuccess;
}

static ncclResult_t all_gather(const call *k) {
    const part mine = part_of(k, k->me, false);
    if (even(k))
        return ncclAllGather(from(k, mine.at, 0), k->op->data, (size_t)mine.count, k->type, k->comm,
                             k->stream);
    for (int i = 0; i < k->n; i++) {
        const part p = part_of(k, i, false);
        const void *at = i == k->me ? from(k, p.at, 0) : data_at(k, p.at);
        if (p.count)
            NCCL_TRY(ncclBroadcast(at, data_at(k, p.at), (size_t)p.count, k->type, i, k->comm, k->stream));
    }
    return ncclSuccess;
}

/* Out of place only: see hp_backend_lacks. */
static ncclResult_t all_to_all(const call *k) {
    for (int i = 0; i < k->n; i++) {
        const part out = part_of(k, i, true), in = part_of(k, i, false);
        NCCL_TRY(send(k, from(k, 0, out.at), out.count, i));
        NCCL_TRY(receive(k, in.at, in.count, i));
    }
    return ncclSuccess;
}

static ncclResult_t broadcast(const call *k) {
    return ncclBroadcast(from(k, 0, 0), k->op->data, (size_t)k->op->count, k->type, k->op->root, k->comm,
                         k->stream);
}

static ncclResult_t reduce(const call *k) {
    return ncclReduce(from(k, 0, 0), k->op->data, (size_t)k->op->count, k->type, reductions[k->op->reduction],
                      k->op->root, k->comm, k->stream);
}

/* A member sends its own part to itself as well, unless that is in place already. */
static ncclResult_t gather(const call *k) {
    const part mine = part_of(k, k->me, false);
    const bool root = k->me == k->op->root;
    if (!root || k->op->source) NCCL_TRY(send(k, from(k, mine.at, 0), mine.count, k->op->root));
    for (int i = 0; root && i < k->n; i++) {
        const part p = part_of(k, i, false);
        if (i != k->me || k->op->source) NCCL_TRY(receive(k, p.at, p.count, i));
    }
    return ncclSuccess;
}

static ncclResult_t scatter(const call *k) {
    const part mine = part_of(k, k->me, false);
    const bool root = k->me == k->op->root;
    for (int i = 0; root && i < k->n; i++) {
        const part p = part_of(k, i, false);
        if (i != k->me || k->op->source) NCCL_TRY(send(k, from(k, p.at, p.at), p.count, i));
    }
    return root && !k->op->source ? ncclSuccess : receive(k, mine.at, mine.count, k->op->root);
}

/* Sums one byte into a second one that nobody reads; all barriers of a group share both. */
static ncclResult_t barrier(const call *k) {
    return ncclAllReduce(k->op->data, (unsigned char *)k->op->data + 1, 1, ncclUint8, ncclMax, k->comm,
                         k->stream);
}

ncclResult_t hp_nccl_collective(const hp_comm_op *op, ncclDataType_t type, int n, int me, ncclComm_t comm,
                                cudaStream_t stream) {
    static ncclResult_t (*const calls[HP_COLLECTIVES])(const call *) = {
        [HP_COLLECTIVE_ALLREDUCE] = allreduce,   [HP_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
        [HP_COLLECTIVE_ALL_GATHER] = all_gather, [HP_COLLECTIVE_ALL_TO_ALL] = all_to_all,
        [HP_COLLECTIVE_BROADCAST] = broadcast,   [HP_COLLECTIVE_REDUCE] = reduce,
        [HP_COLLECTIVE_GATHER] = gather,         [HP_COLLECTIVE_SCATTER] = scatter,
        [HP_COLLECTIVE_BARRIER] = barrier};
    const call k = {op, type, comm, stream, n, me, hp_dtype_bytes((hp_dtype)op->dtype)};
    return calls[op->what](&k);
}
