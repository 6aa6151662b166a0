/* mpi.c - messages over MPI, non-blocking, and the library's own collectives. MPI makes no progress in the
 * background: all progress is made inside test. */
#include "exec/comm/comm.h"
#include "base/alloc.h"
#include "exec/comm/mpi_collectives.h"
#include "exec/comm/segments.h"

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h> // MPIX_Query_cuda_support
#endif
#include <stdlib.h>
#include <string.h>

/* MPI counts are ints: longer messages are sent in pieces. */
enum { PIECE_ELEMS = 1 << 28 };

typedef struct mpi_op {
    bool used, collective;
    int n_request; /* pieces */
    MPI_Request *request, one;
    hp_mpi_collective whole;
} mpi_op;

/* A group's communicator for the library's collectives. Each group needs its own, even with equal
 * ranks: only collectives of one group start in the same order everywhere. The next program's groups
 * reuse the communicators. */
typedef struct mpi_group {
    MPI_Comm comm; /* MPI_COMM_NULL: one rank */
    int n, me, *rank;
    bool used; /* in use by a group of the joined program */
} mpi_group;

typedef struct mpi_comm {
    hp_comm base;
    MPI_Comm p2p;
    int n_group;
    mpi_group *group;  /* 0: all ranks */
    int32_t *group_of; /* index into group per group of the program; -1: not a member, or calls
                        * no such collectives */
    hp_mpi_types types;
    int n_op;
    mpi_op **op;
} mpi_comm;

static void count_sent(mpi_comm *c, const hp_comm_op *what, int64_t bytes) {
    c->base.sent_bytes += bytes;
    if (what->sent) *what->sent += bytes;
}

/* --- collectives --- */

static hp_status collective_start(mpi_comm *c, mpi_op *op, const hp_comm_op *what, hp_error *err) {
    const int32_t at = what->group == HP_COMM_WORLD ? 0 : c->group_of[what->group];
    HP_ASSERT(at >= 0);
    const MPI_Comm comm = c->group[at].n > 1 ? c->group[at].comm : MPI_COMM_SELF;
    op->collective = true;
    op->n_request = 1;
    op->request = &op->one;
    count_sent(
        c, what,
        (int64_t)(hp_collective_volume((hp_collective)what->what, c->group[at].n) * (double)what->count *
                  hp_dtype_bytes((hp_dtype)what->dtype))); /* ideal bytes: MPI does not tell */
    return hp_mpi_collective_start(&op->whole, what, &c->types, comm, op->request, err);
}

/* --- send, receive --- */

static hp_status message_start(mpi_comm *c, mpi_op *op, const hp_comm_op *what, hp_error *err) {
    const int64_t size = hp_dtype_bytes((hp_dtype)what->dtype);
    const int n = (int)((what->count + PIECE_ELEMS - 1) / PIECE_ELEMS);
    op->request = n <= 1 ? &op->one : calloc((size_t)n, sizeof *op->request);
    HP_ASSERT(op->request);
    for (int i = 0; i < n; i++) {
        const int64_t begin = (int64_t)i * PIECE_ELEMS, left = what->count - begin;
        const int count = (int)(left < PIECE_ELEMS ? left : PIECE_ELEMS);
        unsigned char *at = (unsigned char *)what->data + begin * size;
        const MPI_Datatype type = c->types.type[what->dtype];
        HP_TRY(
            what->kind == HP_COMM_SEND
                ? hp_mpi_checked(MPI_Isend(at, count, type, what->peer, what->tag, c->p2p, &op->request[i]),
                                 "MPI_Isend", err)
                : hp_mpi_checked(MPI_Irecv(at, count, type, what->peer, what->tag, c->p2p, &op->request[i]),
                                 "MPI_Irecv", err));
        op->n_request = i + 1;
    }
    if (what->kind == HP_COMM_SEND) count_sent(c, what, what->count * size);
    return HP_OK;
}

/* --- the vtable --- */

static int free_handle(mpi_comm *c) {
    for (int i = 0; i < c->n_op; i++)
        if (!c->op[i]->used) return i;
    c->op = hp_realloc(c->op, sizeof *c->op * (size_t)(c->n_op + 1));
    c->op[c->n_op] = hp_zeroed(1, sizeof **c->op);
    return c->n_op++;
}

static hp_status mpi_start(hp_comm *comm, const hp_comm_op *what, int *handle, hp_error *err) {
    mpi_comm *c = (mpi_comm *)comm;
    *handle = free_handle(c);
    mpi_op *op = c->op[*handle];
    op->used = true;
    op->collective = false;
    op->n_request = 0;
    return what->kind == HP_COMM_COLLECTIVE ? collective_start(c, op, what, err)
                                            : message_start(c, op, what, err);
}

static hp_status mpi_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    mpi_comm *c = (mpi_comm *)comm;
    mpi_op *op = c->op[handle];
    int flag = 1;
    HP_TRY(hp_mpi_checked(MPI_Testall(op->n_request, op->request, &flag, MPI_STATUSES_IGNORE), "MPI_Testall",
                          err));
    *done = flag != 0;
    if (!flag) return HP_OK;
    if (op->collective) hp_mpi_collective_end(&op->whole);
    if (op->request != &op->one) free(op->request);
    op->used = false;
    return HP_OK;
}

static int find_group(const mpi_comm *c, const int *rank, int n) {
    for (int i = 0; i < c->n_group; i++)
        if (!c->group[i].used && c->group[i].n == n &&
            memcmp(c->group[i].rank, rank, sizeof *rank * (size_t)n) == 0)
            return i;
    return -1;
}

/* Takes ownership of `rank`. Collective: over the listed ranks. */
static hp_status add_group(mpi_comm *c, int *rank, int n, int tag, hp_error *err) {
    c->group = hp_realloc(c->group, sizeof *c->group * (size_t)(c->n_group + 1));
    mpi_group *group = &c->group[c->n_group++];
    *group = (mpi_group){.comm = MPI_COMM_NULL, .n = n, .rank = rank};
    while (rank[group->me] != c->base.rank) group->me++;
    if (n == 1) return HP_OK;
    MPI_Group all, some;
    MPI_Comm_group(c->p2p, &all);
    MPI_Group_incl(all, n, rank, &some);
    const hp_status s =
        hp_mpi_checked(MPI_Comm_create_group(c->p2p, some, tag, &group->comm), "MPI_Comm_create_group", err);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return s;
}

/* Does any role, hence any member, call the library's collectives of this group? */
static bool calls_library(const hp_program *p, int group) {
    for (int r = 0; r < p->n_role; r++)
        for (int q = 1; q < p->role[r].n_queue; q++) {
            const hp_queue *queue = &p->role[r].queue[q];
            if (queue->kind == HP_QUEUE_COLL && queue->peer == group && queue->backend == HP_BACKEND_MPI)
                return true;
        }
    return false;
}

static hp_status join_group(mpi_comm *c, const hp_program *p, int group, hp_error *err) {
    const int role = c->base.rank % p->n_role, replica = c->base.rank / p->n_role;
    c->group_of[group] = -1;
    if (!hp_group_has_role(p, group, role) || !calls_library(p, group)) return HP_OK;
    const int n = hp_group_size(p, group);
    int *rank = hp_zeroed((size_t)n, sizeof *rank);
    for (int k = 0; k < n; k++) rank[k] = hp_group_rank(p, group, replica, k);
    int32_t at = find_group(c, rank, n);
    if (at < 0) {
        at = c->n_group;
        HP_TRY(add_group(c, rank, n, group, err));
    } else {
        free(rank);
    }
    c->group[at].used = true;
    c->group_of[group] = at;
    return HP_OK;
}

/* Groups are created in order, each only by its members, so no two groups wait for each other. */
static hp_status mpi_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    mpi_comm *c = (mpi_comm *)comm;
    c->group_of = hp_realloc(c->group_of, sizeof *c->group_of * (size_t)p->n_group);
    for (int i = 0; i < c->n_group; i++) c->group[i].used = false;
    for (int g = 0; g < p->n_group; g++) HP_TRY(join_group(c, p, g, err));
    return HP_OK;
}

static void mpi_close(hp_comm *comm) {
    mpi_comm *c = (mpi_comm *)comm;
    for (int i = 0; i < c->n_group; i++) {
        if (c->group[i].comm != MPI_COMM_NULL) MPI_Comm_free(&c->group[i].comm);
        free(c->group[i].rank);
    }
    MPI_Comm_free(&c->p2p);
    hp_mpi_types_close(&c->types);
    for (int i = 0; i < c->n_op; i++) free(c->op[i]);
    free(c->op);
    free(c->group);
    free(c->group_of);
    free(c);
    MPI_Finalize();
}

static void mpi_abort(hp_comm *comm, int code) {
    (void)comm;
    MPI_Abort(MPI_COMM_WORLD, code);
    abort();
}

static const hp_comm_ops MPI = {.name = "mpi",
                                .join = mpi_join,
                                .start = mpi_start,
                                .test = mpi_test,
                                .close = mpi_close,
                                .abort = mpi_abort};

/* Tags of hplan's own collectives lie above those of programs. */
static hp_status check_tags(const mpi_comm *c, hp_error *err) {
    int *most = NULL, set = 0;
    MPI_Comm_get_attr(c->p2p, MPI_TAG_UB, &most, &set);
    if (!set || *most >= 2 * HP_COMM_TAGS - 1) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "this MPI's tags end at %d, hplan needs them up to %d", *most,
                   2 * HP_COMM_TAGS - 1);
}

/* Open MPI's run-time query for whether MPI accepts device pointers. */
static bool reads_device(void) {
#ifdef MPIX_CUDA_AWARE_SUPPORT
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

hp_status hp_comm_mpi_open(hp_comm **comm, hp_error *err) {
    int provided = 0;
    const int watch = hp_segments_watch();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return hp_fail(err, HP_EUNAVAIL, "MPI does not start; see `hplan doctor`");
    hp_segments_tell(watch);
    mpi_comm *c = hp_zeroed(1, sizeof *c);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* duplicates inherit it */
    MPI_Comm_dup(MPI_COMM_WORLD, &c->p2p);
    c->base.ops = &MPI;
    c->base.reads_device = reads_device();
    MPI_Comm_rank(c->p2p, &c->base.rank);
    MPI_Comm_size(c->p2p, &c->base.size);
    int *rank = hp_zeroed((size_t)c->base.size, sizeof *rank);
    for (int r = 0; r < c->base.size; r++) rank[r] = r;
    *comm = &c->base;
    HP_TRY(check_tags(c, err));
    HP_TRY(hp_mpi_types_open(&c->types, err));
    return add_group(c, rank, c->base.size, 0, err);
}

const char *hp_comm_mpi_version(char *out, size_t n) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    snprintf(out, n, "%.*s", (int)strcspn(text, ",\n"), text);
    return out;
}
