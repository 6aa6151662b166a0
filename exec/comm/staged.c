/* staged.c - messages of device memory over a communicator that reads only host memory. Each goes through
 * page-locked memory: copied out before it is sent, copied in after it is received.
 *
 * The inner communicator matches operations by the order in which they begin, so they begin in the order in
 * which they were started. An operation whose data is not yet copied out holds back those after it. Copies
 * run in that order as well, on a single stream. */
#include "exec/comm/comm.h"
#include "base/alloc.h"

#include <stdlib.h>

typedef enum stage_state { STAGE_FREE, STAGE_COPY_OUT, STAGE_MOVING, STAGE_COPY_IN, STAGE_DONE } stage_state;

typedef struct staged_op {
    stage_state state;
    bool direct; /* passed to inner unchanged: nothing to copy */
    int handle;  /* inner's */
    hp_comm_op op;
    void *host;
    int64_t room;
    hp_event *event;
    int next; /* the next one to begin; -1: none */
} staged_op;

typedef struct staged_comm {
    hp_comm base;
    hp_comm *inner;
    const hp_memory *memory;
    int64_t straight;      /* bytes of device memory passed directly to the inner communicator */
    int n_op, first, last; /* first, last: queue of operations that have not begun; -1: empty */
    staged_op *op;
} staged_comm;

static int64_t bytes_of(const hp_comm_op *op) {
    return op->count * hp_dtype_bytes((hp_dtype)op->dtype);
}

/* Page-locked memory holds the data, followed by a collective's source. */
enum { ALIGN = 64 };

static int64_t source_at(const hp_comm_op *op) {
    return (bytes_of(op) + ALIGN - 1) / ALIGN * ALIGN;
}

static int64_t room_of(const hp_comm_op *op) {
    return op->source ? source_at(op) + op->source_bytes : bytes_of(op);
}

/* --- operations and their page-locked buffers, reused for messages of about the same size --- */

static bool fits(const staged_op *op, int64_t bytes) {
    return op->state == STAGE_FREE && op->room >= bytes && op->room <= 2 * bytes + 4096;
}

static int add_op(staged_comm *c) {
    c->op = hp_realloc(c->op, sizeof *c->op * (size_t)(c->n_op + 1));
    c->op[c->n_op] = (staged_op){.state = STAGE_FREE, .handle = -1, .next = -1};
    return c->n_op++;
}

static hp_status find_op(staged_comm *c, const hp_comm_op *what, bool direct, int *found, hp_error *err) {
    const int64_t bytes = direct ? 0 : room_of(what);
    int i = 0;
    while (i < c->n_op && !fits(&c->op[i], bytes)) i++;
    *found = i < c->n_op ? i : add_op(c);
    staged_op *op = &c->op[*found];
    op->op = *what;
    op->direct = direct;
    op->next = -1;
    if (direct) return HP_OK;
    if (!op->event)
        HP_TRY(c->memory->ops->streams->event_new(c->memory, &op->event, err)); /* even if empty */
    if (op->room >= bytes) return HP_OK;
    HP_TRY(c->memory->ops->streams->host_new(c->memory, bytes, &op->host, err));
    op->room = bytes;
    return HP_OK;
}

/* --- one operation, state by state --- */

static hp_status begin(staged_comm *c, staged_op *op, hp_error *err) {
    hp_comm_op inner = op->op;
    if (!op->direct) {
        inner.data = op->host;
        if (inner.source) inner.source = (unsigned char *)op->host + source_at(&inner);
        inner.device = false;
    }
    op->state = STAGE_MOVING;
    return c->inner->ops->start(c->inner, &inner, &op->handle, err);
}

static hp_status copy(const staged_comm *c, const staged_op *op, void *to, const void *from, int64_t bytes,
                      hp_error *err) {
    const hp_order order = {.done = op->event};
    return c->memory->ops->streams->copy(c->memory, HP_STREAM_COPY, to, from, bytes, &order, err);
}

/* Copies out what the rank sends or contributes. */
static hp_status copy_out(const staged_comm *c, staged_op *op, hp_error *err) {
    const hp_comm_op *o = &op->op;
    op->state = STAGE_COPY_OUT;
    if (o->source)
        return copy(c, op, (unsigned char *)op->host + source_at(o), o->source, o->source_bytes, err);
    return copy(c, op, op->host, o->data, bytes_of(o), err);
}

static hp_status copy_in(const staged_comm *c, staged_op *op, hp_error *err) {
    op->state = STAGE_COPY_IN;
    return copy(c, op, op->op.data, op->host, bytes_of(&op->op), err);
}

static hp_status copied(const staged_comm *c, const staged_op *op, bool *yes, hp_error *err) {
    return c->memory->ops->streams->query(c->memory, op->event, yes, err);
}

/* Begins all operations whose turn has come and whose data is ready. */
static hp_status begin_waiting(staged_comm *c, hp_error *err) {
    while (c->first >= 0) {
        staged_op *op = &c->op[c->first];
        bool ready = true;
        if (op->state == STAGE_COPY_OUT) HP_TRY(copied(c, op, &ready, err));
        if (!ready) return HP_OK;
        c->first = op->next;
        HP_TRY(begin(c, op, err));
    }
    return HP_OK;
}

static hp_status moved(staged_comm *c, staged_op *op, hp_error *err) {
    bool done = false;
    HP_TRY(c->inner->ops->test(c->inner, op->handle, &done, err));
    if (!done) return HP_OK;
    if (!op->direct && op->op.kind != HP_COMM_SEND) return copy_in(c, op, err);
    op->state = STAGE_DONE;
    return HP_OK;
}

/* --- the vtable --- */

static hp_status staged_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    hp_comm *inner = ((staged_comm *)comm)->inner;
    return inner->ops->join(inner, p, err);
}

static void append(staged_comm *c, int op) {
    if (c->first < 0)
        c->first = op;
    else
        c->op[c->last].next = op;
    c->last = op;
}

static bool staged_ordered(const hp_comm *comm, int backend) {
    const hp_comm *inner = ((const staged_comm *)comm)->inner;
    return inner->ops->ordered && inner->ops->ordered(inner, backend);
}

static hp_status staged_start(hp_comm *comm, const hp_comm_op *what, int *handle, hp_error *err) {
    staged_comm *c = (staged_comm *)comm;
    const bool reads = c->inner->reads_device && what->kind != HP_COMM_COLLECTIVE,
               ordered = staged_ordered(comm, what->backend), direct = !what->device || reads || ordered;
    if (what->device && reads && !ordered && what->kind == HP_COMM_SEND) c->straight += bytes_of(what);
    HP_TRY(find_op(c, what, direct, handle, err));
    staged_op *op = &c->op[*handle];
    if (what->order) return begin(c, op, err); /* the device orders it */
    op->state = STAGE_MOVING;
    if (!direct && what->kind != HP_COMM_RECV) HP_TRY(copy_out(c, op, err));
    append(c, *handle);
    return begin_waiting(c, err);
}

static hp_status staged_end(hp_comm *comm, hp_error *err) {
    hp_comm *inner = ((staged_comm *)comm)->inner;
    return inner->ops->end(inner, err);
}

static hp_status staged_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    staged_comm *c = (staged_comm *)comm;
    staged_op *op = &c->op[handle];
    HP_TRY(begin_waiting(c, err));
    if (op->state == STAGE_MOVING && op->handle >= 0) HP_TRY(moved(c, op, err));
    if (op->state == STAGE_COPY_IN) HP_TRY(copied(c, op, done, err));
    *done = op->state == STAGE_DONE || (op->state == STAGE_COPY_IN && *done);
    c->base.sent_bytes = c->inner->sent_bytes;
    c->base.direct_bytes = c->inner->direct_bytes + c->straight;
    if (!*done) return HP_OK;
    op->state = STAGE_FREE;
    op->handle = -1;
    return HP_OK;
}

static void staged_close(hp_comm *comm) {
    staged_comm *c = (staged_comm *)comm;
    for (int i = 0; i < c->n_op; i++) {
        if (c->op[i].event) c->memory->ops->streams->event_free(c->memory, c->op[i].event);
        if (c->op[i].host) c->memory->ops->streams->host_free(c->memory, c->op[i].host);
    }
    c->inner->ops->close(c->inner);
    free(c->op);
    free(c);
}

static void staged_abort(hp_comm *comm, int code) {
    hp_comm *inner = ((staged_comm *)comm)->inner;
    inner->ops->abort(inner, code);
}

static const hp_comm_ops STAGED = {.name = "staged",
                                   .join = staged_join,
                                   .start = staged_start,
                                   .end = staged_end,
                                   .test = staged_test,
                                   .ordered = staged_ordered,
                                   .close = staged_close,
                                   .abort = staged_abort};

hp_comm *hp_comm_staged(hp_comm *inner, const hp_memory *memory) {
    staged_comm *c = hp_zeroed(1, sizeof *c);
    *c = (staged_comm){
        .base = {.ops = &STAGED, .rank = inner->rank, .size = inner->size, .sent_bytes = inner->sent_bytes},
        .inner = inner,
        .memory = memory,
        .first = -1,
        .last = -1};
    return &c->base;
}
