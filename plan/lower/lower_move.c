/* lower_move.c - boxes of tensors from the ranks that own them to the ranks that need them, and the gradients
 * back.
 *
 * Over a stage boundary, each part receives what it has of a tensor from the owners of the stage before.
 * Within a stage, what a layer reads beyond what its part has comes in an exchange. Both are the same linear
 * map, every element read from its one owner; the backward pass is its adjoint: gradients go back to the
 * owner and are added there. A message is a box: it is the intersection of what one side owns and the other
 * needs. */
#include "plan/lower/lower_inside.h"
#include "plan/program/traffic.h"

#include <stdlib.h>

static int stage_parts(const hp_role_builder *c, int vstage) {
    return c->facts->vstage[vstage].geo->n_part;
}

static int role_at(const hp_role_builder *c, const hp_pass *a, int vstage, int part) {
    return hp_role_of(c->facts->s, vstage % c->facts->s->stages, part, a->flip);
}

static int channel_of(int vstage, int flip, bool within, bool backward) {
    return ((vstage * 2 + flip) * 2 + within) * 2 + backward;
}

/* --- one message, one copy --- */

typedef struct route {
    int peer, channel, tensor;
} route;

static hp_backend carrier(const hp_role_builder *c, int channel) {
    const hp_traffic traffic = hp_channel_traffic(channel);
    return hp_comm_backend(c->facts->s->comm[traffic], traffic, c->facts->o->device, c->facts->s->clients);
}

static void transfer(hp_role_builder *c, const hp_pass *a, hp_task_op op, route r, int32_t buffer) {
    hp_task t = lower_layer_task(a, op, c->facts->g->tensor[r.tensor].producer, 0);
    t.queue = (int16_t)lower_queue(c, hp_task_infos[op].queue, r.peer, r.channel, carrier(c, r.channel));
    t.message.position = a->micro * c->facts->g->n_tensor + r.tensor;
    t.dtype = c->r->buffer[buffer].dtype;
    t.message.elems = c->r->buffer[buffer].bytes / hp_dtype_bytes((hp_dtype)t.dtype);
    lower_task(c, t, &buffer);
}

static void copy(hp_role_builder *c, const hp_pass *a, int tensor, int32_t dst, int32_t src, bool add) {
    const bool equal = hp_box_equal(lower_box_of(c, dst), lower_box_of(c, src)), same = add && equal;
    if (!add && equal && hp_buffer_is_code(&c->r->buffer[src])) {
        lower_decode(c, a, tensor, dst, src);
        return;
    }
    const int32_t operand[2] = {dst, lower_plain(c, a, HP_BUF_MESSAGE, tensor, src)};
    const hp_task_op op = same ? HP_TASK_ACCUM : HP_TASK_COPY;
    lower_task(c,
               lower_layer_task(a, op, c->facts->g->tensor[tensor].producer, add && !same ? HP_FLAG_ADD : 0),
               operand);
}

void lower_copy(hp_role_builder *c, const hp_pass *a, int tensor, int32_t dst, int32_t src) {
    copy(c, a, tensor, dst, src, false);
}

/* The buffer to send for `box` of `from`: `from` itself if it is just that box; or its code. */
static int32_t message_of(hp_role_builder *c, const hp_pass *a, route r, const hp_box *box, int32_t from) {
    const hp_codec codec = lower_codec(c, hp_channel_traffic(r.channel), box);
    int32_t buffer = from;
    if (!hp_box_equal(box, lower_box_of(c, from))) {
        buffer = lower_box(c, HP_BUF_MESSAGE, r.tensor, a->micro, box);
        copy(c, a, r.tensor, buffer, from, false);
    }
    return codec ? lower_encode(c, a, codec, r.tensor, buffer) : buffer;
}

static void send(hp_role_builder *c, const hp_pass *a, route r, int32_t buffer) {
    transfer(c, a, HP_TASK_SEND, r, buffer);
    const bool within = r.channel & HP_CHANNEL_WITHIN;
    if (within && c->shared->keep == 1)
        return; /* the parts of a stage run the same layers at the same time: no send is pending for long */
    HP_ROOM(c->facts->arena, c->sent.buffer, c->sent.n, c->sent.room);
    c->sent.buffer[c->sent.n++] = buffer;
}

static void send_box(hp_role_builder *c, const hp_pass *a, route r, const hp_box *box, int32_t from) {
    send(c, a, r, message_of(c, a, r, box, from));
}

/* A code is decoded by who reads it. */
static int32_t recv_box(hp_role_builder *c, const hp_pass *a, route r, const hp_box *box,
                        hp_buffer_kind kind) {
    const hp_codec codec = lower_codec(c, hp_channel_traffic(r.channel), box);
    const int32_t buffer =
        codec ? lower_code(c, a, codec, r.tensor, box) : lower_box(c, kind, r.tensor, a->micro, box);
    transfer(c, a, HP_TASK_RECV, r, buffer);
    return buffer;
}

static void arrive(hp_role_builder *c, hp_arrivals *list, int room, int32_t buffer) {
    if (!list->buffer) list->buffer = HP_NEW(c->facts->arena, int32_t, room);
    list->buffer[list->n++] = buffer;
}

/* --- several boxes into one --- */

/* Do the boxes cover the target without overlapping? */
static bool tiles_exactly(const hp_role_builder *c, const hp_box *target, const hp_arrivals *from) {
    int64_t sum = 0;
    for (int i = 0; i < from->n; i++) {
        const hp_box part = hp_box_and(target, lower_box_of(c, from->buffer[i]));
        sum += hp_box_elems(&part);
        for (int j = 0; j < i; j++) {
            const hp_box both = hp_box_and(&part, lower_box_of(c, from->buffer[j]));
            if (!hp_box_empty(&both)) return false;
        }
    }
    return sum == hp_box_elems(target);
}

/* Moves a buffer that covers the whole target to the front. */
static bool covering_first(const hp_role_builder *c, const hp_box *target, hp_arrivals *from) {
    for (int i = 0; i < from->n; i++) {
        if (!hp_box_within(target, lower_box_of(c, from->buffer[i]))) continue;
        const int32_t b = from->buffer[i];
        from->buffer[i] = from->buffer[0];
        from->buffer[0] = b;
        return true;
    }
    return false;
}

/* Adds gradients to *into, which the first creates. A buffer that covers all of it becomes the gradient.
 */
static void sum_into(hp_role_builder *c, const hp_pass *a, int tensor, const hp_box *target, int32_t *into,
                     hp_arrivals *from) {
    int done = 0;
    bool add = true;
    if (*into < 0 && from->n && covering_first(c, target, from)) {
        if (hp_box_equal(target, lower_box_of(c, from->buffer[0]))) {
            *into = lower_plain(c, a, HP_BUF_GRADIENT, tensor, from->buffer[0]);
        } else {
            *into = lower_box(c, HP_BUF_GRADIENT, tensor, a->micro, target);
            copy(c, a, tensor, *into, from->buffer[0], false);
        }
        done = 1;
    } else if (*into < 0) {
        *into = lower_box(c, HP_BUF_GRADIENT, tensor, a->micro, target);
        add = !tiles_exactly(c, target, from);
        if (add) lower_zero(c, a, c->facts->g->tensor[tensor].producer, *into, 0, hp_box_elems(target));
    }
    for (int i = done; i < from->n; i++) copy(c, a, tensor, *into, from->buffer[i], add);
}

static void need_gradient(hp_role_builder *c, const hp_pass *a, int tensor, const hp_box *box,
                          int32_t *grad) {
    hp_arrivals none = {0, NULL};
    if (*grad < 0 && !hp_box_empty(box)) sum_into(c, a, tensor, box, grad, &none);
}

/* --- over a stage boundary --- */

static int vstage_of(const hp_role_builder *c, const hp_pass *a) {
    return (int)(a->v - c->facts->vstage);
}

/* The same micro-batch on this role's other slot of that virtual stage and part. */
static const hp_frame *frame_of(const hp_role_builder *c, const hp_pass *a, int vstage, int part) {
    for (int i = 0; i < c->r->n_slot; i++) {
        const hp_slot *s = &c->r->slot[i];
        if (s->stage == vstage && s->part == part && s->flip == a->flip)
            return &c->frame[i * c->shared->p->micro + a->micro];
    }
    abort(); /* roles of neighbouring stages are equal only when a slot of this role is the neighbour */
}

static void recv_input(hp_role_builder *c, const hp_pass *a, int tensor) {
    const int from = vstage_of(c, a) - 1, n = stage_parts(c, from);
    const hp_box *have = lower_have(c->facts, a, tensor);
    hp_arrivals came = {0, NULL};
    if (hp_box_empty(have)) return;
    for (int p = 0; p < n; p++) {
        const hp_box box =
            hp_box_and(have, hp_geometry_own(c->facts->vstage[from].geo, c->facts->g, p, tensor));
        if (hp_box_empty(&box)) continue;
        const route r = {role_at(c, a, from, p), channel_of(from, a->flip, false, false), tensor};
        if (r.peer == c->role) { /* first: what it computed of others' rows gives way to what they send */
            arrive(c, &came, n, frame_of(c, a, from, p)->act[tensor]);
            const int32_t here = came.buffer[came.n - 1];
            came.buffer[came.n - 1] = came.buffer[0];
            came.buffer[0] = here;
            continue;
        }
        const bool whole = hp_box_equal(&box, have);
        const int32_t b = recv_box(c, a, r, &box, whole ? HP_BUF_TENSOR : HP_BUF_MESSAGE);
        if (whole) a->f->act[tensor] = lower_plain(c, a, HP_BUF_TENSOR, tensor, b);
        arrive(c, &came, n, b);
    }
    if (a->f->act[tensor] >= 0) return;
    a->f->act[tensor] = lower_box(c, HP_BUF_TENSOR, tensor, a->micro, have);
    for (int i = 0; i < came.n; i++) copy(c, a, tensor, a->f->act[tensor], came.buffer[i], false);
}

void lower_recv_inputs(hp_role_builder *c, const hp_pass *a) {
    for (int i = 0; i < a->v->n_in; i++) recv_input(c, a, a->v->in[i]);
}

void lower_send_outputs(hp_role_builder *c, const hp_pass *a) {
    const int at = vstage_of(c, a);
    for (int i = 0; i < a->v->n_out; i++) {
        const int t = a->v->out[i];
        for (int q = 0; q < stage_parts(c, at + 1); q++) {
            const hp_box box = hp_box_and(lower_own(c->facts, a, t),
                                          hp_geometry_have(c->facts->vstage[at + 1].geo, c->facts->g, q, t));
            const route r = {role_at(c, a, at + 1, q), channel_of(at, a->flip, false, false), t};
            if (!hp_box_empty(&box) && r.peer != c->role) send_box(c, a, r, &box, a->f->act[t]);
        }
    }
}

/* The part `box` of what a stage on the same rank returns: no more, or the halo around what is owned would
 * count twice. */
static int32_t local_gradient(hp_role_builder *c, const hp_pass *a, int tensor, const hp_box *box,
                              int32_t from) {
    const hp_box both = hp_box_and(lower_have(c->facts, a, tensor), lower_box_of(c, from));
    if (hp_box_equal(&both, box)) return from;
    const int32_t part = lower_box(c, HP_BUF_MESSAGE, tensor, a->micro, box);
    copy(c, a, tensor, part, from, false);
    return part;
}

static void recv_gradient(hp_role_builder *c, const hp_pass *a, int tensor) {
    const int at = vstage_of(c, a), n = stage_parts(c, at + 1);
    const hp_box *own = lower_own(c->facts, a, tensor), *have = lower_have(c->facts, a, tensor);
    hp_arrivals came = {0, NULL};
    for (int q = 0; q < n; q++) {
        const hp_box box =
            hp_box_and(own, hp_geometry_have(c->facts->vstage[at + 1].geo, c->facts->g, q, tensor));
        if (hp_box_empty(&box)) continue;
        const route r = {role_at(c, a, at + 1, q), channel_of(at, a->flip, false, true), tensor};
        const bool whole = hp_box_equal(&box, have);
        arrive(c, &came, n,
               r.peer == c->role ? local_gradient(c, a, tensor, &box, frame_of(c, a, at + 1, q)->grad[tensor])
                                 : recv_box(c, a, r, &box, whole ? HP_BUF_GRADIENT : HP_BUF_MESSAGE));
    }
    if (came.n) sum_into(c, a, tensor, have, &a->f->grad[tensor], &came);
}

void lower_recv_gradients(hp_role_builder *c, const hp_pass *a) {
    for (int i = 0; i < a->v->n_out; i++)
        if (lower_wants_gradient(c->facts, a->v->out[i])) recv_gradient(c, a, a->v->out[i]);
}

void lower_send_gradients(hp_role_builder *c, const hp_pass *a) {
    const int to = vstage_of(c, a) - 1;
    for (int i = 0; i < a->v->n_in; i++) {
        const int t = a->v->in[i];
        const hp_box *have = lower_have(c->facts, a, t);
        if (!lower_wants_gradient(c->facts, t)) continue;
        need_gradient(c, a, t, have, &a->f->grad[t]);
        for (int p = 0; p < stage_parts(c, to); p++) {
            const hp_box box = hp_box_and(have, hp_geometry_own(c->facts->vstage[to].geo, c->facts->g, p, t));
            const route r = {role_at(c, a, to, p), channel_of(to, a->flip, false, true), t};
            if (!hp_box_empty(&box) && r.peer != c->role) send_box(c, a, r, &box, a->f->grad[t]);
        }
    }
}

/* --- within a stage --- */

static const hp_box *ext_of(const hp_role_builder *c, const hp_pass *a, int part, int tensor) {
    return &a->v->ext[(int64_t)part * c->facts->g->n_tensor + tensor];
}

const hp_box *lower_room_for_halo(const hp_role_builder *c, const hp_pass *a, int tensor) {
    const hp_box *ext = ext_of(c, a, a->part, tensor), *have = lower_have(c->facts, a, tensor);
    hp_box rows = *ext;
    if (!c->facts->g->deployed || hp_box_empty(ext) || hp_box_len(ext, HP_AXIS_N) != 1 ||
        !hp_box_within(have, ext) || c->facts->last_use[tensor] >= a->v->end)
        return NULL;
    rows.lo[HP_AXIS_H] = have->lo[HP_AXIS_H];
    rows.hi[HP_AXIS_H] = have->hi[HP_AXIS_H];
    return hp_box_equal(&rows, have) ? ext : NULL;
}

static hp_box piece_of(const hp_role_builder *c, const hp_pass *a, int tensor, int reader, int owner) {
    return hp_box_and(ext_of(c, a, reader, tensor), hp_geometry_own(a->v->geo, c->facts->g, owner, tensor));
}

/* The piece that goes to part q, or comes from it; empty: none. */
static hp_box piece_with(const hp_role_builder *c, const hp_pass *a, int tensor, int q, bool reads) {
    hp_box none = {{0}, {0}};
    if (q == a->part) return none;
    return piece_of(c, a, tensor, reads ? a->part : q, reads ? q : a->part);
}

/* One round of messages: this part receives its pieces from the others, then sends them their pieces of
 * `from`, to its successor first. All messages are filled before the first is sent: memory that a sent one
 * gives back would delay the next. */
static void round_of(hp_role_builder *c, const hp_pass *a, int tensor, bool backward, hp_arrivals *came,
                     int32_t from) {
    const int at = vstage_of(c, a), n = stage_parts(c, at), channel = channel_of(at, a->flip, true, backward);
    int32_t *go = HP_NEW(c->facts->arena, int32_t, n);
    *came = (hp_arrivals){0, NULL};
    for (int q = 0; q < n; q++) {
        const hp_box box = piece_with(c, a, tensor, q, !backward);
        const route r = {role_at(c, a, at, q), channel, tensor};
        if (!hp_box_empty(&box)) arrive(c, came, n, recv_box(c, a, r, &box, HP_BUF_MESSAGE));
    }
    for (int k = 1; k < n; k++) {
        const int q = (a->part + k) % n;
        const hp_box box = piece_with(c, a, tensor, q, backward);
        const route r = {role_at(c, a, at, q), channel, tensor};
        go[k] = hp_box_empty(&box) ? -1 : message_of(c, a, r, &box, from);
    }
    for (int k = 1; k < n; k++) {
        const route r = {role_at(c, a, at, (a->part + k) % n), channel, tensor};
        if (go[k] >= 0) send(c, a, r, go[k]);
    }
}

void lower_exchange(hp_role_builder *c, const hp_pass *a, int tensor) {
    if (a->v->exchanges[tensor]) round_of(c, a, tensor, false, &a->f->came[tensor], a->f->act[tensor]);
}

/* Unpacks what an exchange brought, around what was here. */
static int32_t unpacked(hp_role_builder *c, const hp_pass *a, int tensor) {
    hp_frame *f = a->f;
    if (f->ext[tensor] >= 0) return f->ext[tensor];
    const hp_box *box = ext_of(c, a, a->part, tensor);
    const hp_box here = hp_box_and(box, lower_own(c->facts, a, tensor));
    if (f->act[tensor] >= 0 && hp_box_equal(box, lower_box_of(c, f->act[tensor]))) { /* with room for it */
        f->ext[tensor] = f->act[tensor];
        for (int i = 0; i < f->came[tensor].n; i++)
            copy(c, a, tensor, f->ext[tensor], f->came[tensor].buffer[i], false);
        return f->ext[tensor];
    }
    f->ext[tensor] = lower_box(c, HP_BUF_TENSOR, tensor, a->micro, box);
    if (!hp_box_empty(&here)) copy(c, a, tensor, f->ext[tensor], f->act[tensor], false);
    for (int i = 0; i < f->came[tensor].n; i++)
        copy(c, a, tensor, f->ext[tensor], f->came[tensor].buffer[i], false);
    return f->ext[tensor];
}

static bool reads(const hp_role_builder *c, int layer, const hp_box *need, const hp_box *box) {
    return layer == c->facts->g->n_layer ? hp_box_equal(need, box)
                                         : hp_layer_reads(c->facts->g, layer, need, box);
}

int32_t lower_input(hp_role_builder *c, const hp_pass *a, int layer, int k, int tensor) {
    const hp_box *need = hp_geometry_need(a->v->geo, a->part, layer, k),
                 *have = lower_have(c->facts, a, tensor);
    int32_t *in = &a->f->in[lower_need_index(a, layer, k)];
    *in = -1;
    if (hp_box_empty(need)) return -1;
    const int32_t from = hp_box_within(need, have) ? a->f->act[tensor] : unpacked(c, a, tensor);
    *in = from;
    if (reads(c, layer, need, lower_box_of(c, from))) return from;
    *in = lower_box(c, HP_BUF_TENSOR, tensor, a->micro, need);
    copy(c, a, tensor, *in, from, false);
    return *in;
}

void lower_contribute(hp_role_builder *c, const hp_pass *a, int layer, int k, int tensor, int32_t gradient) {
    const hp_box *need = hp_geometry_need(a->v->geo, a->part, layer, k),
                 *have = lower_have(c->facts, a, tensor);
    hp_arrivals one = {1, &gradient};
    if (hp_box_within(need, have)) {
        sum_into(c, a, tensor, have, &a->f->grad[tensor], &one);
    } else {
        sum_into(c, a, tensor, ext_of(c, a, a->part, tensor), &a->f->ext_grad[tensor], &one);
    }
}

void lower_return(hp_role_builder *c, const hp_pass *a, int tensor) {
    if (!a->v->exchanges[tensor] || !lower_wants_gradient(c->facts, tensor)) return;
    need_gradient(c, a, tensor, ext_of(c, a, a->part, tensor), &a->f->ext_grad[tensor]);
    round_of(c, a, tensor, true, &a->f->back[tensor], a->f->ext_grad[tensor]);
}

void lower_collect(hp_role_builder *c, const hp_pass *a, int tensor) {
    hp_frame *f = a->f;
    const hp_box *have = lower_have(c->facts, a, tensor);
    if (hp_box_empty(have)) return;
    if (a->v->exchanges[tensor]) {
        hp_arrivals all = {0, HP_NEW(c->facts->arena, int32_t, f->back[tensor].n + 1)};
        const hp_box here = hp_box_and(ext_of(c, a, a->part, tensor), have);
        if (!hp_box_empty(&here)) all.buffer[all.n++] = f->ext_grad[tensor];
        for (int i = 0; i < f->back[tensor].n; i++) all.buffer[all.n++] = f->back[tensor].buffer[i];
        if (all.n) sum_into(c, a, tensor, have, &f->grad[tensor], &all);
    }
    need_gradient(c, a, tensor, have, &f->grad[tensor]);
}
