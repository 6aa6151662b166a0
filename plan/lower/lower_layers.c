/* lower_layers.c - one pass of one micro-batch through a part of a virtual stage: receive, compute layer by
 * layer, exchange, send.
 *
 * Gradients of a tensor with several readers are summed in the order the backward pass meets them.
 * Elementwise layers work in place where the old value is not needed. With recomputation, the backward pass
 * first runs a group of layers (a unit, or the whole stage) forward again from the group's kept inputs. A
 * part that has nothing of a layer's output computes nothing, and still takes part in exchanges and sums. */
#include "plan/lower/lower_inside.h"
#include "plan/memory/memory_device.h"
#include "plan/program/operands.h"

#include <string.h>

static void clear_frame(hp_role_builder *c, hp_frame *f, const hp_vstage *v) {
    const size_t n = sizeof(int32_t) * (size_t)c->facts->g->n_tensor;
    memset(f->act, -1, n);
    memset(f->grad, -1, n);
    memset(f->ext, -1, n);
    memset(f->ext_grad, -1, n);
    memset(f->save, -1, sizeof(int32_t) * (size_t)c->facts->g->n_layer);
    memset(f->in, -1, sizeof(int32_t) * (size_t)v->geo->n_need);
}

/* Does the backward pass of a layer before this one read the tensor as it is? */
static bool read_again(const hp_role_builder *c, int tensor, int layer) {
    for (int l = c->facts->g->tensor[tensor].producer + 1; l < layer; l++)
        for (int k = 0; k < c->facts->g->layer[l].n_in; k++)
            if (c->facts->g->layer[l].in[k] == tensor && hp_layer_backward_reads_x(&c->facts->g->layer[l]))
                return true;
    return false;
}

/* May the layer overwrite its first input? */
static bool in_place(const hp_role_builder *c, const hp_pass *a, int layer) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const int x = l->in[0];
    if (hp_forward_in_place(l) != 0 || c->facts->last_use[x] != layer || (l->n_in > 1 && l->in[1] == x))
        return false;
    if (c->facts->g->tensor[x].store != c->facts->g->tensor[l->out].store) return false;
    if (a->f->in[lower_need_index(a, layer, 0)] != a->f->act[x]) return false;
    const hp_box *box = lower_box_of(c, a->f->act[x]); /* others may have wanted more rows of it */
    if (!hp_box_equal(box, lower_have(c->facts, a, x)) || !hp_box_equal(box, lower_have(c->facts, a, l->out)))
        return false;
    if (!lower_train(c->facts)) return true;
    const hp_layer *producer = &c->facts->g->layer[c->facts->g->tensor[x].producer];
    const bool kept =
        producer->unit != l->unit || producer == c->facts->g->layer; /* what recomputation begins with */
    if (kept && c->facts->s->recompute != HP_RECOMPUTE_NONE) return false;
    return !hp_layer_backward_reads_x(l) && !hp_layer_backward_reads_y(producer) && !read_again(c, x, layer);
}

/* The task reads a layer's packed weights, an operand by way of role->pack_forward or pack_backward. */
static void use_pack(hp_role_builder *c, int task, int32_t pack) {
    if (pack < 0) return;
    lower_touch(c, pack);
    lower_dep(c, task, c->emit.writer[pack]);
}

static hp_shape shape_of(const hp_role_builder *c, int layer, int32_t in, int32_t out) {
    return hp_shape_between(c->facts->g, layer, lower_box_of(c, in), lower_box_of(c, out));
}

/* The role's scratch must hold what the task wants. */
static void note_scratch(hp_role_builder *c, hp_task_op op, int layer, const hp_shape *s) {
    const hp_device_memory *memory = hp_device_memory_of(c->shared->p->device);
    const int64_t bytes = c->facts->g->deployed
                              ? memory->infer_scratch(c->facts->g, layer, s, c->facts->o->dtype)
                              : memory->scratch(c->facts->g, layer, op, s, c->facts->o->dtype);
    if (bytes > c->scratch_bytes) c->scratch_bytes = bytes;
}

/* --- batch norm over several ranks --- */

/* Sums over ranks apart from the layer itself: the statistics of what each part owns, added up over a group.
 * bn=local takes the statistics of what the part has, redundant rows included, as MPI4DL does. */
typedef struct norm {
    int group;      /* -1: the layer does all by itself */
    int64_t pixels; /* that the statistics cover */
    int64_t sums;   /* elements: two per channel */
} norm;

static norm norm_of(const hp_role_builder *c, const hp_pass *a, int layer) {
    const hp_layer *l = &c->facts->g->layer[layer];
    if (l->op != HP_BN || !lower_train(c->facts)) return (norm){-1, 0, 0};
    const int group = lower_sync_group(c->shared, a->stage, a->part, a->flip);
    if (group < 0) return (norm){-1, 0, 0};
    const hp_tensor *t = &c->facts->g->tensor[l->out];
    return (norm){group, hp_norm_samples(c->shared->p, c->role) * t->h * t->w,
                  2 * hp_box_len(lower_own(c->facts, a, l->out), HP_AXIS_C)};
}

/* Adds up what each part of the group summed, or zeros where it has nothing. */
static void reduce_sums(hp_role_builder *c, const hp_pass *a, int layer, const norm *n, int32_t sums,
                        bool empty) {
    if (empty) lower_zero(c, a, layer, sums, 0, n->sums);
    hp_task t = lower_layer_task(a, HP_TASK_ALLREDUCE, layer, 0);
    t.dtype = HP_F64;
    t.collective.bucket = -1;
    t.collective.elems = n->sums;
    lower_collective(c, n->group, &t);
    lower_task(c, t, (int32_t[2]){sums, -1});
}

static int32_t forward_sums(hp_role_builder *c, const hp_pass *a, int layer, const norm *n, int32_t x,
                            int32_t save) {
    if (n->group < 0 || n->sums == 0) return -1;
    const int32_t sums = lower_buffer(c, HP_BUF_SUMS, HP_F64, n->sums, layer, a->micro);
    const int32_t operand[3] = {sums, x, save};
    if (x >= 0) lower_task(c, lower_layer_task(a, HP_TASK_STATS, layer, 0), operand);
    reduce_sums(c, a, layer, n, sums, x < 0);
    return sums;
}

/* Notes where this group stands among those the role runs in a step, for the running statistics. Groups of
 * replicas with shares of their own follow each other. */
static void note_group(const hp_role_builder *c, const hp_pass *a, hp_task *t) {
    const bool both = c->facts->s->gems == 1 || lower_runs(c->shared, c->role, a->stage, t->layer,
                                                           !a->flip); /* all passes come by here */
    const int micro = c->facts->s->micro, passes = c->facts->s->gems, pass = a->micro / micro;
    const int first_pass = both ? 0 : a->flip, last_pass = both ? passes - 1 : passes - 2 + a->flip;
    const bool opens = a->micro % micro == 0, first = opens && pass == first_pass;
    const bool last = a->micro == last_pass * micro + micro - 1;
    const bool apart = c->facts->s->bn != HP_BN_ALL;
    const int share = apart ? lower_share_of(c->facts, a->stage, a->part) : 0,
              shares = apart ? hp_shares(c->facts->s) : 1;
    const int64_t before = first ? (int64_t)share * passes * micro : 0;
    const int64_t skipped = before + (!opens || both ? 0 : first ? (int64_t)first_pass * micro : micro);
    const int64_t after =
        last ? (int64_t)(passes - 1 - last_pass + (shares - 1 - share) * passes) * micro : 0;
    t->forward.skipped = (int32_t)skipped;
    t->forward.following = (uint32_t)after;
    t->flags = (uint8_t)(t->flags | (first ? HP_FLAG_FIRST : 0) | (last ? HP_FLAG_LAST : 0));
}

/* --- forward --- */

static int32_t save_buffer(hp_role_builder *c, const hp_pass *a, int layer, const hp_shape *s) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const int64_t bytes =
        lower_train(c->facts) ? hp_save_bytes(c->facts->g, layer, s, c->facts->o->dtype) : 0;
    if (!bytes) return -1;
    const int32_t b = lower_buffer(c, HP_BUF_SAVE, HP_U8, bytes, layer, a->micro);
    c->r->buffer[b].box = l->op == HP_BN ? *lower_own(c->facts, a, l->out) : *lower_have(c->facts, a, l->out);
    return b;
}

/* The forward task of a layer between buffers. */
void lower_forward_task(hp_role_builder *c, const hp_pass *a, hp_task t, int32_t y, int32_t save,
                        const int32_t *x, int32_t sums) {
    const hp_layer *l = &c->facts->g->layer[t.layer];
    const hp_params_at at = lower_params_at(c, a, t.layer, false);
    int32_t operand[5 + HP_MAX_IN] = {y, save};
    int32_t in = -1;
    for (int k = 0; k < l->n_in; k++) {
        operand[2 + k] = x[k];
        if (in < 0) in = x[k];
    }
    operand[2 + l->n_in] = sums;
    operand[3 + l->n_in] = at.params;
    operand[4 + l->n_in] = at.pack;
    const int task = lower_task(c, t, operand);
    use_pack(c, task, c->r->pack_forward[t.layer]);
    const hp_box out = hp_task_box(&t, lower_box_of(c, y)),
                 need = hp_layer_need(c->facts->g, t.layer, 0, &out),
                 from = hp_layer_view(c->facts->g, &need, lower_box_of(c, in));
    const hp_shape shape = hp_shape_between(c->facts->g, t.layer, &from, &out);
    note_scratch(c, HP_TASK_FWD, t.layer, &shape);
}

/* Computes the box `out` of the output and puts it into y. */
static void forward_box(hp_role_builder *c, const hp_pass *a, int layer, const hp_box *out, int32_t from,
                        int32_t y, int flags) {
    const hp_layer *l = &c->facts->g->layer[layer];
    if (hp_box_empty(out)) return;
    const hp_box need = hp_layer_need(c->facts->g, layer, 0, out);
    int32_t x = from;
    if (!hp_layer_reads(c->facts->g, layer, &need, lower_box_of(c, from))) {
        x = lower_box(c, HP_BUF_TENSOR, l->in[0], a->micro, &need);
        lower_copy(c, a, l->in[0], x, from);
    }
    const int32_t part = lower_box(c, HP_BUF_TENSOR, l->out, a->micro, out);
    lower_forward_task(c, a, lower_layer_task(a, HP_TASK_FWD, layer, flags), part, -1, &x, -1);
    lower_copy(c, a, l->out, y, part);
}

/* A convolution in pieces: what needs no halo first, while the halo flies, then the borders. */
static bool forward_in_pieces(hp_role_builder *c, const hp_pass *a, int layer, int flags) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const hp_box *have = lower_have(c->facts, a, l->out);
    hp_box piece[5];
    if (c->facts->s->sp.overlap != HP_OVERLAP_INTERIOR || l->op != HP_CONV || hp_layer_adds(l) ||
        a->f->ext[l->in[0]] >= 0)
        return false;
    const int n = hp_interior(c->facts->g, layer, lower_have(c->facts, a, l->in[0]),
                              hp_geometry_need(a->v->geo, a->part, layer, 0), have, piece);
    if (!n) return false;
    const int32_t y = lower_box(c, HP_BUF_TENSOR, l->out, a->micro, have);
    forward_box(c, a, layer, &piece[0], a->f->act[l->in[0]], y, flags);
    const int32_t whole = lower_input(c, a, layer, 0, l->in[0]);
    for (int i = 1; i < n; i++) forward_box(c, a, layer, &piece[i], whole, y, flags);
    a->f->act[l->out] = y;
    return true;
}

/* The buffer that a layer which adds its last input computes into: that input's own where no other task wants
 * it, else a copy. */
static int32_t added_to(hp_role_builder *c, const hp_pass *a, int layer, int32_t *x) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const int k = l->n_in - 1, t = l->in[k];
    const hp_box *have = lower_have(c->facts, a, l->out);
    const bool own = c->facts->last_use[t] == layer && x[k] == a->f->act[t] && t != l->in[0] &&
                     hp_box_equal(lower_box_of(c, x[k]), have) &&
                     c->facts->g->tensor[t].store == c->facts->g->tensor[l->out].store;
    if (own) return x[k];
    const int32_t y = lower_box(c, HP_BUF_TENSOR, l->out, a->micro, have);
    lower_copy(c, a, t, y, x[k]);
    return x[k] = y;
}

static void compute_forward(hp_role_builder *c, const hp_pass *a, int layer, const norm *n, int flags) {
    const hp_layer *l = &c->facts->g->layer[layer];
    hp_frame *f = a->f;
    int32_t x[HP_MAX_IN], any = -1;
    if (forward_in_pieces(c, a, layer, flags)) return;
    for (int k = 0; k < l->n_in; k++) {
        x[k] = lower_input(c, a, layer, k, l->in[k]);
        if (any < 0) any = x[k];
    }
    const hp_box *have = lower_have(c->facts, a, l->out);
    const hp_shape shape =
        hp_shape_between(c->facts->g, layer, lower_box_of(c, any), have); /* training: for bn */
    f->save[layer] = save_buffer(c, a, layer, &shape);
    const int32_t sums = forward_sums(c, a, layer, n, x[0], f->save[layer]);
    const hp_box *room = hp_layer_adds(l) || in_place(c, a, layer) ? NULL : lower_room_for_halo(c, a, l->out);
    const int32_t y = hp_layer_adds(l) ? added_to(c, a, layer, x)
                      : in_place(c, a, layer)
                          ? f->act[l->in[0]]
                          : lower_box(c, HP_BUF_TENSOR, l->out, a->micro, room ? room : have);
    hp_task t = lower_layer_task(a, HP_TASK_FWD, layer, flags);
    if (l->op == HP_BN && lower_train(c->facts)) note_group(c, a, &t);
    if (sums >= 0) t.forward.pixels = n->pixels;
    if (room && hp_box_equal(lower_box_of(c, y), room) && !hp_box_equal(room, have)) {
        t.forward.rows = (hp_rows){have->lo[HP_AXIS_H], have->hi[HP_AXIS_H]};
    }
    lower_forward_task(c, a, t, y, f->save[layer], x, sums);
    f->act[l->out] = y;
}

/* `end`: end of the group of layers that runs. Recomputation exchanges only what the group itself reads. */
static void forward_layer(hp_role_builder *c, const hp_pass *a, int layer, int end, int flags) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const norm n = norm_of(c, a, layer);
    if (!lower_train(c->facts)) flags |= HP_FLAG_EVAL;
    if (hp_box_empty(lower_have(c->facts, a, l->out))) {
        forward_sums(c, a, layer, &n, -1, -1);
    } else {
        compute_forward(c, a, layer, &n, flags);
    }
    if ((flags & HP_FLAG_RECOMPUTE) && a->v->first_use[l->out] >= end) return;
    a->f->ext[l->out] = -1;
    lower_exchange(c, a, l->out);
}

/* Layers that run one after the other; training, unless as recomputation, all of the pass. */
static void run_layers(hp_role_builder *c, const hp_pass *a, int from, int end, int flags) {
    c->zero.run_from = from;
    c->zero.run_to = end;
    for (int layer = from; layer < end; layer++) {
        lower_open(c, layer, false);
        forward_layer(c, a, layer, end, flags);
    }
}

/* --- a forward pass --- */

void lower_forward(hp_role_builder *c, const hp_pass *a) {
    clear_frame(c, a->f, a->v);
    lower_recv_inputs(c, a);
    const int32_t labels = lower_load(c, a);
    int layer = a->v->first ? a->v->first : 1;
    if (a->v->deep > 1) {
        lower_streamed(c, a, a->v->deep);
        layer = a->v->deep;
    }
    run_layers(c, a, layer, a->v->end, 0);
    if (labels >= 0) lower_loss(c, a, labels);
    if (c->facts->g->deployed && a->stage == c->facts->n_vstage - 1) lower_store(c, a);
    if (a->stage < c->facts->n_vstage - 1) lower_send_outputs(c, a);
    lower_give_back(c);
}

/* --- backward --- */

static int gradient_flags(hp_role_builder *c, int layer) {
    bool *touched = &c->params.touched[lower_holder(c, layer)];
    const int flags = *touched ? HP_FLAG_ADD : 0;
    *touched = true;
    return flags;
}

static void backward_weights(hp_role_builder *c, const hp_pass *a, int layer) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const int32_t operand[3] = {a->f->grad[l->out], a->f->in[lower_need_index(a, layer, 0)],
                                lower_grads_at(c, a, layer)};
    c->params.grad_task[layer] =
        lower_task(c, lower_layer_task(a, HP_TASK_BWDW, layer, gradient_flags(c, layer)), operand);
    const hp_shape s = shape_of(c, layer, operand[1], operand[0]);
    note_scratch(c, HP_TASK_BWDW, layer, &s);
}

/* Sums of the gradient over the group; the parameters' gradients are what this part summed. */
static int32_t backward_sums(hp_role_builder *c, const hp_pass *a, int layer, const norm *n, int32_t dy) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const bool here = dy >= 0;
    if (n->group < 0 || n->sums == 0) return -1;
    const int32_t sums = lower_buffer(c, HP_BUF_SUMS, HP_F64, n->sums, layer, a->micro);
    const int32_t operand[7] = {sums,
                                dy,
                                here && hp_layer_backward_reads_y(l) ? a->f->act[l->out] : -1,
                                here ? a->f->save[layer] : -1,
                                here ? a->f->in[lower_need_index(a, layer, 0)] : -1,
                                here ? lower_params_at(c, a, layer, true).params : -1,
                                here ? lower_grads_at(c, a, layer) : -1};
    if (here)
        c->params.grad_task[layer] =
            lower_task(c, lower_layer_task(a, HP_TASK_BSTATS, layer, gradient_flags(c, layer)), operand);
    reduce_sums(c, a, layer, n, sums, !here);
    return sums;
}

typedef struct bwd_operands {
    int32_t id[7 + 2 * HP_MAX_IN];
    bool wanted; /* does any gradient go on? */
    int32_t in;  /* an input's buffer */
} bwd_operands;

/* dy, y, save, x.., dx.., sums; behind them params, gradients, pack */
static bwd_operands bwd_operands_of(hp_role_builder *c, const hp_pass *a, int layer, int32_t dy,
                                    int32_t sums) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const int n = l->n_in, replace = hp_backward_in_place(l);
    bwd_operands o = {.id = {dy, hp_layer_backward_reads_y(l) ? a->f->act[l->out] : -1, a->f->save[layer]},
                      .in = -1};
    o.id[3 + 2 * n] = sums;
    for (int k = 0; k < n; k++) {
        const int32_t in = a->f->in[lower_need_index(a, layer, k)];
        if (o.in < 0) o.in = in;
        o.id[3 + k] = hp_layer_data_reads_x(l, k) ? in : -1;
        const bool wanted = in >= 0 && lower_wants_gradient(c->facts, l->in[k]);
        o.wanted |= wanted;
        o.id[3 + n + k] = !wanted ? -1
                          : k == replace
                              ? dy
                              : lower_box(c, HP_BUF_GRADIENT, l->in[k], a->micro, lower_box_of(c, in));
    }
    return o;
}

static void backward_data(hp_role_builder *c, const hp_pass *a, int layer, int32_t dy) {
    const hp_layer *l = &c->facts->g->layer[layer];
    const norm n = norm_of(c, a, layer);
    const int32_t sums = backward_sums(c, a, layer, &n, dy);
    if (dy < 0) return;
    bwd_operands o = bwd_operands_of(c, a, layer, dy, sums);
    const bool own_params =
        hp_layer_gradients_along(l) && sums < 0; /* the task is needed for its parameters alone */
    if (!o.wanted && !own_params) return;
    const hp_params_at at = lower_params_at(c, a, layer, true);
    int32_t *extra = &o.id[4 + 2 * l->n_in];
    extra[0] = at.params;
    extra[1] = own_params ? lower_grads_at(c, a, layer) : -1;
    extra[2] = at.pack;
    hp_task t = lower_layer_task(a, HP_TASK_BWD, layer, own_params ? gradient_flags(c, layer) : 0);
    if (sums >= 0) t.backward.pixels = n.pixels;
    const int task = lower_task(c, t, o.id);
    if (own_params) c->params.grad_task[layer] = task;
    use_pack(c, task, c->r->pack_backward[layer]);
    const hp_shape s = shape_of(c, layer, o.in, dy);
    note_scratch(c, HP_TASK_BWD, layer, &s);
    for (int k = 0; k < l->n_in; k++)
        if (o.id[3 + l->n_in + k] >= 0) lower_contribute(c, a, layer, k, l->in[k], o.id[3 + l->n_in + k]);
}

/* The weight gradient comes first, so that the input is free early; unless the gradients of what the layer
 * reads go to other parts: then they fly beside it. */
static void backward_layer(hp_role_builder *c, const hp_pass *a, int layer) {
    const hp_layer *l = &c->facts->g->layer[layer];
    if (!lower_wants_gradient(c->facts, l->out)) return;
    lower_collect(c, a, l->out);
    const bool here = !hp_box_empty(lower_have(c->facts, a, l->out));
    const bool weights = here && hp_layer_gradients_apart(l) && !c->defers;
    const bool flies = weights && a->v->exchanges[l->in[0]];
    if (weights && !flies) backward_weights(c, a, layer);
    backward_data(c, a, layer, here ? a->f->grad[l->out] : -1);
    for (int k = 0; k < l->n_in; k++) {
        bool again = false;
        for (int i = 0; i < k; i++) again |= l->in[i] == l->in[k];
        if (a->v->first_use[l->in[k]] == layer && !again) lower_return(c, a, l->in[k]);
    }
    if (flies) backward_weights(c, a, layer);
}

void lower_weights(hp_role_builder *c, const hp_pass *a) {
    for (int layer = a->v->end - 1; layer >= (a->v->first ? a->v->first : 1); layer--) {
        const hp_layer *l = &c->facts->g->layer[layer];
        if (hp_layer_gradients_apart(l) && c->facts->live[l->out] && a->f->grad[l->out] >= 0)
            backward_weights(c, a, layer);
    }
}

static void run_back(hp_role_builder *c, const hp_pass *a, int from, int end) {
    c->zero.run_from = from;
    c->zero.run_to = end;
    for (int layer = end - 1; layer >= from; layer--) {
        lower_open(c, layer, true);
        backward_layer(c, a, layer);
        lower_scatter(c, a, layer);
    }
}

/* First layer of the group that is recomputed together with `layer`. */
static int group_first(const hp_role_builder *c, const hp_vstage *v, int layer) {
    if (c->facts->s->recompute != HP_RECOMPUTE_BOUNDARY) return v->first;
    const int unit = c->facts->g->unit_first[c->facts->g->layer[layer].unit];
    return unit > v->first ? unit : v->first;
}

static bool recomputes(const hp_role_builder *c, int micro) {
    if (c->facts->s->recompute == HP_RECOMPUTE_EXCEPT_LAST) return micro < c->shared->p->micro - 1;
    return c->facts->s->recompute != HP_RECOMPUTE_NONE;
}

void lower_backward(hp_role_builder *c, const hp_pass *a) {
    const hp_vstage *v = a->v;
    if (a->stage < c->facts->n_vstage - 1) {
        lower_recv_gradients(c, a);
    } else {
        lower_return(c, a, c->facts->g->layer[c->facts->g->n_layer - 1].out);
    }
    for (int end = v->end; end > v->first;) {
        const int first = group_first(c, v, end - 1), from = first ? first : 1;
        if (recomputes(c, a->micro)) run_layers(c, a, from, end, HP_FLAG_RECOMPUTE);
        run_back(c, a, from, end);
        end = first;
    }
    if (a->stage > 0) lower_send_gradients(c, a);
    lower_give_back(c);
}
