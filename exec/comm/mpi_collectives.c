/* mpi_collectives.c - each collective as MPI's non-blocking call. */
#include "exec/comm/mpi_collectives.h"

#include "exec/comm/comm_reduce.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* --- types and reductions --- */

static MPI_Datatype bf16 = MPI_DATATYPE_NULL, f16 = MPI_DATATYPE_NULL;

static hp_dtype dtype_of(MPI_Datatype t) {
    static const struct {
        hp_dtype own;
        MPI_Datatype mpi;
    } known[] = {{HP_F32, MPI_FLOAT},
                 {HP_F64, MPI_DOUBLE},
                 {HP_I32, MPI_INT32_T},
                 {HP_U8, MPI_UINT8_T},
                 {HP_I8, MPI_INT8_T}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].mpi == t) return known[i].own;
    return t == bf16 ? HP_BF16 : HP_F16;
}

#define REDUCTION(name, which)                                                                               \
    static void name(void *in, void *inout, int *n, MPI_Datatype *t) {                                       \
        hp_reduce(which, dtype_of(*t), inout, in, *n);                                                       \
    }
REDUCTION(add, HP_REDUCE_SUM)
REDUCTION(least, HP_REDUCE_MIN)
REDUCTION(most, HP_REDUCE_MAX)

hp_status hp_mpi_checked(int code, const char *call, hp_error *err) {
    if (code == MPI_SUCCESS) return HP_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    return hp_fail(err, HP_EINTERNAL, "%s: %s", call, text);
}

hp_status hp_mpi_types_open(hp_mpi_types *t, hp_error *err) {
    static MPI_User_function *const functions[HP_REDUCTIONS] = {add, least, most, add};
    HP_TRY(hp_mpi_checked(MPI_Type_dup(MPI_UINT16_T, &bf16), "MPI_Type_dup", err));
    HP_TRY(hp_mpi_checked(MPI_Type_dup(MPI_UINT16_T, &f16), "MPI_Type_dup", err));
    *t = (hp_mpi_types){.type = {[HP_F32] = MPI_FLOAT,
                                 [HP_F64] = MPI_DOUBLE,
                                 [HP_I32] = MPI_INT32_T,
                                 [HP_U8] = MPI_UINT8_T,
                                 [HP_BF16] = bf16,
                                 [HP_F16] = f16,
                                 [HP_I8] = MPI_INT8_T}};
    for (int r = 0; r < HP_REDUCTIONS; r++)
        HP_TRY(hp_mpi_checked(MPI_Op_create(functions[r], 1, &t->op[r]), "MPI_Op_create", err));
    return HP_OK;
}

void hp_mpi_types_close(hp_mpi_types *t) {
    for (int r = 0; r < HP_REDUCTIONS; r++) MPI_Op_free(&t->op[r]);
    MPI_Type_free(&bf16);
    MPI_Type_free(&f16);
}

/* The library's reduction where it matches plan/collectives. It does not for 16-bit floats, for NaNs, and for
 * bytes: Open MPI 4.1.4's vector loops saturate at the largest value. */
static MPI_Op op_of(const hp_mpi_types *t, const hp_comm_op *op) {
    const bool half = op->dtype == HP_BF16 || op->dtype == HP_F16,
               real = op->dtype == HP_F32 || op->dtype == HP_F64;
    const bool byte = op->dtype == HP_U8 || op->dtype == HP_I8;
    if (op->reduction == HP_REDUCE_SUM || op->reduction == HP_REDUCE_AVG)
        return half || byte ? t->op[HP_REDUCE_SUM] : MPI_SUM;
    return half || real ? t->op[op->reduction] : op->reduction == HP_REDUCE_MIN ? MPI_MIN : MPI_MAX;
}

/* --- counts --- */

typedef struct call {
    hp_mpi_collective *c;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
    MPI_Request *request;
    int64_t elem;
    unsigned char *data;
    int *counts, *places;       /* elements per part, or sent by an all-to-all */
    int *in_counts, *in_places; /* received by an all-to-all */
} call;

static void parts(int *counts, int *places, int n, int64_t total, const int64_t *part, int stride) {
    const int64_t block = (total + n - 1) / n;
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        const int64_t left = total - at, even = block < left ? block : left;
        const int64_t size = part ? part[(int64_t)i * stride] : even;
        counts[i] = (int)size;
        places[i] = (int)at;
        at += size;
    }
}

static hp_status list_parts(call *k, hp_error *err) {
    hp_mpi_collective *c = k->c;
    const size_t n = (size_t)c->n;
    const int64_t *part = c->op.part;
    c->ints = malloc(4 * n * sizeof *c->ints);
    if (!c->ints) return hp_fail(err, HP_EIO, "out of memory for a collective of %d ranks", c->n);
    k->counts = c->ints, k->places = c->ints + n, k->in_counts = c->ints + 2 * n,
    k->in_places = c->ints + 3 * n;
    const bool exchange = c->op.what == HP_COLLECTIVE_ALL_TO_ALL;
    const int64_t even = exchange ? c->op.count - c->op.count % c->n : c->op.count; /* the rest stays */
    parts(k->counts, k->places, c->n, even, part && exchange ? part + (int64_t)c->me * c->n : part, 1);
    parts(k->in_counts, k->in_places, c->n, even, part && exchange ? part + c->me : part,
          exchange ? c->n : 1);
    c->first = k->places[c->me];
    c->own = k->counts[c->me];
    return HP_OK;
}

static unsigned char *mine(const call *k) {
    return k->data + k->c->first * k->elem;
}

static hp_status copy_aside(const call *k, const void *from, int64_t elems, hp_error *err) {
    k->c->scratch = malloc((size_t)(elems * k->elem) + 1);
    if (!k->c->scratch)
        return hp_fail(err, HP_EIO, "out of memory: %lld bytes for a collective",
                       (long long)(elems * k->elem));
    if (from) memcpy(k->c->scratch, from, (size_t)(elems * k->elem));
    return HP_OK;
}

static bool is_root(const call *k) {
    return k->c->me == k->c->op.root;
}

static const void *source(const call *k, const void *otherwise) {
    return k->c->op.source ? k->c->op.source : otherwise;
}

/* --- the calls --- */

#define DO(name, ...) return hp_mpi_checked(MPI_I##name(__VA_ARGS__, k->comm, k->request), "MPI_I" #name, err)

static hp_status allreduce(call *k, hp_error *err) {
    DO(allreduce, source(k, MPI_IN_PLACE), k->data, (int)k->c->op.count, k->type, k->op);
}

static hp_status reduce_scatter(call *k, hp_error *err) {
    const void *from = source(k, k->data);
    if (!k->c->op.source) HP_TRY(copy_aside(k, NULL, k->c->own, err));
    DO(reduce_scatter, from, k->c->scratch ? k->c->scratch : mine(k), k->counts, k->type, k->op);
}

static bool uneven(const call *k) {
    return k->c->op.part || k->c->op.count % k->c->n;
}

static hp_status all_gather(call *k, hp_error *err) {
    const void *from = source(k, MPI_IN_PLACE);
    if (uneven(k)) DO(allgatherv, from, (int)k->c->own, k->type, k->data, k->counts, k->places, k->type);
    DO(allgather, from, (int)k->c->own, k->type, k->data, (int)k->c->own, k->type);
}

static hp_status all_to_all(call *k, hp_error *err) {
    if (!k->c->op.source) HP_TRY(copy_aside(k, k->data, k->c->op.count, err));
    const void *from = source(k, k->c->scratch);
    if (k->c->op.part)
        DO(alltoallv, from, k->counts, k->places, k->type, k->data, k->in_counts, k->in_places, k->type);
    DO(alltoall, from, (int)k->c->own, k->type, k->data, (int)k->c->own, k->type);
}

static hp_status broadcast(call *k, hp_error *err) {
    if (is_root(k) && k->c->op.source) memcpy(k->data, k->c->op.source, (size_t)(k->c->op.count * k->elem));
    DO(bcast, k->data, (int)k->c->op.count, k->type, k->c->op.root);
}

static hp_status reduce(call *k, hp_error *err) {
    const void *from = source(k, is_root(k) ? MPI_IN_PLACE : k->data);
    DO(reduce, from, k->data, (int)k->c->op.count, k->type, k->op, k->c->op.root);
}

static hp_status gather(call *k, hp_error *err) {
    const void *from = source(k, is_root(k) ? MPI_IN_PLACE : mine(k));
    if (uneven(k))
        DO(gatherv, from, (int)k->c->own, k->type, k->data, k->counts, k->places, k->type, k->c->op.root);
    DO(gather, from, (int)k->c->own, k->type, k->data, (int)k->c->own, k->type, k->c->op.root);
}

static hp_status scatter(call *k, hp_error *err) {
    void *to = is_root(k) && !k->c->op.source ? MPI_IN_PLACE : mine(k);
    const void *from = source(k, k->data);
    if (uneven(k))
        DO(scatterv, from, k->counts, k->places, k->type, to, (int)k->c->own, k->type, k->c->op.root);
    DO(scatter, from, (int)k->c->own, k->type, to, (int)k->c->own, k->type, k->c->op.root);
}

static hp_status barrier(call *k, hp_error *err) {
    return hp_mpi_checked(MPI_Ibarrier(k->comm, k->request), "MPI_Ibarrier", err);
}

hp_status hp_mpi_collective_start(hp_mpi_collective *c, const hp_comm_op *op, const hp_mpi_types *t,
                                  MPI_Comm comm, MPI_Request *request, hp_error *err) {
    static hp_status (*const calls[HP_COLLECTIVES])(call *, hp_error *) = {
        [HP_COLLECTIVE_ALLREDUCE] = allreduce,   [HP_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
        [HP_COLLECTIVE_ALL_GATHER] = all_gather, [HP_COLLECTIVE_ALL_TO_ALL] = all_to_all,
        [HP_COLLECTIVE_BROADCAST] = broadcast,   [HP_COLLECTIVE_REDUCE] = reduce,
        [HP_COLLECTIVE_GATHER] = gather,         [HP_COLLECTIVE_SCATTER] = scatter,
        [HP_COLLECTIVE_BARRIER] = barrier};
    if (op->count > INT_MAX)
        return hp_fail(err, HP_EUNAVAIL,
                       "MPI's collectives take at most %d elements, not %lld; choose comm=own", INT_MAX,
                       (long long)op->count);
    *c = (hp_mpi_collective){.op = *op};
    MPI_Comm_size(comm, &c->n);
    MPI_Comm_rank(comm, &c->me);
    call k = {.c = c,
              .type = t->type[op->dtype],
              .op = op_of(t, op),
              .comm = comm,
              .request = request,
              .elem = hp_dtype_bytes((hp_dtype)op->dtype),
              .data = op->data};
    HP_TRY(list_parts(&k, err));
    return calls[op->what](&k, err);
}

/* Divides the sum once it is complete. */
static void average(const hp_mpi_collective *c) {
    const hp_blocks_of ends = hp_collective_infos[c->op.what].ends;
    const int64_t elem = hp_dtype_bytes((hp_dtype)c->op.dtype);
    const int64_t first = ends == HP_BLOCKS_OWN ? c->first : 0,
                  n = ends == HP_BLOCKS_OWN ? c->own : c->op.count;
    if (ends == HP_BLOCKS_ROOT && c->me != c->op.root) return;
    hp_reduce_divide((hp_dtype)c->op.dtype, (unsigned char *)c->op.data + first * elem, n, c->n);
}

void hp_mpi_collective_end(hp_mpi_collective *c) {
    const int64_t elem = hp_dtype_bytes((hp_dtype)c->op.dtype);
    if (c->op.what == HP_COLLECTIVE_REDUCE_SCATTER && c->scratch)
        memcpy((unsigned char *)c->op.data + c->first * elem, c->scratch, (size_t)(c->own * elem));
    if (c->op.reduction == HP_REDUCE_AVG && hp_collective_infos[c->op.what].adds &&
        c->op.what != HP_COLLECTIVE_BARRIER)
        average(c);
    free(c->ints);
    free(c->scratch);
    *c = (hp_mpi_collective){0};
}
