/* own.c - collectives as the steps of plan/collectives, over messages between pairs.
 *
 * Why not a library's? It chooses its order of additions, and needs scratch as large as the message.
 * It is slower, too: MPI_Iallreduce between 2 ranks of a node took 2 to 5 times as long from 8 B to 32
 * MiB (Open MPI 4.1.4).
 *
 * The lanes of a collective proceed independently. A few slots are in flight at a time; slot s handles
 * lanes s, s + slots, ... in turn. So messages of a slot match by their order, and a tag needs only the
 * collective and the slot. */
#include "exec/comm/comm.h"
#include "base/alloc.h"
#include "exec/comm/comm_reduce.h"

#include <stdlib.h>
#include <string.h>

/* SLOTS limits the scratch, and what one poll can move: each step of a lane needs a poll on both sides (32
 * slices of 256 KiB). CALLS: collectives of a group in flight at once. Tags: a bit above those of programs,
 * then group, call, slot. */
enum { SLOT_BITS = 5, CALL_BITS = 8, GROUP_BITS = 16, SLOTS = 1 << SLOT_BITS };
_Static_assert(SLOT_BITS + CALL_BITS + GROUP_BITS <= 29, "tags fit into 30 bits");

typedef struct own_slot {
    int32_t lane, step;
    hp_block_step at;
    int send, recv; /* handles in the inner communicator; -1: none, or done */
    bool held;      /* received data waits in `in`, to be added or copied into place */
    int64_t elems;  /* that arrive */
    unsigned char *in, *out;
} own_slot;

typedef struct own_group {
    int32_t n, me, *rank; /* members as ranks of the world; n = 0: this rank is not a member */
    int32_t calls;
} own_group;

/* Memory kept for the next collective: fresh pages cost more than most collectives. */
typedef struct own_room {
    unsigned char *at;
    int64_t bytes;
} own_room;

typedef struct own_op {
    bool used;
    hp_comm_op op;
    hp_collective_plan plan;
    const own_group *group;
    int32_t tag; /* tag of slot 0 */
    int n_slot, n_active;
    own_slot slot[SLOTS];
    own_room scratch;
    unsigned char *outgoing; /* all-to-all: the data to send */
    own_room copied;         /* backs `outgoing` where that is a copy */
    unsigned char token;     /* a barrier's data */
} own_op;

typedef struct own_comm {
    hp_comm base;
    hp_comm *inner;
    int n_group;
    own_group world, *group; /* group: those of the joined program */
    int n_op;
    own_op **op;
} own_comm;

/* --- elements --- */

static unsigned char *address_of(const own_op *o, const hp_piece *p) {
    return (p->outgoing ? o->outgoing : (unsigned char *)o->op.data) + p->offset * o->plan.data.elem_bytes;
}

/* The range's single run; false: it has several, or none. */
static bool single(const own_op *o, int32_t lane, const hp_block_range *r, hp_piece *p) {
    int32_t x = 0;
    hp_piece more;
    return hp_collective_next(&o->plan, lane, r, &x, p) && !hp_collective_next(&o->plan, lane, r, &x, &more);
}

static void pack(const own_op *o, const own_slot *l) {
    hp_piece p;
    unsigned char *to = l->out;
    for (int32_t x = 0; hp_collective_next(&o->plan, l->lane, &l->at.send, &x, &p);) {
        const size_t n = (size_t)(p.count * o->plan.data.elem_bytes);
        memcpy(to, address_of(o, &p), n);
        to += n;
    }
}

static void unpack(const own_op *o, const own_slot *l) {
    hp_piece p;
    const unsigned char *from = l->in;
    for (int32_t x = 0; hp_collective_next(&o->plan, l->lane, &l->at.recv, &x, &p);) {
        const size_t n = (size_t)(p.count * o->plan.data.elem_bytes);
        if (l->at.add)
            hp_reduce((hp_reduction)o->op.reduction, (hp_dtype)o->op.dtype, address_of(o, &p), from, p.count);
        else
            memcpy(address_of(o, &p), from, n);
        from += n;
    }
}

/* --- steps --- */

static hp_status start(own_comm *c, const own_op *o, int slot, int kind, int member, void *data,
                       int64_t elems, int *handle, hp_error *err) {
    const hp_comm_op message = {.kind = kind,
                                .peer = o->group->rank[member],
                                .tag = o->tag + slot,
                                .dtype = o->op.dtype,
                                .count = elems,
                                .data = data,
                                .sent = o->op.sent,
                                .backend = o->op.backend == HP_BACKEND_OWN ? HP_BACKEND_MPI : o->op.backend};
    return c->inner->ops->start(c->inner, &message, handle, err);
}

/* Data is received directly into place, unless it is to be added, has several places, or the same
 * step sends from there. */
static bool in_place(const own_op *o, const own_slot *l, const hp_piece *out, hp_piece *in) {
    if (l->at.add || !single(o, l->lane, &l->at.recv, in)) return false;
    const bool apart = in->offset + in->count <= out->offset || out->offset + out->count <= in->offset;
    return l->at.send_to < 0 || in->outgoing != out->outgoing || apart;
}

static hp_status post(own_comm *c, own_op *o, int slot, hp_error *err) {
    own_slot *l = &o->slot[slot];
    const bool sends = l->at.send_to >= 0, alone = sends && single(o, l->lane, &l->at.send, &(hp_piece){0});
    hp_piece out = {0}, in;
    if (alone) single(o, l->lane, &l->at.send, &out);
    if (l->at.recv_from >= 0 && (l->elems = hp_collective_elems(&o->plan, l->lane, &l->at.recv)) > 0) {
        l->held = !((alone || !sends) && in_place(o, l, &out, &in));
        HP_TRY(start(c, o, slot, HP_COMM_RECV, l->at.recv_from, l->held ? l->in : address_of(o, &in),
                     l->elems, &l->recv, err));
    }
    const int64_t elems = sends ? hp_collective_elems(&o->plan, l->lane, &l->at.send) : 0;
    if (elems == 0) return HP_OK;
    if (!alone) pack(o, l);
    return start(c, o, slot, HP_COMM_SEND, l->at.send_to, alone ? address_of(o, &out) : l->out, elems,
                 &l->send, err);
}

/* Delivers a member's message to itself. */
static void copy_blocks(const own_op *o, own_slot *l) {
    unsigned char *in = l->in;
    pack(o, l);
    l->in = l->out;
    unpack(o, l);
    l->in = in;
}

/* Finds the next step with a message of this member, over all lanes of the slot; false: none is left. */
static bool next_step(const own_op *o, own_slot *l) {
    for (;; l->step++) {
        if (l->step >= o->plan.steps) {
            l->lane += o->n_slot;
            l->step = 0;
        }
        if (l->lane >= o->plan.lanes || o->plan.steps == 0) return false;
        l->at = hp_collective_at(&o->plan, l->lane, l->step);
        const bool itself = l->at.send_to == o->plan.member && l->at.recv_from == o->plan.member;
        if (itself)
            copy_blocks(o, l);
        else if (l->at.send_to >= 0 || l->at.recv_from >= 0)
            return true;
    }
}

/* Posts steps until one has messages under way. A slot whose lanes are finished becomes inactive. */
static hp_status go_on(own_comm *c, own_op *o, int slot, hp_error *err) {
    own_slot *l = &o->slot[slot];
    for (l->send = l->recv = -1; next_step(o, l);) {
        l->held = false;
        HP_TRY(post(c, o, slot, err));
        if (l->send >= 0 || l->recv >= 0) return HP_OK;
        l->step++;
    }
    o->n_active--;
    l->lane = o->plan.lanes;
    return HP_OK;
}

static hp_status test_message(own_comm *c, int *handle, hp_error *err) {
    bool done = false;
    if (*handle < 0) return HP_OK;
    HP_TRY(c->inner->ops->test(c->inner, *handle, &done, err));
    if (done) *handle = -1;
    return HP_OK;
}

/* Advances the slot if the messages of its step have arrived: *moved. */
static hp_status test_slot(own_comm *c, own_op *o, int slot, bool *moved, hp_error *err) {
    own_slot *l = &o->slot[slot];
    if (l->lane >= o->plan.lanes) return HP_OK;
    HP_TRY(test_message(c, &l->recv, err));
    HP_TRY(test_message(c, &l->send, err));
    if (l->recv >= 0 || l->send >= 0) return HP_OK;
    *moved = true;
    if (l->held) unpack(o, l);
    l->step++;
    return go_on(c, o, slot, err);
}

/* --- the beginning and the end of a collective --- */

static int64_t more(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Largest number of bytes that a step buffers on arrival (*in) or packs to send (*out). */
static void most_bytes(const own_op *o, int64_t *in, int64_t *out) {
    const hp_collective_plan *p = &o->plan;
    *in = *out = 0;
    for (int32_t lane = 0; lane < 2 && lane < p->lanes; lane++)
        for (int32_t step = 0; step < p->steps; step++) {
            const hp_block_step s = hp_collective_at(p, lane, step);
            const bool packs =
                s.send_to >= 0 && (s.send_to == p->member || !single(o, lane, &s.send, &(hp_piece){0}));
            if (s.recv_from >= 0) *in = more(*in, hp_collective_elems(p, lane, &s.recv) * p->data.elem_bytes);
            if (packs) *out = more(*out, hp_collective_elems(p, lane, &s.send) * p->data.elem_bytes);
        }
}

static hp_status make_room(own_room *r, int64_t bytes, hp_error *err) {
    if (bytes <= 0 || bytes <= r->bytes) return HP_OK;
    free(r->at);
    *r = (own_room){.at = malloc((size_t)bytes), .bytes = bytes};
    if (r->at) return HP_OK;
    r->bytes = 0;
    return hp_fail(err, HP_EIO, "out of memory: %lld bytes for a collective", (long long)bytes);
}

/* Range of elements that a member has at the beginning, or at the end. */
static hp_piece blocks_of(const own_op *o, hp_blocks_of which) {
    if (which == HP_BLOCKS_OWN) return hp_collective_block(&o->plan, o->plan.member);
    const bool none = which == HP_BLOCKS_ROOT && o->plan.member != o->plan.c.root;
    return (hp_piece){.count = none ? 0 : o->plan.data.count};
}

/* Copies the member's contribution into place. An in-place all-to-all would overwrite it,
 * so it gets a copy. */
static hp_status bring_in(own_op *o, hp_error *err) {
    const int64_t elem = o->plan.data.elem_bytes;
    const void *from = o->op.source;
    if (o->op.what == HP_COLLECTIVE_ALL_TO_ALL) {
        o->outgoing = (unsigned char *)(uintptr_t)from;
        if (from || o->plan.data.count == 0) return HP_OK;
        HP_TRY(make_room(&o->copied, o->plan.data.count * elem, err));
        o->outgoing = o->copied.at;
        memcpy(o->copied.at, o->op.data, (size_t)(o->plan.data.count * elem));
        return HP_OK;
    }
    if (!from) return HP_OK;
    const hp_piece mine = blocks_of(o, hp_collective_infos[o->op.what].begins);
    memcpy((unsigned char *)o->op.data + mine.offset * elem, from, (size_t)(mine.count * elem));
    return HP_OK;
}

static void finish(own_op *o) {
    if (o->op.reduction == HP_REDUCE_AVG && hp_collective_infos[o->op.what].adds &&
        o->op.what != HP_COLLECTIVE_BARRIER) {
        const hp_piece mine = blocks_of(o, hp_collective_infos[o->op.what].ends);
        hp_reduce_divide((hp_dtype)o->op.dtype,
                         (unsigned char *)o->op.data + mine.offset * o->plan.data.elem_bytes, mine.count,
                         o->plan.c.size);
    }
    o->used = false;
}

static void plan_op(own_op *o) {
    const own_group *g = o->group;
    if (o->op.what == HP_COLLECTIVE_BARRIER) {
        o->op.data = &o->token;
        o->op.source = NULL;
        o->op.count = 1;
        o->op.dtype = HP_U8;
        o->op.reduction = HP_REDUCE_MAX;
    }
    const hp_collective_case c = {.what = (hp_collective)o->op.what,
                                  .size = g->n,
                                  .root = o->op.root,
                                  .per_node = o->op.per_node ? o->op.per_node : g->n};
    const hp_collective_data data = {
        .count = o->op.count, .part = o->op.part, .elem_bytes = hp_dtype_bytes((hp_dtype)o->op.dtype)};
    const hp_algorithm a = o->op.algorithm
                               ? (hp_algorithm)o->op.algorithm
                               : hp_algorithm_choose(&c, data.count * data.elem_bytes, data.part == NULL);
    o->plan = hp_collective_plan_of(a, &c, g->me, &data);
}

static hp_status begin(own_comm *c, own_op *o, hp_error *err) {
    plan_op(o);
    HP_TRY(bring_in(o, err));
    o->n_slot = o->plan.lanes < SLOTS ? o->plan.lanes : SLOTS;
    int64_t in, out;
    most_bytes(o, &in, &out);
    HP_TRY(make_room(&o->scratch, (in + out) * o->n_slot, err));
    o->n_active = o->n_slot;
    for (int s = 0; s < o->n_slot; s++) {
        unsigned char *at = o->scratch.at ? o->scratch.at + (in + out) * s : NULL;
        o->slot[s] = (own_slot){.lane = s, .in = at, .out = at ? at + in : NULL};
        HP_TRY(go_on(c, o, s, err));
    }
    return HP_OK;
}

static hp_status progress(own_comm *c, own_op *o, bool *done, hp_error *err) {
    for (bool moved = true; moved && o->n_active > 0;) {
        moved = false;
        for (int s = 0; s < o->n_slot; s++) HP_TRY(test_slot(c, o, s, &moved, err));
    }
    *done = o->n_active == 0;
    if (*done) finish(o);
    return HP_OK;
}

/* --- the vtable: handles of the inner communicator are even, those of collectives odd --- */

static int free_op(own_comm *c) {
    for (int i = 0; i < c->n_op; i++)
        if (!c->op[i]->used) return i;
    c->op = hp_realloc(c->op, sizeof *c->op * (size_t)(c->n_op + 1));
    c->op[c->n_op] = hp_zeroed(1, sizeof **c->op);
    return c->n_op++;
}

static own_group *group_of(own_comm *c, int32_t group) {
    return group == HP_COMM_WORLD ? &c->world : &c->group[group];
}

static hp_status start_collective(own_comm *c, const hp_comm_op *what, int *handle, hp_error *err) {
    const int i = free_op(c);
    own_op *o = c->op[i];
    own_group *g = group_of(c, what->group);
    HP_ASSERT(g->n > 0);
    o->used = true;
    o->op = *what;
    o->group = g;
    o->outgoing = NULL;
    const unsigned group = (unsigned)(what->group + 1) % (1u << GROUP_BITS),
                   call = (unsigned)g->calls++ % (1u << CALL_BITS);
    o->tag = (int32_t)(HP_COMM_TAGS | (group << CALL_BITS | call) << SLOT_BITS);
    *handle = 2 * i + 1;
    return begin(c, o, err);
}

static hp_status own_start(hp_comm *comm, const hp_comm_op *what, int *handle, hp_error *err) {
    own_comm *c = (own_comm *)comm;
    hp_status s = HP_OK;
    if (what->kind == HP_COMM_COLLECTIVE && hp_backend_steps(what->backend)) {
        s = start_collective(c, what, handle, err);
    } else {
        s = c->inner->ops->start(c->inner, what, handle, err);
        *handle *= 2;
    }
    c->base.sent_bytes = c->inner->sent_bytes;
    return s;
}

static hp_status own_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    own_comm *c = (own_comm *)comm;
    const hp_status s = handle % 2 ? progress(c, c->op[handle / 2], done, err)
                                   : c->inner->ops->test(c->inner, handle / 2, done, err);
    c->base.sent_bytes = c->inner->sent_bytes;
    c->base.direct_bytes = c->inner->direct_bytes;
    return s;
}

static hp_status own_end(hp_comm *comm, hp_error *err) {
    hp_comm *inner = ((own_comm *)comm)->inner;
    return inner->ops->end ? inner->ops->end(inner, err) : HP_OK;
}

static bool own_ordered(const hp_comm *comm, int backend) {
    const hp_comm *inner = ((const own_comm *)comm)->inner;
    return inner->ops->ordered && inner->ops->ordered(inner, backend);
}

static void free_groups(own_comm *c) {
    for (int g = 0; g < c->n_group; g++) free(c->group[g].rank);
    free(c->group);
    c->group = NULL;
    c->n_group = 0;
}

static void list_members(own_comm *c, const hp_program *p, int group) {
    const int role = c->base.rank % p->n_role, replica = c->base.rank / p->n_role;
    own_group *g = &c->group[group];
    if (!hp_group_has_role(p, group, role)) return;
    g->n = hp_group_size(p, group);
    g->rank = hp_alloc(sizeof *g->rank * (size_t)g->n);
    for (int k = 0; k < g->n; k++) {
        g->rank[k] = hp_group_rank(p, group, replica, k);
        if (g->rank[k] == c->base.rank) g->me = k;
    }
}

static hp_status own_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    own_comm *c = (own_comm *)comm;
    free_groups(c);
    c->n_group = p->n_group;
    c->group = hp_zeroed((size_t)p->n_group, sizeof *c->group);
    for (int g = 0; g < p->n_group; g++) list_members(c, p, g);
    return c->inner->ops->join(c->inner, p, err);
}

static void own_close(hp_comm *comm) {
    own_comm *c = (own_comm *)comm;
    c->inner->ops->close(c->inner);
    free_groups(c);
    for (int i = 0; i < c->n_op; i++) {
        free(c->op[i]->scratch.at);
        free(c->op[i]->copied.at);
        free(c->op[i]);
    }
    free(c->op);
    free(c->world.rank);
    free(c);
}

static void own_abort(hp_comm *comm, int code) {
    hp_comm *inner = ((own_comm *)comm)->inner;
    inner->ops->abort(inner, code);
}

static const hp_comm_ops OWN = {.name = "own",
                                .join = own_join,
                                .start = own_start,
                                .end = own_end,
                                .test = own_test,
                                .ordered = own_ordered,
                                .close = own_close,
                                .abort = own_abort};

hp_comm *hp_comm_own(hp_comm *inner) {
    own_comm *c = hp_zeroed(1, sizeof *c);
    c->base = (hp_comm){.ops = &OWN,
                        .rank = inner->rank,
                        .size = inner->size,
                        .sent_bytes = inner->sent_bytes,
                        .reads_device = inner->reads_device};
    c->inner = inner;
    c->world = (own_group){
        .n = inner->size, .me = inner->rank, .rank = malloc(sizeof(int32_t) * (size_t)inner->size)};
    HP_ASSERT(c->world.rank);
    for (int r = 0; r < inner->size; r++) c->world.rank[r] = r;
    return &c->base;
}

hp_comm **hp_comm_own_inner(hp_comm *own) {
    return &((own_comm *)own)->inner;
}
