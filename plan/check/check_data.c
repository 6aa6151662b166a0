/* check_data.c - everything read was written before, with the content that the reader expects; every written
 * part of a gradient or message is read.
 *
 * Walks each role's list once: dependencies point backwards, and check/check_memory.c proves that concurrent
 * tasks are ordered too. Tracks, per buffer, which tensor it holds and which parts of its box are written. */
#include "plan/check/check_inside.h"

enum { GRADIENT_UNKNOWN = -1, ACTIVATION = 0, GRADIENT = 1 };

typedef struct content {
    int32_t tensor;  /* tensor held; -1: none yet */
    int8_t gradient; /* the tensor's gradient? */
    hp_region written;
    hp_region read;      /* gradients and messages: parts read since the last write */
    int32_t writer;      /* gradients and messages: last task to write; -1: none */
    bool reduced;        /* sums: already summed over ranks */
    int32_t ranks, rank; /* sums of class blocks: number of ranks and this one's index; ranks 0: other sums */
} content;

typedef struct walker {
    hp_check_at at; /* the task */
    hp_arena *arena;
    const hp_program *p;
    const hp_graph *g;
    const hp_role *r;
    const hp_task *t;
    content *of;         /* per buffer */
    hp_payload *payload; /* per task */
} walker;

static int32_t operand(const walker *w, int i) {
    return w->r->operand[w->t->operand + i];
}

static const hp_buffer *buffer_of(const walker *w, int32_t id) {
    return &w->r->buffer[id];
}

/* Does a buffer hold gradients? For a message, only its reader or its other end knows. */
static int gradient_of(const hp_buffer *b) {
    return b->kind == HP_BUF_TENSOR ? ACTIVATION : b->kind == HP_BUF_GRADIENT ? GRADIENT : GRADIENT_UNKNOWN;
}

static const char *tensor_name(const walker *w, int tensor) {
    return tensor < 0 ? "nothing" : w->g->layer[w->g->tensor[tensor].producer].name;
}

/* --- reading and writing --- */

/* Does a received message carry what its reader expects? The sender determines whether it is a gradient. */
static bool matches(const content *c, int tensor, int gradient) {
    return c->tensor == tensor &&
           (c->gradient == gradient || c->gradient == GRADIENT_UNKNOWN || gradient == GRADIENT_UNKNOWN);
}

static hp_status too_many(const walker *w, int32_t id) {
    return hp_check_refuse(&w->at, "E-RANGE", "buffer %d is put together of too many parts", id);
}

static hp_status read_box(walker *w, int32_t id, const hp_box *part, int tensor, int gradient) {
    if (id < 0) return HP_OK;
    content *c = &w->of[id];
    if (!hp_region_covers(&c->written, part))
        return hp_check_refuse(&w->at, "E-UNSET", "reads a part of buffer %d (%s) that no task wrote", id,
                               tensor_name(w, buffer_of(w, id)->what));
    if (!matches(c, tensor, gradient))
        return hp_check_refuse(&w->at, "E-BOX", "buffer %d holds the %s of %s, not the %s of %s", id,
                               c->gradient == GRADIENT ? "gradient" : "output", tensor_name(w, c->tensor),
                               gradient == GRADIENT ? "gradient" : "output", tensor_name(w, tensor));
    if (c->writer >= 0 && !hp_region_add(w->arena, &c->read, part, &buffer_of(w, id)->box))
        return too_many(w, id);
    return HP_OK;
}

/* The task reads the whole buffer. */
static hp_status read_all(walker *w, int32_t id, int tensor, int gradient) {
    return id < 0 ? HP_OK : read_box(w, id, &buffer_of(w, id)->box, tensor, gradient);
}

/* Gradients and messages must be read; outputs may have no reader (dead ends, recomputation). */
static void note_write(walker *w, int32_t id) {
    if (buffer_of(w, id)->kind != HP_BUF_TENSOR) w->of[id].writer = w->at.task;
    w->of[id].read = (hp_region){0};
}

/* Requires that everything written has been read. */
static hp_status want_read(const walker *w, int32_t id) {
    const content *c = &w->of[id];
    if (c->writer < 0 || hp_region_within(&c->written, &c->read, &buffer_of(w, id)->box)) return HP_OK;
    hp_check_at writer = w->at;
    writer.task = c->writer;
    return hp_check_refuse(&writer, "E-LOST", "no task uses all of what it leaves in buffer %d", id);
}

/* Writes a part of the buffer. An activation may hold other parts of the same tensor already. */
static hp_status write_part(walker *w, int32_t id, const hp_box *part, int tensor) {
    content *c = &w->of[id];
    const hp_buffer *b = buffer_of(w, id);
    if (b->what != tensor || (c->tensor >= 0 && c->tensor != tensor))
        return hp_check_refuse(&w->at, "E-BOX", "writes rows of %s into buffer %d, which holds %s",
                               tensor_name(w, tensor), id, tensor_name(w, b->what));
    c->tensor = tensor;
    c->gradient = ACTIVATION;
    note_write(w, id);
    return hp_region_add(w->arena, &c->written, part, &b->box) ? HP_OK : too_many(w, id);
}

/* Writes the whole buffer. */
static hp_status write_all(walker *w, int32_t id, int tensor, int gradient) {
    if (id < 0) return HP_OK;
    HP_TRY(want_read(w, id));
    if (buffer_of(w, id)->what != tensor)
        return hp_check_refuse(&w->at, "E-BOX", "writes %s into buffer %d, which is for %s",
                               tensor_name(w, tensor), id, tensor_name(w, buffer_of(w, id)->what));
    w->of[id] =
        (content){.tensor = tensor, .gradient = (int8_t)gradient, .written = {.whole = true}, .writer = -1};
    note_write(w, id);
    return HP_OK;
}

/* Work in place: the buffer now holds another tensor. If only some rows are replaced, the rest becomes
 * undefined. */
static hp_status replace(walker *w, int32_t id, int tensor, const hp_box *part) {
    const bool all = hp_box_equal(part, &buffer_of(w, id)->box);
    w->of[id].tensor = tensor;
    if (!all) w->of[id].written = (hp_region){0};
    note_write(w, id);
    if (all || hp_region_add(w->arena, &w->of[id].written, part, &buffer_of(w, id)->box)) return HP_OK;
    return too_many(w, id);
}

/* Buffers without a box are written as a whole. */
static hp_status read_plain(walker *w, int32_t id) {
    if (id < 0 || w->of[id].written.whole) return HP_OK;
    return hp_check_refuse(&w->at, "E-UNSET", "reads buffer %d, which no task wrote", id);
}

static void write_plain(walker *w, int32_t id) {
    if (id < 0) return;
    w->of[id].written.whole = true;
    w->of[id].reduced = false;
    w->of[id].ranks = 0;
}

/* Batch norm's sums cover more pixels than this rank's only after a reduction over ranks. */
static hp_status read_sums(walker *w, const hp_operands *o) {
    if (o->sums < 0) return HP_OK;
    HP_TRY(read_plain(w, o->sums));
    hp_box own = buffer_of(w, o->save)->box;
    own.lo[HP_AXIS_C] = 0;
    own.hi[HP_AXIS_C] = 1;
    if (w->of[o->sums].reduced || hp_norm_pixels(w->t) <= hp_box_elems(&own)) return HP_OK;
    return hp_check_refuse(&w->at, "E-LOST", "buffer %d holds the sums of this rank alone", o->sums);
}

/* --- blocks of buckets (ZeRO) --- */

/* Do other members hold further parts of the block? */
static bool is_shared(const walker *w, int32_t block) {
    return w->r->bucket[buffer_of(w, block)->what].parts > 1;
}

/* Parameters: this rank's part was copied in and the others' were gathered. */
static hp_status read_params(walker *w, int32_t id) {
    if (id < 0) return HP_OK;
    const content *c = &w->of[id];
    if (c->written.whole && c->gradient == ACTIVATION && (c->reduced || !is_shared(w, id))) return HP_OK;
    return hp_check_refuse(&w->at, "E-UNSET", "reads parameters from block %d, which holds no gathered ones",
                           id);
}

static hp_status write_grads(walker *w, int32_t id) {
    if (id < 0) return HP_OK;
    const content *c = &w->of[id];
    if (c->written.whole && c->gradient == GRADIENT && !c->reduced) return HP_OK;
    return hp_check_refuse(&w->at, "E-UNSET",
                           "writes gradients into block %d, which was not cleared for them", id);
}

static hp_status walk_part(walker *w) {
    const int32_t dst = operand(w, 0), src = operand(w, 1);
    if (dst >= HP_BUF_FIXED) { /* parameters */
        w->of[dst] =
            (content){.tensor = -1, .gradient = ACTIVATION, .written = {.whole = true}, .writer = -1};
        return HP_OK;
    }
    content *c = &w->of[src];
    if (!c->written.whole || c->gradient != GRADIENT || (is_shared(w, src) && !c->reduced))
        return hp_check_refuse(&w->at, "E-UNSET",
                               "takes a part of block %d, which holds no reduced gradients", src);
    c->gradient = GRADIENT_UNKNOWN;
    return HP_OK;
}

static hp_status walk_block_collective(walker *w, int32_t id) {
    content *c = &w->of[id];
    const int wanted = w->t->op == HP_TASK_ALL_GATHER ? ACTIVATION : GRADIENT;
    if (!c->written.whole || c->gradient != wanted || c->reduced)
        return hp_check_refuse(&w->at, "E-UNSET", "block %d holds nothing to be %s", id,
                               wanted == ACTIVATION ? "gathered" : "reduced");
    c->reduced = true;
    return HP_OK;
}

/* --- tasks --- */

static hp_status walk_load(walker *w) {
    const int x = w->g->layer[0].out;
    write_plain(w, operand(w, 1));
    if (operand(w, 0) < 0) return HP_OK;
    const hp_box *box = &buffer_of(w, operand(w, 0))->box, rows = hp_task_box(w->t, box);
    return hp_box_equal(box, &rows) ? write_all(w, operand(w, 0), x, ACTIVATION)
                                    : write_part(w, operand(w, 0), &rows, x);
}

static hp_status walk_pack(walker *w) {
    if (w->t->n_operand > 2) HP_TRY(read_params(w, operand(w, 2)));
    write_plain(w, operand(w, 0));
    write_plain(w, operand(w, 1));
    return HP_OK;
}

static hp_status walk_stats(walker *w) {
    const hp_operands o = hp_operands_of(w->g, w->r, w->t);
    HP_TRY(read_all(w, o.x[0], w->g->layer[w->t->layer].in[0], ACTIVATION));
    write_plain(w, o.sums);
    return HP_OK;
}

/* The layer reads the parts of its inputs that it needs for the box `out` of its output. */
static hp_status read_inputs(walker *w, const hp_operands *o, const hp_box *out) {
    for (int k = 0; k < o->n_in; k++) {
        const hp_box need = hp_layer_need(w->g, w->t->layer, k, out);
        HP_TRY(read_box(w, o->x[k], &need, w->g->layer[w->t->layer].in[k], ACTIVATION));
    }
    return HP_OK;
}

/* Packed weights: the task's, or otherwise the role's. */
static int32_t pack_of(const walker *w, int32_t own, const int32_t *role) {
    return own >= 0 ? own : role[w->t->layer];
}

static hp_status walk_fwd(walker *w) {
    const hp_layer *l = &w->g->layer[w->t->layer];
    const hp_operands o = hp_operands_of(w->g, w->r, w->t);
    const hp_box *box = &buffer_of(w, o.y)->box, rows = hp_task_box(w->t, box);
    const bool over = o.y == o.x[0] || (hp_layer_adds(l) && o.y == o.x[l->n_in - 1]);
    HP_TRY(read_inputs(w, &o, &rows));
    HP_TRY(read_sums(w, &o));
    HP_TRY(read_params(w, o.params));
    if (!w->g->deployed) HP_TRY(read_plain(w, pack_of(w, o.pack_forward, w->r->pack_forward)));
    write_plain(w, o.save);
    if (over) return replace(w, o.y, l->out, &rows);
    return hp_box_equal(box, &rows) ? write_all(w, o.y, l->out, ACTIVATION)
                                    : write_part(w, o.y, &rows, l->out);
}

static hp_status walk_store(walker *w) {
    const hp_box rows = hp_task_box(w->t, &buffer_of(w, operand(w, 0))->box);
    return read_box(w, operand(w, 0), &rows, w->g->layer[w->g->n_layer - 1].out, ACTIVATION);
}

static hp_status walk_loss(walker *w) {
    const int logits = w->g->layer[w->g->n_layer - 1].out;
    HP_TRY(read_all(w, operand(w, 1), logits, ACTIVATION));
    HP_TRY(read_plain(w, operand(w, 2)));
    if (w->t->n_operand > 3) {
        HP_TRY(read_plain(w, operand(w, 3)));
        if (!w->of[operand(w, 3)].ranks || !w->of[operand(w, 3)].reduced)
            return hp_check_refuse(&w->at, "E-LOST", "buffer %d does not hold the sums of all classes",
                                   operand(w, 3));
    }
    return write_all(w, operand(w, 0), logits, GRADIENT);
}

/* The task fills the block of one rank's classes; the blocks of all ranks together cover all classes. */
static hp_status walk_maxsum(walker *w) {
    const int logits = w->g->layer[w->g->n_layer - 1].out;
    const hp_box *x = &buffer_of(w, operand(w, 1))->box;
    const int64_t all = buffer_of(w, operand(w, 0))->bytes / hp_dtype_bytes(HP_F64), /* check/check_boxes.c */
        block = hp_box_elems(x) / hp_box_len(x, HP_AXIS_C) * HP_MAXSUMS;
    const int ranks = (int)(all / block), rank = (int)(w->t->maxsum.first / block),
              c = w->g->tensor[logits].c;
    HP_TRY(read_all(w, operand(w, 1), logits, ACTIVATION));
    HP_TRY(read_plain(w, operand(w, 2)));
    if (x->lo[HP_AXIS_C] != hp_split_at(c, ranks, rank) ||
        x->hi[HP_AXIS_C] != hp_split_at(c, ranks, rank + 1))
        return hp_check_refuse(&w->at, "E-BOX", "the classes %d..%d are not those of rank %d of %d",
                               x->lo[HP_AXIS_C], x->hi[HP_AXIS_C] - 1, rank, ranks);
    write_plain(w, operand(w, 0));
    w->of[operand(w, 0)].ranks = ranks;
    w->of[operand(w, 0)].rank = rank;
    return HP_OK;
}

/* Reads shared by both backward tasks of a layer. */
static hp_status read_backward(walker *w, const hp_operands *o) {
    const hp_layer *l = &w->g->layer[w->t->layer];
    HP_TRY(read_params(w, o->params));
    HP_TRY(write_grads(w, o->grads));
    HP_TRY(read_all(w, o->dy, l->out, GRADIENT));
    HP_TRY(read_all(w, o->y, l->out, ACTIVATION));
    HP_TRY(read_inputs(w, o, &buffer_of(w, o->dy)->box));
    return read_plain(w, o->save);
}

static hp_status walk_bwd(walker *w) {
    const hp_layer *l = &w->g->layer[w->t->layer];
    const hp_operands o = hp_operands_of(w->g, w->r, w->t);
    HP_TRY(read_backward(w, &o));
    HP_TRY(read_sums(w, &o));
    HP_TRY(read_plain(w, pack_of(w, o.pack_backward, w->r->pack_backward)));
    for (int k = 0; k < l->n_in; k++) {
        if (o.dx[k] < 0 || o.dx[k] != o.dy) {
            HP_TRY(write_all(w, o.dx[k], l->in[k], GRADIENT));
            continue;
        }
        HP_TRY(replace(w, o.dy, l->in[k], &buffer_of(w, o.dy)->box));
    }
    return HP_OK;
}

static hp_status walk_bwdw(walker *w) {
    const hp_operands o = hp_operands_of(w->g, w->r, w->t);
    return read_backward(w, &o);
}

static hp_status walk_bstats(walker *w) {
    const hp_operands o = hp_operands_of(w->g, w->r, w->t);
    HP_TRY(read_backward(w, &o));
    write_plain(w, o.sums);
    return HP_OK;
}

static hp_status walk_accum(walker *w) {
    const content *c = &w->of[operand(w, 1)];
    HP_TRY(read_all(w, operand(w, 1), c->tensor, c->gradient));
    HP_TRY(read_all(w, operand(w, 0), c->tensor, c->gradient));
    note_write(w, operand(w, 0));
    return HP_OK;
}

/* Copies the intersection of the boxes; the destination may already hold other parts of the tensor. */
static hp_status walk_copy(walker *w) {
    const int32_t dst = operand(w, 0), src = operand(w, 1);
    const hp_box *whole = &buffer_of(w, dst)->box, from_rows = hp_task_box(w->t, &buffer_of(w, src)->box),
                 meet = hp_box_and(whole, &from_rows);
    const content *from = &w->of[src];
    content *to = &w->of[dst];
    HP_TRY(read_box(w, src, &meet, from->tensor, from->gradient));
    if (w->t->flags & HP_FLAG_ADD) HP_TRY(read_box(w, dst, &meet, from->tensor, from->gradient));
    if (to->tensor < 0) {
        const int kind = gradient_of(buffer_of(w, dst));
        /* a deployed layer adds to a copy of another tensor */
        to->tensor = w->g->deployed ? from->tensor : buffer_of(w, dst)->what;
        to->gradient = (int8_t)(kind == GRADIENT_UNKNOWN ? from->gradient : kind);
    }
    if (!matches(to, from->tensor, from->gradient))
        return hp_check_refuse(&w->at, "E-BOX", "copies %s into buffer %d, which is for %s",
                               tensor_name(w, from->tensor), dst, tensor_name(w, to->tensor));
    note_write(w, dst);
    return hp_region_add(w->arena, &to->written, &meet, whole) ? HP_OK : too_many(w, dst);
}

/* check/check_gradients.c handles codes of gradients. */
static hp_status walk_encode(walker *w) {
    const int32_t code = operand(w, 0), src = operand(w, 1);
    const content from = w->of[src];
    if (!hp_buffer_has_box(buffer_of(w, code))) return HP_OK;
    HP_TRY(read_all(w, src, from.tensor, from.gradient));
    return write_all(w, code, from.tensor, from.gradient);
}

static hp_status walk_decode(walker *w) {
    const int32_t dst = operand(w, 0), code = operand(w, 1);
    const content from = w->of[code];
    const int kind = gradient_of(buffer_of(w, dst));
    if (!hp_buffer_has_box(buffer_of(w, code))) return HP_OK;
    HP_TRY(read_all(w, code, from.tensor, kind));
    return write_all(w, dst, from.tensor, kind == GRADIENT_UNKNOWN ? from.gradient : kind);
}

static hp_status walk_zero(walker *w) {
    const int32_t id = operand(w, 0);
    const hp_buffer *b = buffer_of(w, id);
    if (id == HP_BUF_GRADS) return HP_OK;
    if (w->t->zero.elems * hp_dtype_bytes((hp_dtype)b->dtype) != b->bytes)
        return hp_check_refuse(&w->at, "E-COUNT", "clears a part of buffer %d", id);
    if (hp_buffer_has_box(b)) return write_all(w, id, b->what, gradient_of(b));
    write_plain(w, id);
    if (b->kind == HP_BUF_BLOCK) w->of[id].gradient = GRADIENT;
    return HP_OK;
}

static hp_status walk_nothing(walker *w) {
    (void)w;
    return HP_OK;
}

static hp_status walk_send(walker *w) {
    const int32_t id = operand(w, 0);
    const content *c = &w->of[id];
    w->payload[w->at.task] = (hp_payload){-1, GRADIENT_UNKNOWN};
    if (!hp_buffer_has_box(buffer_of(w, id))) return HP_OK;
    w->payload[w->at.task] = (hp_payload){c->tensor, c->gradient};
    return read_all(w, id, c->tensor, c->gradient);
}

static hp_status walk_recv(walker *w) {
    const int32_t id = operand(w, 0);
    const hp_buffer *b = buffer_of(w, id);
    if (!hp_buffer_has_box(b)) {
        write_plain(w, id);
        return HP_OK;
    }
    return write_all(w, id, b->what, gradient_of(b));
}

/* Handles sums of a box or of batch norm. check/check_gradients.c handles the arrays that every role has;
 * data without a tensor is not tracked. */
static hp_status walk_collective(walker *w) {
    const int32_t id = operand(w, 0);
    const content *c = &w->of[id];
    if (id < HP_BUF_FIXED) return HP_OK;
    if (hp_buffer_has_box(buffer_of(w, id))) {
        HP_TRY(read_all(w, id, c->tensor, c->gradient));
        note_write(w, id);
        return HP_OK;
    }
    if (buffer_of(w, id)->kind == HP_BUF_BLOCK) return walk_block_collective(w, id);
    if (buffer_of(w, id)->kind != HP_BUF_SUMS) return HP_OK;
    if (c->reduced) return hp_check_refuse(&w->at, "E-LOST", "adds up buffer %d twice", id);
    const int group = w->r->queue[w->t->queue].peer;
    if (c->ranks &&
        (hp_group_size(w->p, group) != c->ranks || hp_group_member(w->p, group, w->at.role, 0) != c->rank))
        return hp_check_refuse(&w->at, "E-GROUP",
                               "adds up classes of %d ranks, of which this is number %d, in group %d",
                               c->ranks, c->rank, group);
    w->of[id].reduced = true;
    return read_plain(w, id);
}

typedef hp_status walk_fn(walker *w);
static walk_fn *const walks[HP_TASK_OPS] = {
    [HP_TASK_LOAD] = walk_load,      [HP_TASK_PACK] = walk_pack,       [HP_TASK_STATS] = walk_stats,
    [HP_TASK_FWD] = walk_fwd,        [HP_TASK_LOSS] = walk_loss,       [HP_TASK_MAXSUM] = walk_maxsum,
    [HP_TASK_BSTATS] = walk_bstats,  [HP_TASK_BWD] = walk_bwd,         [HP_TASK_BWDW] = walk_bwdw,
    [HP_TASK_ACCUM] = walk_accum,    [HP_TASK_COPY] = walk_copy,       [HP_TASK_ZERO] = walk_zero,
    [HP_TASK_UPDATE] = walk_nothing, [HP_TASK_STORE] = walk_store,     [HP_TASK_SEND] = walk_send,
    [HP_TASK_RECV] = walk_recv,      [HP_TASK_FINITE] = walk_nothing,  [HP_TASK_ENCODE] = walk_encode,
    [HP_TASK_DECODE] = walk_decode,  [HP_TASK_PROJECT] = walk_nothing, [HP_TASK_FACTOR] = walk_nothing,
    [HP_TASK_EXPAND] = walk_nothing, [HP_TASK_PART] = walk_part,       [HP_TASK_DUMMY] = walk_nothing,
    [HP_TASK_NORM] = walk_nothing,
#define COLLECTIVE(ID, ...) [HP_TASK_##ID] = walk_collective,
#include "plan/collectives/collectives.def"
};

static hp_status walk_role(walker *w) {
    w->of = HP_NEW(w->arena, content, w->r->n_buffer);
    for (int b = 0; b < w->r->n_buffer; b++)
        w->of[b] = (content){.tensor = -1, .gradient = GRADIENT_UNKNOWN, .writer = -1};
    for (w->at.task = 0; w->at.task < w->r->n_task; w->at.task++) {
        w->t = &w->r->task[w->at.task];
        HP_TRY(walks[w->t->op](w));
    }
    for (int b = 0; b < w->r->n_buffer; b++) HP_TRY(want_read(w, b));
    return HP_OK;
}

hp_status hp_check_data(hp_arena *arena, const hp_program *p, const hp_graph *g, hp_payload ***payload,
                        hp_error *err) {
    hp_payload **all = HP_NEW(arena, hp_payload *, p->n_role);
    hp_status s = HP_OK;
    for (int role = 0; role < p->n_role && s == HP_OK; role++) {
        all[role] = HP_NEW(arena, hp_payload, p->role[role].n_task);
        walker w = {.at = {p, g, role, 0, err},
                    .arena = hp_arena_new(),
                    .p = p,
                    .g = g,
                    .r = &p->role[role],
                    .payload = all[role]};
        s = walk_role(&w);
        hp_arena_free(w.arena);
    }
    *payload = all;
    return s;
}
