/* peer.c - messages between ranks of one node, copied from the sender's memory into the receiver's by the
 * receiver's device, or by the receiver itself in host memory.
 *
 * Each rank has one allocation. Its handle, exchanged once, gives peers access to all its messages (peers.c).
 * A message takes three steps. The sender, whose data is ready, sends a note with the address. The receiver,
 * whose buffer is free, copies and acknowledges when the copy is complete. The acknowledgement, also a note,
 * tells the sender that its buffer is free again. Notes go through queues in shared memory (notes.c), as a
 * copy within the host can be shorter than the smallest message of MPI.
 *
 * Both ends know which pairs and messages go this way. Two kinds of note need no acknowledgement: one that
 * contains a few bytes of host memory, and one that announces data outside the sender's allocation, which the
 * inner communicator carries. A queue keeps notes in order, so messages match in order, by (peer, tag). A
 * note without a receive is kept; a receive without a note waits.
 *
 * No deadlock is added. A note waits for its data and for room, which the other rank makes whenever it tests
 * an operation with this one. A copy starts as soon as it is submitted: the data is ready, the buffer is
 * free, and no earlier work of the copy stream waits for another rank. An acknowledgement waits for the copy
 * and for room. A send completes only after its receive has started; message-passing rules allow that, and
 * programs are checked for it. */
#include "exec/comm/copy.h"
#include "base/alloc.h"
#include "exec/comm/peers.h"

#include <stdlib.h>
#include <string.h>

/* MESSAGES tags from MESSAGE_TAG on lie above all channels of programs (a few per stage) and below the end of
 * what comm.h leaves to programs. Messages through the inner communicator use them in turn: an earlier
 * message to the same rank may still be waiting, so each needs a tag of its own. */
enum { MESSAGE_TAG = 1 << 28, MESSAGES = 1 << 20 };
enum { ACK = -1 /* tag of an acknowledgement */ };
enum { INNER = -1, WITHIN = -2 }; /* offset: data follows by the inner communicator, or is within the note */

typedef enum peer_state {
    PEER_INNER,    /* under way in the inner communicator */
    PEER_UNSENT,   /* sender: waits for room for its note */
    PEER_SENT,     /* sender: waits for the acknowledgement */
    PEER_EXPECTED, /* receiver: waits for the note */
    PEER_NOTED,    /* receiver: has the note */
    PEER_COPYING,  /* receiver: waits for its copy, then for room for the acknowledgement */
    PEER_DONE
} peer_state;

typedef struct peer_op {
    bool used;
    peer_state state;
    int handle; /* inner's */
    hp_comm_op op;
    hp_note note;
    hp_event *event; /* after the copy */
    int next;        /* next operation in its list; -1: last */
} peer_op;

typedef struct peer_list { /* indices of operations in the order of starts; -1: empty */
    int first, last;
} peer_list;

typedef struct peer_link { /* state of the traffic with one peer */
    peer_list unsent;      /* sends */
    peer_list expected;    /* receives */
    int n_early, early_room;
    hp_note *early;    /* notes that no receive was started for */
    uint32_t by_inner; /* messages so far */
} peer_link;

typedef struct peer_comm {
    hp_comm base;
    hp_comm *inner;
    const hp_memory *memory;
    const unsigned char *arena;
    int64_t bytes;     /* size of the arena */
    int64_t own_bytes; /* sent by the handshake */
    int64_t copied;    /* copied by peers from this rank's memory */
    hp_peers peers;
    peer_link *link; /* by rank */
    int n_op;
    peer_op *op;
} peer_comm;

static int64_t bytes_of(const hp_comm_op *op) {
    return op->count * hp_dtype_bytes((hp_dtype)op->dtype);
}

/* --- lists --- */

static void append(peer_comm *c, peer_list *list, int op) {
    c->op[op].next = -1;
    if (list->first < 0)
        list->first = op;
    else
        c->op[list->last].next = op;
    list->last = op;
}

/* Removes the first operation with that tag; -1: there is none. */
static int remove_tag(peer_comm *c, peer_list *list, int32_t tag) {
    int before = -1, op = list->first;
    for (; op >= 0 && c->op[op].op.tag != tag; op = c->op[op].next) before = op;
    if (op < 0) return -1;
    if (before < 0)
        list->first = c->op[op].next;
    else
        c->op[before].next = c->op[op].next;
    if (list->last == op) list->last = before;
    return op;
}

static void keep_early(peer_link *l, const hp_note *note) {
    if (l->n_early == l->early_room) {
        l->early_room = 2 * l->early_room + 8;
        l->early = hp_realloc(l->early, sizeof *l->early * (size_t)l->early_room);
    }
    l->early[l->n_early++] = *note;
}

static bool remove_early(peer_link *l, int32_t tag, hp_note *note) {
    int i = 0;
    while (i < l->n_early && l->early[i].tag != tag) i++;
    if (i == l->n_early) return false;
    *note = l->early[i];
    memmove(&l->early[i], &l->early[i + 1], sizeof *note * (size_t)(--l->n_early - i));
    return true;
}

/* --- notes --- */

/* Starts a message that its note only announces. */
static hp_status start_inner(peer_comm *c, peer_op *op, hp_error *err) {
    hp_comm_op what = op->op;
    what.tag = MESSAGE_TAG + op->note.op;
    op->state = PEER_INNER;
    return c->inner->ops->start(c->inner, &what, &op->handle, err);
}

static hp_status put_notes(peer_comm *c, int peer, hp_error *err) {
    peer_list *list = &c->link[peer].unsent;
    while (list->first >= 0) {
        peer_op *op = &c->op[list->first];
        if (!hp_note_put(&c->peers.peer[peer].out, &op->note)) return HP_OK;
        list->first = op->next;
        op->state = op->note.offset == WITHIN ? PEER_DONE : PEER_SENT;
        if (op->note.offset == INNER) HP_TRY(start_inner(c, op, err));
    }
    return HP_OK;
}

static void take_note(peer_comm *c, int peer, const hp_note *note) {
    peer_link *l = &c->link[peer];
    const int op = note->tag == ACK ? note->op : remove_tag(c, &l->expected, note->tag);
    if (op < 0) {
        keep_early(l, note);
    } else if (note->tag == ACK) {
        HP_ASSERT(op < c->n_op && c->op[op].state == PEER_SENT && c->op[op].op.peer == peer);
        c->op[op].state = PEER_DONE;
    } else {
        c->op[op].note = *note;
        c->op[op].state = PEER_NOTED;
    }
}

static hp_status exchange_notes(peer_comm *c, int peer, hp_error *err) {
    hp_note note;
    while (hp_note_get(&c->peers.peer[peer].in, &note)) take_note(c, peer, &note);
    return put_notes(c, peer, err);
}

/* --- steps of an operation; `advanced`: it reached its next state --- */

static hp_status finish(peer_comm *c, peer_op *op, bool *advanced, hp_error *err) {
    HP_TRY(c->inner->ops->test(c->inner, op->handle, advanced, err));
    if (*advanced) op->state = PEER_DONE;
    return HP_OK;
}

static hp_status copy(peer_comm *c, peer_op *op, hp_error *err) {
    const hp_note *note = &op->note;
    op->state = note->offset == WITHIN ? PEER_DONE : PEER_COPYING;
    if (op->state == PEER_COPYING)
        return hp_copy_start(c->memory, op->op.data, c->peers.peer[op->op.peer].memory + note->offset,
                             note->bytes, op->event, err);
    if (note->bytes > 0) memcpy(op->op.data, note->data, (size_t)note->bytes);
    return HP_OK;
}

static hp_status receive(peer_comm *c, peer_op *op, bool *advanced, hp_error *err) {
    if (op->note.bytes != bytes_of(&op->op))
        return hp_fail(err, HP_EINTERNAL, "rank %d sends %lld bytes to rank %d, which expects %lld",
                       op->op.peer, (long long)op->note.bytes, c->base.rank, (long long)bytes_of(&op->op));
    *advanced = true;
    return op->note.offset == INNER ? start_inner(c, op, err) : copy(c, op, err);
}

static hp_status acknowledge(peer_comm *c, peer_op *op, bool *advanced, hp_error *err) {
    const hp_note ack = {.tag = ACK, .op = op->note.op};
    HP_TRY(hp_copy_done(c->memory, op->event, advanced, err));
    *advanced = *advanced && hp_note_put(&c->peers.peer[op->op.peer].out, &ack);
    if (*advanced) op->state = PEER_DONE;
    return HP_OK;
}

/* Operations in other states advance by a note. */
static hp_status (*const steps[PEER_DONE + 1])(peer_comm *, peer_op *, bool *advanced, hp_error *) = {
    [PEER_INNER] = finish, [PEER_NOTED] = receive, [PEER_COPYING] = acknowledge};

/* --- the vtable --- */

static hp_status peer_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    hp_comm *inner = ((peer_comm *)comm)->inner;
    return inner->ops->join(inner, p, err);
}

static int find_op(peer_comm *c) {
    int i = 0;
    while (i < c->n_op && c->op[i].used) i++;
    if (i < c->n_op) return i;
    c->op = hp_realloc(c->op, sizeof *c->op * (size_t)(c->n_op + 1));
    c->op[i].event = NULL;
    return c->n_op++;
}

/* Does this message go directly? Both ends come to the same answer. */
static bool is_direct(const peer_comm *c, const hp_comm_op *op) {
    const bool message = op->kind == HP_COMM_SEND || op->kind == HP_COMM_RECV;
    return message && !op->order && (op->device || op->backend == HP_BACKEND_SHM) &&
           c->peers.peer[op->peer].memory;
}

static hp_note note_of(const peer_comm *c, int handle) {
    const hp_comm_op *op = &c->op[handle].op;
    const int64_t bytes = bytes_of(op), offset = (int64_t)((uintptr_t)op->data - (uintptr_t)c->arena);
    hp_note note = {.offset = bytes > 0 ? offset : 0, .bytes = bytes, .tag = op->tag, .op = handle};
    if (!op->device && bytes <= HP_NOTE_BYTES) {
        note.offset = WITHIN;
        if (bytes > 0) memcpy(note.data, op->data, (size_t)bytes);
    } else if (note.offset < 0 || note.offset + bytes > c->bytes) {
        note.offset = INNER;
        note.op = (int32_t)(c->link[op->peer].by_inner++ % MESSAGES);
    }
    return note;
}

/* Counts messages that the inner communicator carries. */
static void count_sent(peer_comm *c, const peer_op *op) {
    c->copied += op->note.bytes;
    if (op->op.sent) *op->op.sent += op->note.bytes;
}

static hp_status start_send(peer_comm *c, int handle, hp_error *err) {
    peer_op *op = &c->op[handle];
    op->state = PEER_UNSENT;
    op->note = note_of(c, handle);
    if (op->note.offset != INNER) count_sent(c, op);
    append(c, &c->link[op->op.peer].unsent, handle);
    return put_notes(c, op->op.peer, err);
}

static hp_status start_recv(peer_comm *c, int handle, hp_error *err) {
    peer_op *op = &c->op[handle];
    peer_link *l = &c->link[op->op.peer];
    HP_TRY(hp_copy_event(c->memory, &op->event, err));
    op->state = PEER_NOTED;
    if (remove_early(l, op->op.tag, &op->note)) return HP_OK;
    op->state = PEER_EXPECTED;
    append(c, &l->expected, handle);
    return HP_OK;
}

static hp_status peer_start(hp_comm *comm, const hp_comm_op *what, int *handle, hp_error *err) {
    peer_comm *c = (peer_comm *)comm;
    *handle = find_op(c);
    peer_op *op = &c->op[*handle];
    *op = (peer_op){.used = true, .state = PEER_INNER, .op = *what, .event = op->event};
    if (!is_direct(c, what)) return c->inner->ops->start(c->inner, what, &op->handle, err);
    return what->kind == HP_COMM_SEND ? start_send(c, *handle, err) : start_recv(c, *handle, err);
}

static hp_status peer_end(hp_comm *comm, hp_error *err) {
    hp_comm *inner = ((peer_comm *)comm)->inner;
    return inner->ops->end ? inner->ops->end(inner, err) : HP_OK;
}

static hp_status peer_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    peer_comm *c = (peer_comm *)comm;
    peer_op *op = &c->op[handle];
    if (!steps[op->state] && op->state != PEER_DONE) HP_TRY(exchange_notes(c, op->op.peer, err));
    for (bool on = true; on && steps[op->state];) HP_TRY(steps[op->state](c, op, &on, err));
    *done = op->state == PEER_DONE;
    op->used = !*done;
    c->base.sent_bytes = c->inner->sent_bytes - c->own_bytes + c->copied;
    c->base.direct_bytes = c->inner->direct_bytes + c->copied;
    return HP_OK;
}

static bool peer_ordered(const hp_comm *comm, int backend) {
    const hp_comm *inner = ((const peer_comm *)comm)->inner;
    return inner->ops->ordered && inner->ops->ordered(inner, backend);
}

/* The caller frees its memory next, which no peer may still map. After this agreement all ranks have closed
 * their mappings. If it fails, a rank is gone and the job ends. */
static void peer_close(hp_comm *comm) {
    peer_comm *c = (peer_comm *)comm;
    hp_error ignored;
    bool speaker;
    hp_peers_close(&c->peers, c->memory);
    hp_comm_agree(c->inner, HP_OK, &speaker, &ignored);
    for (int i = 0; i < c->n_op; i++) hp_copy_event_free(c->memory, c->op[i].event);
    c->inner->ops->close(c->inner);
    for (int r = 0; r < c->base.size; r++) free(c->link[r].early);
    free(c->link);
    free(c->op);
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
    peer_comm *c = hp_zeroed(1, sizeof *c);
    *c = (peer_comm){
        .base = {.ops = &PEER, .rank = inner->rank, .size = inner->size, .sent_bytes = inner->sent_bytes},
        .inner = inner,
        .memory = memory,
        .arena = arena,
        .bytes = bytes,
        .link = calloc((size_t)inner->size, sizeof *c->link)};
    HP_ASSERT(c->link);
    for (int r = 0; r < inner->size; r++) c->link[r].unsent.first = c->link[r].expected.first = -1;
    *comm = &c->base; /* after a failure as well: closing is collective */
    const hp_status s = hp_peers_open(inner, memory, arena, bytes, &c->peers, err);
    c->own_bytes = inner->sent_bytes - c->base.sent_bytes;
    return s;
}
