/* peer.c - messages between devices of one node, copied from the sender's memory into the receiver's.
 *
 * Each rank has one allocation, so one handle per rank, exchanged once, gives its peers access to all its
 * messages (peers.c). A message takes three steps: the sender, whose data is ready, sends a note with its
 * address; the receiver, whose buffer is free, copies on its own device and acknowledges when the copy is
 * complete; the acknowledgement tells the sender that its buffer is free again. Notes and acknowledgements
 * are small host messages over the inner communicator.
 *
 * Notes have the message's tag, so they match as the messages would: in order, by (peer, tag). A pair sends
 * all its messages by one route, on which both agreed. Acknowledgements need no order: each has a tag of its
 * own, which the note names.
 *
 * No deadlock is added: a note waits for its data alone; a copy starts as soon as it is submitted (the data is
 * ready, the buffer is free, and no earlier work of the copy stream waits for another rank); an
 * acknowledgement waits for the copy alone. A send completes only after its receive was started, which the
 * rules of messages allow: programs are checked for it. */
#include "exec/comm/peers.h"

#include <stdlib.h>

/* Above all channels of programs (a few per stage), below the largest tag of MPI in practice, 2^28. */
enum { ACK_TAG = 1 << 20 };

typedef struct peer_note {
    int64_t offset, bytes; /* in the sender's memory */
    int64_t ack;           /* tag of the acknowledgement */
} peer_note;

typedef enum peer_state {
    PEER_INNER,    /* by the inner communicator */
    PEER_SENT,     /* sender: waits for the note to leave and for the acknowledgement */
    PEER_EXPECTED, /* receiver: waits for the note */
    PEER_COPYING,  /* receiver: waits for its copy */
    PEER_ACKED,    /* receiver: waits for the acknowledgement to leave */
    PEER_DONE
} peer_state;

typedef struct peer_op {
    bool used;
    peer_state state;
    int handle[2]; /* inner's, of the operation or the note, and of the acknowledgement; -1: done */
    hp_comm_op op;
    peer_note note;
    unsigned char ack; /* its value means nothing */
    hp_event *event;   /* after the copy */
} peer_op;

typedef struct peer_comm {
    hp_comm base;
    hp_comm *inner;
    const hp_memory *memory;
    unsigned char *arena;
    int64_t bytes;        /* of the arena */
    int64_t own_bytes;    /* of notes and acknowledgements sent */
    unsigned char **peer; /* per rank: its memory as mapped here; NULL: by inner */
    int n_op;
    peer_op **op; /* pointers, as notes are sent from inside them */
} peer_comm;

/* --- steps of an operation: `advanced` tells whether it got to its next state --- */

static hp_status inner_done(peer_comm *c, int *handle, bool *done, hp_error *err) {
    *done = *handle < 0;
    if (!*done) HP_TRY(c->inner->ops->test(c->inner, *handle, done, err));
    if (*done) *handle = -1;
    return HP_OK;
}

static hp_status both_done(peer_comm *c, peer_op *op, bool *done, hp_error *err) {
    HP_TRY(inner_done(c, &op->handle[0], done, err));
    return *done ? inner_done(c, &op->handle[1], done, err) : HP_OK;
}

/* Starts a message of host memory. It has at least one byte: an empty one may complete without the peer. */
static hp_status start_small(peer_comm *c, hp_comm_op what, int peer, int *handle, hp_error *err) {
    what.peer = peer;
    what.dtype = HP_U8;
    if (what.kind == HP_COMM_SEND) c->own_bytes += what.count;
    return c->inner->ops->start(c->inner, &what, handle, err);
}

static hp_status start_note(peer_comm *c, peer_op *op, int kind, hp_error *err) {
    const hp_comm_op what = {
        .kind = kind, .tag = op->op.tag, .count = (int64_t)sizeof op->note, .data = &op->note};
    return start_small(c, what, op->op.peer, &op->handle[0], err);
}

static hp_status start_ack(peer_comm *c, peer_op *op, int kind, hp_error *err) {
    const hp_comm_op what = {.kind = kind, .tag = (int32_t)op->note.ack, .count = 1, .data = &op->ack};
    return start_small(c, what, op->op.peer, &op->handle[1], err);
}

static int64_t bytes_of(const hp_comm_op *op) {
    return op->count * hp_dtype_bytes((hp_dtype)op->dtype);
}

static hp_status finish(peer_comm *c, peer_op *op, bool *advanced, hp_error *err) {
    HP_TRY(both_done(c, op, advanced, err));
    if (*advanced) op->state = PEER_DONE;
    return HP_OK;
}

static hp_status start_copy(peer_comm *c, peer_op *op, bool *advanced, hp_error *err) {
    HP_TRY(inner_done(c, &op->handle[0], advanced, err));
    if (!*advanced) return HP_OK;
    if (op->note.bytes != bytes_of(&op->op))
        return hp_fail(err, HP_EINTERNAL, "rank %d sends %lld bytes to rank %d, which expects %lld",
                       op->op.peer, (long long)op->note.bytes, c->base.rank, (long long)bytes_of(&op->op));
    const hp_order order = {.done = op->event};
    op->state = PEER_COPYING;
    return c->memory->ops->streams->copy(c->memory, HP_STREAM_COPY, op->op.data,
                                         c->peer[op->op.peer] + op->note.offset, op->note.bytes, &order, err);
}

static hp_status acknowledge(peer_comm *c, peer_op *op, bool *advanced, hp_error *err) {
    HP_TRY(c->memory->ops->streams->query(c->memory, op->event, advanced, err));
    if (!*advanced) return HP_OK;
    op->state = PEER_ACKED;
    return start_ack(c, op, HP_COMM_SEND, err);
}

static hp_status (*const steps[])(peer_comm *, peer_op *, bool *advanced, hp_error *) = {
    [PEER_INNER] = finish,        [PEER_SENT] = finish,  [PEER_EXPECTED] = start_copy,
    [PEER_COPYING] = acknowledge, [PEER_ACKED] = finish,
};

/* --- the vtable --- */

static hp_status peer_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    hp_comm *inner = ((peer_comm *)comm)->inner;
    return inner->ops->join(inner, p, err);
}

static int find_op(peer_comm *c) {
    int i = 0;
    while (i < c->n_op && c->op[i]->used) i++;
    if (i < c->n_op) return i;
    c->op = realloc(c->op, sizeof *c->op * (size_t)(c->n_op + 1));
    HP_ASSERT(c->op);
    c->op[i] = calloc(1, sizeof **c->op);
    HP_ASSERT(c->op[i]);
    return c->n_op++;
}

static bool is_direct(const peer_comm *c, const hp_comm_op *op) {
    return op->device && !op->order && op->kind != HP_COMM_ALLREDUCE && c->peer[op->peer];
}

static hp_status start_send(peer_comm *c, peer_op *op, int tag, hp_error *err) {
    op->state = PEER_SENT;
    op->note = (peer_note){(unsigned char *)op->op.data - c->arena, bytes_of(&op->op), tag};
    HP_ASSERT(op->note.offset >= 0 && op->note.offset + op->note.bytes <= c->bytes);
    c->base.direct_bytes += op->note.bytes;
    HP_TRY(start_ack(c, op, HP_COMM_RECV, err));
    return start_note(c, op, HP_COMM_SEND, err);
}

static hp_status start_recv(peer_comm *c, peer_op *op, hp_error *err) {
    op->state = PEER_EXPECTED;
    if (!op->event) HP_TRY(c->memory->ops->streams->event_new(c->memory, &op->event, err));
    return start_note(c, op, HP_COMM_RECV, err);
}

static hp_status peer_start(hp_comm *comm, const hp_comm_op *what, int *handle, hp_error *err) {
    peer_comm *c = (peer_comm *)comm;
    *handle = find_op(c);
    peer_op *op = c->op[*handle];
    *op = (peer_op){.used = true, .state = PEER_INNER, .handle = {-1, -1}, .op = *what, .event = op->event};
    if (!is_direct(c, what)) return c->inner->ops->start(c->inner, what, &op->handle[0], err);
    return what->kind == HP_COMM_SEND ? start_send(c, op, ACK_TAG + *handle, err) : start_recv(c, op, err);
}

static hp_status peer_end(hp_comm *comm, hp_error *err) {
    hp_comm *inner = ((peer_comm *)comm)->inner;
    return inner->ops->end ? inner->ops->end(inner, err) : HP_OK;
}

static hp_status peer_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    peer_comm *c = (peer_comm *)comm;
    peer_op *op = c->op[handle];
    for (bool on = true; on && op->state != PEER_DONE;) HP_TRY(steps[op->state](c, op, &on, err));
    *done = op->state == PEER_DONE;
    op->used = !*done;
    c->base.sent_bytes = c->inner->sent_bytes - c->own_bytes + c->base.direct_bytes;
    return HP_OK;
}

static bool peer_ordered(const hp_comm *comm, int backend) {
    const hp_comm *inner = ((const peer_comm *)comm)->inner;
    return inner->ops->ordered && inner->ops->ordered(inner, backend);
}

/* The caller frees its memory next, which no peer may still have mapped: after the agreement all ranks have
 * closed their mappings. If it fails, a rank is gone and the job ends. */
static void peer_close(hp_comm *comm) {
    peer_comm *c = (peer_comm *)comm;
    hp_error ignored;
    bool speaker;
    for (int r = 0; r < c->base.size; r++)
        if (c->peer[r]) c->memory->ops->peers->close(c->memory, c->peer[r]);
    hp_comm_agree(c->inner, HP_OK, &speaker, &ignored);
    for (int i = 0; i < c->n_op; i++) {
        if (c->op[i]->event) c->memory->ops->streams->event_free(c->memory, c->op[i]->event);
        free(c->op[i]);
    }
    c->inner->ops->close(c->inner);
    free(c->op);
    free(c->peer);
    free(c);
}

static void peer_abort(hp_comm *comm, int code) {
    hp_comm *inner = ((peer_comm *)comm)->inner;
    inner->ops->abort(inner, code);
}

static const hp_comm_ops PEER = {.name = "peer",
                                 .join = peer_join,
                                 .start = peer_start,
                                 .end = peer_end,
                                 .test = peer_test,
                                 .ordered = peer_ordered,
                                 .close = peer_close,
                                 .abort = peer_abort};

hp_status hp_comm_peer(hp_comm *inner, const hp_memory *memory, void *arena, int64_t bytes, hp_comm **comm,
                       hp_error *err) {
    *comm = inner;
    if (!memory->ops->peers || inner->size == 1) return HP_OK;
    peer_comm *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    *c = (peer_comm){
        .base = {.ops = &PEER, .rank = inner->rank, .size = inner->size, .sent_bytes = inner->sent_bytes},
        .inner = inner,
        .memory = memory,
        .arena = arena,
        .bytes = bytes,
        .peer = calloc((size_t)inner->size, sizeof *c->peer)};
    HP_ASSERT(c->peer);
    *comm = &c->base; /* after a failure as well: closing is collective */
    const hp_status s = hp_peers_open(inner, memory, c->arena, bytes, c->peer, err);
    c->own_bytes = inner->sent_bytes - c->base.sent_bytes;
    return s;
}
