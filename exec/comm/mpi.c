/* mpi.c - messages over MPI: non-blocking point-to-point only; all-reduces run the steps of the plan's
 * algorithm (plan/collectives/collective.h) on top of it.
 *
 * Why not MPI_Iallreduce: the library chooses the order of its additions, its scratch is as large as the
 * message, and with 2 ranks of a node it took 2 to 5 times as long from 8 B to 32 MiB (Open MPI 4.1.4). MPI
 * makes no progress in the background: all progress is made inside test. */
#include "exec/comm/comm.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* MPI counts are ints: longer messages are sent in pieces. WINDOW: lanes of one all-reduce in flight; as each
 * step of a lane needs a poll on both sides, it limits what one poll can move (32 slices of 256 KiB) and the
 * scratch. */
enum { PIECE_ELEMS = 1 << 28, WINDOW = 32 };

typedef struct mpi_lane {
    int lane, step;
    MPI_Request request[2]; /* send, receive */
    hp_collective_step at;
    unsigned char *scratch;
} mpi_lane;

typedef struct mpi_op {
    bool used;
    int32_t dtype;
    int n_request; /* send, receive: pieces */
    MPI_Request *request;
    /* all-reduce */
    hp_collective_plan plan;
    MPI_Comm group;
    int tag; /* of lane 0 */
    unsigned char *data;
    int next_lane, n_active;
    mpi_lane active[WINDOW];
    unsigned char *scratch;
} mpi_op;

/* The communicator of one group. Two groups of the same ranks have one each, as only the all-reduces of one
 * group start in the same order everywhere; the groups of the next program reuse those of the last. */
typedef struct mpi_group {
    MPI_Comm comm; /* MPI_COMM_NULL: one rank */
    int sequence;
    int n, me, *rank;
    bool used; /* by a group of the joined program */
} mpi_group;

typedef struct mpi_comm {
    hp_comm base;
    MPI_Comm p2p;
    int n_group;
    mpi_group *group;  /* 0: all ranks */
    int32_t *group_of; /* per group of the program: index into group, -1: not a member */
    int n_op;
    mpi_op **op;
} mpi_comm;

static MPI_Datatype type_of(int32_t dtype) {
    static const MPI_Datatype TYPES[] = {MPI_FLOAT,   MPI_DOUBLE,   MPI_INT32_T,
                                         MPI_UINT8_T, MPI_UINT16_T, MPI_UINT16_T}; /* as hp_dtype */
    return TYPES[dtype];
}

static hp_status checked(int code, const char *call, hp_error *err) {
    if (code == MPI_SUCCESS) return HP_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    return hp_fail(err, HP_EINTERNAL, "%s: %s", call, text);
}

/* --- all-reduce --- */

static void add(void *dst, const void *src, int64_t n, int32_t dtype) {
    if (dtype == HP_F64) {
        double *restrict d = dst;
        const double *restrict s = src;
        for (int64_t i = 0; i < n; i++) d[i] += s[i];
    } else {
        float *restrict d = dst;
        const float *restrict s = src;
        for (int64_t i = 0; i < n; i++) d[i] += s[i];
    }
}

/* Posts the lane's current step. Data to be added is received into the lane's scratch, all other straight into
 * its place. */
static hp_status lane_post(mpi_comm *c, mpi_op *op, mpi_lane *l, hp_error *err) {
    l->at = hp_collective_at(&op->plan, l->lane, l->step);
    l->request[0] = l->request[1] = MPI_REQUEST_NULL;
    const int64_t size = hp_dtype_bytes((hp_dtype)op->dtype);
    const int tag = op->tag + l->lane;
    if (l->at.recv_count > 0) {
        void *to = l->at.add ? l->scratch : op->data + l->at.recv_offset * size;
        HP_TRY(checked(MPI_Irecv(to, (int)l->at.recv_count, type_of(op->dtype), l->at.recv_from, tag,
                                 op->group, &l->request[1]),
                       "MPI_Irecv", err));
    }
    if (l->at.send_count > 0) {
        HP_TRY(checked(MPI_Isend(op->data + l->at.send_offset * size, (int)l->at.send_count,
                                 type_of(op->dtype), l->at.send_to, tag, op->group, &l->request[0]),
                       "MPI_Isend", err));
        c->base.sent_bytes += l->at.send_count * size;
    }
    return HP_OK;
}

/* Goes one step on if the current one is complete: *moved. A finished lane gives its slot to the next one. */
static hp_status lane_test(mpi_comm *c, mpi_op *op, int slot, bool *moved, hp_error *err) {
    mpi_lane *l = &op->active[slot];
    int done = 0;
    HP_TRY(checked(MPI_Testall(2, l->request, &done, MPI_STATUSES_IGNORE), "MPI_Testall", err));
    *moved = done != 0;
    if (!done) return HP_OK;
    if (l->at.add && l->at.recv_count > 0)
        add(op->data + l->at.recv_offset * hp_dtype_bytes((hp_dtype)op->dtype), l->scratch, l->at.recv_count,
            op->dtype);
    if (++l->step < op->plan.steps) return lane_post(c, op, l, err);
    if (op->next_lane < op->plan.lanes) {
        l->lane = op->next_lane++;
        l->step = 0;
        return lane_post(c, op, l, err);
    }
    unsigned char *scratch = l->scratch;
    *l = op->active[--op->n_active];
    op->active[op->n_active].scratch = scratch;
    return HP_OK;
}

static hp_status allreduce_test(mpi_comm *c, mpi_op *op, bool *done, hp_error *err) {
    for (bool any = true; any;) {
        any = false;
        for (int s = 0; s < op->n_active; s++) {
            bool moved = false;
            HP_TRY(lane_test(c, op, s, &moved, err));
            any |= moved;
        }
    }
    *done = op->n_active == 0;
    return HP_OK;
}

static hp_status allreduce_start(mpi_comm *c, mpi_op *op, const hp_comm_op *what, hp_error *err) {
    const int32_t at = what->group == HP_COMM_WORLD ? 0 : c->group_of[what->group];
    HP_ASSERT(at >= 0);
    mpi_group *group = &c->group[at];
    op->group = group->comm;
    op->data = what->data;
    const int elem = hp_dtype_bytes((hp_dtype)what->dtype);
    const hp_algorithm algorithm =
        what->algorithm ? (hp_algorithm)what->algorithm : hp_allreduce_choose(what->count * elem);
    op->plan = hp_collective_plan_of(algorithm, group->me, group->n, what->count, elem);
    if (op->plan.steps == 0 || what->count == 0) return HP_OK;
    op->tag = group->sequence++ % (1 << 14) *
              (1 << 15); /* lanes stay below 2^15; Open MPI's tags end at 2^31 - 1 */
    const int64_t slice_bytes = op->plan.slice * hp_dtype_bytes((hp_dtype)what->dtype);
    op->n_active = op->plan.lanes < WINDOW ? op->plan.lanes : WINDOW;
    op->scratch = malloc((size_t)(slice_bytes * op->n_active));
    if (!op->scratch)
        return hp_fail(err, HP_EIO, "out of memory: %lld bytes to receive an all-reduce",
                       (long long)(slice_bytes * op->n_active));
    op->next_lane = op->n_active;
    for (int s = 0; s < op->n_active; s++) {
        op->active[s] = (mpi_lane){.lane = s, .scratch = op->scratch + s * slice_bytes};
        HP_TRY(lane_post(c, op, &op->active[s], err));
    }
    return HP_OK;
}

/* --- send, receive --- */

static hp_status message_start(mpi_comm *c, mpi_op *op, const hp_comm_op *what, hp_error *err) {
    const int64_t size = hp_dtype_bytes((hp_dtype)what->dtype);
    const int n = (int)((what->count + PIECE_ELEMS - 1) / PIECE_ELEMS);
    op->request = calloc((size_t)n + 1, sizeof *op->request);
    HP_ASSERT(op->request);
    for (int i = 0; i < n; i++) {
        const int64_t begin = (int64_t)i * PIECE_ELEMS, left = what->count - begin;
        const int count = (int)(left < PIECE_ELEMS ? left : PIECE_ELEMS);
        unsigned char *at = (unsigned char *)what->data + begin * size;
        const MPI_Datatype type = type_of(what->dtype);
        HP_TRY(what->kind == HP_COMM_SEND
                   ? checked(MPI_Isend(at, count, type, what->peer, what->tag, c->p2p, &op->request[i]),
                             "MPI_Isend", err)
                   : checked(MPI_Irecv(at, count, type, what->peer, what->tag, c->p2p, &op->request[i]),
                             "MPI_Irecv", err));
        op->n_request = i + 1;
    }
    if (what->kind == HP_COMM_SEND) c->base.sent_bytes += what->count * size;
    return HP_OK;
}

/* --- the vtable --- */

static int free_handle(mpi_comm *c) {
    for (int i = 0; i < c->n_op; i++)
        if (!c->op[i]->used) return i;
    c->op = realloc(c->op, sizeof *c->op * (size_t)(c->n_op + 1));
    HP_ASSERT(c->op);
    c->op[c->n_op] = calloc(1, sizeof **c->op);
    HP_ASSERT(c->op[c->n_op]);
    return c->n_op++;
}

static hp_status mpi_start(hp_comm *comm, const hp_comm_op *what, int *handle, hp_error *err) {
    mpi_comm *c = (mpi_comm *)comm;
    *handle = free_handle(c);
    mpi_op *op = c->op[*handle];
    *op = (mpi_op){.used = true, .dtype = what->dtype};
    return what->kind == HP_COMM_ALLREDUCE ? allreduce_start(c, op, what, err)
                                           : message_start(c, op, what, err);
}

static hp_status mpi_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    mpi_comm *c = (mpi_comm *)comm;
    mpi_op *op = c->op[handle];
    int flag = 1;
    if (op->request)
        HP_TRY(
            checked(MPI_Testall(op->n_request, op->request, &flag, MPI_STATUSES_IGNORE), "MPI_Testall", err));
    *done = flag != 0;
    if (op->n_active > 0) HP_TRY(allreduce_test(c, op, done, err));
    if (*done) {
        free(op->request);
        free(op->scratch);
        op->used = false;
    }
    return HP_OK;
}

static int find_group(const mpi_comm *c, const int *rank, int n) {
    for (int i = 0; i < c->n_group; i++)
        if (!c->group[i].used && c->group[i].n == n &&
            memcmp(c->group[i].rank, rank, sizeof *rank * (size_t)n) == 0)
            return i;
    return -1;
}

/* Takes ownership of `rank`. Collective: over the ranks listed. */
static hp_status add_group(mpi_comm *c, int *rank, int n, int tag, hp_error *err) {
    c->group = realloc(c->group, sizeof *c->group * (size_t)(c->n_group + 1));
    HP_ASSERT(c->group);
    mpi_group *group = &c->group[c->n_group++];
    *group = (mpi_group){.comm = MPI_COMM_NULL, .n = n, .rank = rank};
    while (rank[group->me] != c->base.rank) group->me++;
    if (n == 1) return HP_OK;
    MPI_Group all, some;
    MPI_Comm_group(c->p2p, &all);
    MPI_Group_incl(all, n, rank, &some);
    const hp_status s =
        checked(MPI_Comm_create_group(c->p2p, some, tag, &group->comm), "MPI_Comm_create_group", err);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return s;
}

static hp_status join_group(mpi_comm *c, const hp_program *p, int group, hp_error *err) {
    const int role = c->base.rank % p->n_role, replica = c->base.rank / p->n_role;
    c->group_of[group] = -1;
    if (!hp_group_has_role(p, group, role)) return HP_OK;
    const int n = hp_group_size(p, group);
    int *rank = calloc((size_t)n, sizeof *rank);
    HP_ASSERT(rank);
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

/* Groups are made in order, each by its members alone: no two groups can wait for each other. */
static hp_status mpi_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    mpi_comm *c = (mpi_comm *)comm;
    c->group_of = realloc(c->group_of, sizeof *c->group_of * (size_t)p->n_group);
    HP_ASSERT(c->group_of);
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

hp_status hp_comm_mpi_open(hp_comm **comm, hp_error *err) {
    int provided = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return hp_fail(err, HP_EUNAVAIL, "MPI does not start; see `hplan doctor`");
    mpi_comm *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* inherited by the duplicates */
    MPI_Comm_dup(MPI_COMM_WORLD, &c->p2p);
    c->base.ops = &MPI;
    MPI_Comm_rank(c->p2p, &c->base.rank);
    MPI_Comm_size(c->p2p, &c->base.size);
    int *rank = calloc((size_t)c->base.size, sizeof *rank);
    HP_ASSERT(rank);
    for (int r = 0; r < c->base.size; r++) rank[r] = r;
    *comm = &c->base;
    return add_group(c, rank, c->base.size, 0, err);
}

const char *hp_comm_mpi_version(char *out, size_t n) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    snprintf(out, n, "%.*s", (int)strcspn(text, ",\n"), text);
    return out;
}
