/* check_boxes.c - the boxes of every task fit each other, the layer and the local parameters.
 *
 * Kernels derive all sizes and addresses from boxes (check/check_buffers.c compares these with the bytes), so
 * kernels touch nothing outside what is proved here. */
#include "plan/memory/memory_device.h"
#include "plan/check/check_inside.h"

typedef struct checker {
    hp_check_at at; /* the task; -1: the role's packs */
    const hp_program *p;
    const hp_graph *g;
    const hp_role *r;
    const hp_task *t;
    const hp_layer *l; /* the task's layer; NULL if it has none */
    hp_operands o;     /* operands of a layer's task */
} checker;

#define REFUSED(...) hp_check_refuse(&c->at, "E-BOX", __VA_ARGS__)

/* --- parameters and packed weights --- */

/* A role that keeps only parts must have a block, of the bucket that holds the parameter; other roles must
 * have none. */
static hp_status want_block_of(const checker *c, int32_t id, int fixed, bool wanted, const hp_param *param,
                               const hp_param_place *at) {
    const bool present = wanted && hp_keeps_parts(c->p, fixed);
    if (present != (id >= 0))
        return REFUSED("a block of %s is %s", param->name, present ? "missing" : "not what the task wants");
    if (!present) return HP_OK;
    const hp_buffer *b = &c->r->buffer[id];
    const hp_bucket *k = b->kind == HP_BUF_BLOCK ? &c->r->bucket[b->what] : NULL;
    if (!k || at->offset < k->first || at->offset + at->count > k->first + k->count)
        return REFUSED("buffer %d has no room for %s", id, param->name);
    return HP_OK;
}

static bool trained_params(const checker *c) {
    for (int i = 0; i < c->l->n_param; i++)
        if (hp_param_trained(&c->g->param[c->l->param[i]])) return true;
    return false;
}

static hp_status want_block(const checker *c, const hp_param *param, const hp_param_place *at) {
    const bool reads = c->t->op != HP_TASK_BWDW && c->t->op != HP_TASK_STATS;
    HP_TRY(want_block_of(c, c->o.params, HP_BUF_WEIGHTS, reads, param, at));
    if (!hp_task_gradient(c->g, c->r, c->t)) return HP_OK;
    if (c->r->buffer[HP_BUF_GRADS].bytes == 0)
        return REFUSED("there is no room for the gradient of %s", param->name);
    return want_block_of(c, c->o.grads, HP_BUF_GRADS, true, param, at);
}

/* The layer's parameters for the channels of `out` must be local and have room for their gradients. */
static hp_status want_params(const checker *c, const hp_box *out) {
    if (c->g->deployed) return HP_OK; /* constants are in the pack */
    if (c->o.sums >= 0 && c->l->op != HP_BN) return REFUSED("sums are batch norm's");
    if ((c->o.grads >= 0 && !hp_task_gradient(c->g, c->r, c->t)) || (c->o.params >= 0 && !trained_params(c)))
        return REFUSED("a block of parameters that the task does not work on");
    for (int i = 0; i < c->l->n_param; i++) {
        const hp_param *param = &c->g->param[c->l->param[i]];
        const hp_param_place *at = &c->r->place[c->l->param[i]];
        const hp_elements e = hp_param_elements(c->g, c->l, i, out->lo[HP_AXIS_C], out->hi[HP_AXIS_C]);
        if (!at->here || e.first < at->first || e.first + e.count > at->first + at->count)
            return REFUSED("parameter %s is not here for channels %d..%d", param->name, out->lo[HP_AXIS_C],
                           out->hi[HP_AXIS_C] - 1);
        if (hp_param_trained(param)) HP_TRY(want_block(c, param, at));
    }
    return HP_OK;
}

/* Is it a buffer for the layer's weights in the device's layout, packed from a block? */
static bool is_pack_of(const checker *c, int32_t id, bool backward) {
    const hp_buffer *b = &c->r->buffer[id];
    return hp_keeps_parts(c->p, HP_BUF_WEIGHTS) && b->kind == HP_BUF_PACK && b->what == c->t->layer &&
           b->bytes >= hp_pack_wanted(&c->at, c->t->layer, backward);
}

/* If the device packs a layer's weights, the task needs a pack of exactly its channels. */
static hp_status want_pack(const checker *c, const hp_box *out) {
    if (c->l->n_param == 0 || (c->t->op != HP_TASK_FWD && c->t->op != HP_TASK_BWD)) return HP_OK;
    const bool backward = c->t->op == HP_TASK_BWD;
    const int32_t own = backward ? c->o.pack_backward : c->o.pack_forward,
                  pack = own >= 0 ? own : (backward ? c->r->pack_backward : c->r->pack_forward)[c->t->layer];
    if (own >= 0 && !is_pack_of(c, own, backward))
        return REFUSED("buffer %d holds no packed weights of it", own);
    const bool wanted = hp_pack_wanted(&c->at, c->t->layer, backward) > 0;
    if (wanted != (pack >= 0))
        return REFUSED("packed weights are %s", wanted ? "missing" : "not what this layer reads");
    hp_box rows = *out;
    if (wanted) hp_pack_rows(&c->at, c->l, &rows);
    if (rows.lo[HP_AXIS_C] != out->lo[HP_AXIS_C] || rows.hi[HP_AXIS_C] != out->hi[HP_AXIS_C])
        return REFUSED("packed weights are of other channels");
    return HP_OK;
}

/* --- operands --- */

static const hp_buffer *buffer_of(const checker *c, int32_t id) {
    return &c->r->buffer[id];
}

static bool same_shape(const checker *c, int a, int b) {
    const hp_tensor *x = &c->g->tensor[a], *y = &c->g->tensor[b];
    return x->h == y->h && x->w == y->w && x->c == y->c;
}

/* Operand `id` must hold a part of a tensor of that shape. Work in place may have changed the tensor's id. */
static hp_status want_tensor(const checker *c, int32_t id, int tensor, const char *as, const hp_box **box) {
    const hp_buffer *b = buffer_of(c, id);
    if (!hp_buffer_has_box(b) || !same_shape(c, b->what, tensor))
        return REFUSED("buffer %d holds no tensor of the shape of %s", id, as);
    if (b->dtype != hp_tensor_dtype(&c->g->tensor[tensor], (hp_dtype)c->p->dtype))
        return REFUSED("buffer %d stores %s in another way", id, as);
    *box = &b->box;
    return HP_OK;
}

static hp_status want_part(const checker *c, int32_t id, int tensor, const char *as, const hp_box **box) {
    HP_TRY(want_tensor(c, id, tensor, as, box));
    return hp_box_empty(*box) ? REFUSED("%s is empty", as) : HP_OK;
}

/* Operand `id`, if present, must have the box `same`. */
static hp_status want_equal(const checker *c, int32_t id, int tensor, const char *as, const hp_box *same) {
    const hp_box *box = NULL;
    if (id < 0) return HP_OK;
    HP_TRY(want_tensor(c, id, tensor, as, &box));
    return hp_box_equal(box, same) ? HP_OK : REFUSED("the box of %s is not that of the output", as);
}

/* An input or its gradient must be what the layer reads for the output's box. */
static hp_status want_input(const checker *c, int32_t id, int k, const hp_box *out) {
    const hp_box need = hp_layer_need(c->g, c->t->layer, k, out), *have = NULL;
    if (id < 0) return HP_OK;
    if (hp_layer_adds(c->l) && k == c->l->n_in - 1 && id != c->o.y)
        return REFUSED("the layer adds to another buffer than it writes");
    HP_TRY(want_tensor(c, id, c->l->in[k], "an input", &have));
    if (!hp_layer_reads(c->g, c->t->layer, &need, have))
        return REFUSED("the box of input %d is not what the output's box needs", k);
    return HP_OK;
}

/* Checks the saved values: bn's mean and inverse deviation, max-pool's argmax. */
static hp_status want_save(const checker *c, const hp_box *in, const hp_box *out, bool needed) {
    const hp_shape s = hp_shape_between(c->g, c->t->layer, in, out);
    const int64_t bytes = hp_save_bytes(c->g, c->t->layer, &s, (hp_dtype)c->p->dtype);
    if (c->o.save < 0) return bytes && needed ? REFUSED("what the layer saved is missing") : HP_OK;
    const hp_buffer *b = buffer_of(c, c->o.save);
    if (!bytes || b->kind != HP_BUF_SAVE || b->what != c->t->layer || b->bytes < bytes)
        return REFUSED("buffer %d is not what the layer saves", c->o.save);
    const bool outside = c->l->op == HP_BN ? !hp_box_within(&b->box, out)
                                           : !hp_box_empty(&b->box) && !hp_box_equal(&b->box, out);
    return outside ? REFUSED("the box of what is saved does not fit the output's") : HP_OK;
}

/* Number of pixels in a batch norm's statistics: the micro-batch (on all replicas, if synchronised) or this
 * rank's share. */
static int64_t summed_pixels(const checker *c) {
    const hp_tensor *y = &c->g->tensor[c->l->out];
    const hp_box *own = &buffer_of(c, c->o.save)->box;
    if (c->p->bn == (int)HP_BN_LOCAL)
        return (int64_t)hp_box_len(own, HP_AXIS_N) * hp_box_len(own, HP_AXIS_H) * hp_box_len(own, HP_AXIS_W);
    return hp_norm_samples(c->p, c->at.role) * y->h * y->w;
}

/* Requires two float64 sums per channel. */
static hp_status want_sums(const checker *c, const hp_box *out, bool needed) {
    if (c->o.sums < 0) return needed ? REFUSED("sums are missing") : HP_OK;
    const hp_buffer *b = buffer_of(c, c->o.sums);
    if (b->kind != HP_BUF_SUMS || b->bytes != 16 * (int64_t)hp_box_len(out, HP_AXIS_C))
        return REFUSED("buffer %d does not hold two sums per channel", c->o.sums);
    if (c->o.save < 0) return REFUSED("sums without the box they count");
    const bool divides = c->t->op == HP_TASK_FWD || c->t->op == HP_TASK_BWD;
    if (divides && hp_norm_pixels(c->t) != summed_pixels(c))
        return REFUSED("sums over %lld pixels, there are %lld", (long long)hp_norm_pixels(c->t),
                       (long long)summed_pixels(c));
    return HP_OK;
}

static hp_status want_scratch(const checker *c, const hp_box *in, const hp_box *out) {
    const hp_shape s = hp_shape_between(c->g, c->t->layer, in, out);
    const hp_device_memory *memory = hp_device_memory_of(c->p->device);
    const hp_dtype real = (hp_dtype)c->p->dtype;
    const int64_t bytes = c->g->deployed ? memory->infer_scratch(c->g, c->t->layer, &s, real)
                                         : memory->scratch(c->g, c->t->layer, (hp_task_op)c->t->op, &s, real);
    if (bytes <= buffer_of(c, HP_BUF_SCRATCH)->bytes) return HP_OK;
    return REFUSED("needs %lld bytes of scratch, %lld are planned", (long long)bytes,
                   (long long)buffer_of(c, HP_BUF_SCRATCH)->bytes);
}

/* The box of the first input; what the output needs of it if neither the input nor its gradient is an
 * operand. */
static hp_box first_input(const checker *c, const hp_box *out) {
    const int32_t id = c->o.dx[0] >= 0 ? c->o.dx[0] : c->o.x[0];
    const hp_box need = hp_layer_need(c->g, c->t->layer, 0, out);
    return id >= 0 ? hp_layer_view(c->g, &need, &buffer_of(c, id)->box) : need;
}

/* --- tasks of layers --- */

/* May operands i and j share a buffer although one of them is written? */
static bool in_place(const checker *c, int i, int j) {
    int at, of;
    if (!c->l) return false;
    const hp_operand_info *to = hp_operand_at(c->g, c->t, i, &at), *from = hp_operand_at(c->g, c->t, j, &of);
    if (c->t->op == HP_TASK_FWD)
        return to->kind == HP_OPERAND_Y && from->kind == HP_OPERAND_X && of == hp_forward_in_place(c->l);
    return c->t->op == HP_TASK_BWD && to->kind == HP_OPERAND_DY && from->kind == HP_OPERAND_DX &&
           of == hp_backward_in_place(c->l);
}

static hp_status check_aliases(const checker *c) {
    const int32_t *id = c->r->operand + c->t->operand;
    char a[24], b[24];
    for (int i = 0; i < c->t->n_operand; i++)
        for (int j = i + 1; j < c->t->n_operand; j++) {
            const bool reads =
                hp_operand_access(c->g, c->t, i) == 'r' && hp_operand_access(c->g, c->t, j) == 'r';
            if (id[i] >= 0 && id[i] == id[j] && !reads && !in_place(c, i, j))
                return REFUSED("%s and %s are the same buffer", hp_operand_label(c->g, c->t, i, a, sizeof a),
                               hp_operand_label(c->g, c->t, j, b, sizeof b));
        }
    return HP_OK;
}

static hp_status want_layer(const checker *c, const hp_box *out) {
    const hp_box in = first_input(c, out);
    HP_TRY(want_params(c, out));
    HP_TRY(want_pack(c, out));
    return want_scratch(c, &in, out);
}

static hp_status check_fwd(const checker *c) {
    const hp_box *y = NULL;
    const bool eval = c->t->flags & HP_FLAG_EVAL;
    HP_TRY(want_part(c, c->o.y, c->l->out, "the output", &y));
    const hp_box rows = hp_task_box(c->t, y); /* within: check/check_deployed.c */
    y = &rows;
    for (int k = 0; k < c->l->n_in; k++) {
        const hp_box need = hp_layer_need(c->g, c->t->layer, k, y);
        if (c->o.x[k] < 0 && !hp_box_empty(&need)) return REFUSED("input %d is missing", k);
        HP_TRY(want_input(c, c->o.x[k], k, y));
    }
    if (eval && c->o.sums >= 0) return REFUSED("sums where running statistics are used");
    const hp_box in = first_input(c, y);
    HP_TRY(want_save(c, &in, y, false));
    HP_TRY(want_sums(c, y, false));
    return want_layer(c, y);
}

static hp_status check_bwd(const checker *c) {
    const hp_box *dy = NULL;
    HP_TRY(want_part(c, c->o.dy, c->l->out, "the output's gradient", &dy));
    if (c->o.y < 0 && hp_layer_backward_reads_y(c->l)) return REFUSED("the output is missing");
    HP_TRY(want_equal(c, c->o.y, c->l->out, "the output", dy));
    for (int k = 0; k < c->l->n_in; k++) {
        if (hp_layer_data_reads_x(c->l, k) && c->o.x[k] < 0) return REFUSED("input %d is missing", k);
        HP_TRY(want_input(c, c->o.x[k], k, dy));
        HP_TRY(want_input(c, c->o.dx[k], k, dy));
    }
    const hp_box in = first_input(c, dy);
    HP_TRY(want_save(c, &in, dy, true));
    HP_TRY(want_sums(c, dy, false));
    return want_layer(c, dy);
}

static hp_status check_bwdw(const checker *c) {
    const hp_box *dy = NULL;
    if (!hp_layer_gradients_apart(c->l)) return REFUSED("the layer has no weights");
    HP_TRY(want_part(c, c->o.dy, c->l->out, "the output's gradient", &dy));
    HP_TRY(want_input(c, c->o.x[0], 0, dy));
    return want_layer(c, dy);
}

static hp_status check_stats(const checker *c) {
    const hp_box *x = NULL;
    if (c->l->op != HP_BN) return REFUSED("the layer is no batch norm");
    HP_TRY(want_part(c, c->o.x[0], c->l->in[0], "the input", &x));
    HP_TRY(want_save(c, x, x, true));
    HP_TRY(want_sums(c, x, true));
    return want_layer(c, x);
}

static hp_status check_bstats(const checker *c) {
    const hp_box *dy = NULL;
    if (c->l->op != HP_BN) return REFUSED("the layer is no batch norm");
    HP_TRY(want_part(c, c->o.dy, c->l->out, "the output's gradient", &dy));
    if (c->o.y < 0 && hp_layer_backward_reads_y(c->l)) return REFUSED("the output is missing");
    HP_TRY(want_equal(c, c->o.y, c->l->out, "the output", dy));
    HP_TRY(want_equal(c, c->o.x[0], c->l->in[0], "the input", dy));
    HP_TRY(want_save(c, dy, dy, true));
    HP_TRY(want_sums(c, dy, true));
    return want_layer(c, dy);
}

/* --- other tasks --- */

static int32_t operand(const checker *c, int i) {
    return c->r->operand[c->t->operand + i];
}

static hp_status check_load(const checker *c) {
    const hp_box *x = NULL;
    const int32_t labels = operand(c, 1);
    if (operand(c, 0) >= 0) HP_TRY(want_part(c, operand(c, 0), c->g->layer[0].out, "the image", &x));
    if (x && buffer_of(c, operand(c, 0))->what != c->g->layer[0].out) return REFUSED("x is not the image");
    if (labels >= 0 && buffer_of(c, labels)->kind != HP_BUF_LABELS)
        return REFUSED("buffer %d is not for labels", labels);
    return HP_OK;
}

static hp_status check_pack(const checker *c) {
    const int32_t pack[2] = {c->r->pack_forward[c->t->layer], c->r->pack_backward[c->t->layer]};
    const hp_layer *l = &c->g->layer[c->t->layer];
    const bool out_of_block = c->t->n_operand > 2;
    for (int k = 0; k < 2; k++)
        if (operand(c, k) >= 0 &&
            !(out_of_block ? is_pack_of(c, operand(c, k), k > 0) : operand(c, k) == pack[k]))
            return REFUSED("buffer %d is not for this layer's packed weights", operand(c, k));
    for (int i = 0; i < l->n_param; i++)
        if (hp_param_trained(&c->g->param[l->param[i]]))
            HP_TRY(want_block_of(c, out_of_block ? operand(c, 2) : -1, HP_BUF_WEIGHTS, true,
                                 &c->g->param[l->param[i]], &c->r->place[l->param[i]]));
    return HP_OK;
}

static hp_status check_store(const checker *c) {
    const hp_box *x = NULL;
    return want_part(c, operand(c, 0), c->g->layer[c->g->n_layer - 1].out, "the output", &x);
}

static int64_t rows_of(const hp_box *logits) {
    return hp_box_elems(logits) / hp_box_len(logits, HP_AXIS_C);
}

static hp_status want_labels(const checker *c, int32_t labels, const hp_box *logits) {
    if (buffer_of(c, labels)->kind != HP_BUF_LABELS) return REFUSED("buffer %d is not for labels", labels);
    const hp_box *l = &buffer_of(c, labels)->box;
    for (int a = HP_AXIS_N; a <= HP_AXIS_W; a++)
        if (l->lo[a] != logits->lo[a] || l->hi[a] != logits->hi[a])
            return REFUSED("the labels are not those of the logits' pixels");
    return HP_OK;
}

/* Requires whole blocks of HP_MAXSUMS for each row of logits. */
static hp_status want_class_sums(const checker *c, const hp_box *logits, int32_t sums) {
    const hp_buffer *b = buffer_of(c, sums);
    if (hp_box_empty(logits)) return REFUSED("there are no logits");
    const int64_t block = rows_of(logits) * HP_MAXSUMS * hp_dtype_bytes(HP_F64);
    if (b->kind == HP_BUF_SUMS && b->bytes > 0 && b->bytes % block == 0) return HP_OK;
    return REFUSED("buffer %d does not hold %d sums per row of logits", sums, HP_MAXSUMS);
}

static hp_status check_loss(const checker *c) {
    const int logits = c->g->layer[c->g->n_layer - 1].out;
    const int32_t labels = operand(c, 2);
    const hp_box *x = NULL;
    if (hp_device_memory_of(c->p->device)->loss() > buffer_of(c, HP_BUF_SCRATCH)->bytes)
        return REFUSED("too little scratch is planned");
    HP_TRY(want_part(c, operand(c, 1), logits, "the logits", &x));
    if (c->t->n_operand > 3)
        HP_TRY(want_class_sums(c, x, operand(c, 3)));
    else if (hp_box_len(x, HP_AXIS_C) != c->g->tensor[logits].c)
        return REFUSED("logits of some classes only");
    HP_TRY(want_equal(c, operand(c, 0), logits, "the gradient", x));
    return want_labels(c, labels, x);
}

/* The ranks that split the classes of a row combine whole blocks; this task fills one of them. */
static hp_status check_maxsum(const checker *c) {
    const hp_box *x = NULL;
    HP_TRY(want_part(c, operand(c, 1), c->g->layer[c->g->n_layer - 1].out, "the logits", &x));
    HP_TRY(want_class_sums(c, x, operand(c, 0)));
    const int64_t block = rows_of(x) * HP_MAXSUMS,
                  all = buffer_of(c, operand(c, 0))->bytes / hp_dtype_bytes(HP_F64);
    if (c->t->maxsum.first < 0 || c->t->maxsum.first % block || c->t->maxsum.first > all - block)
        return REFUSED("its block lies outside the sums");
    return want_labels(c, operand(c, 2), x);
}

/* accum needs equal boxes; copy needs one tensor and copies the intersection of the boxes. */
static hp_status check_pair(const checker *c) {
    const hp_box *dst = NULL, *src = NULL;
    if (!hp_buffer_has_box(buffer_of(c, operand(c, 0)))) return REFUSED("the destination holds no tensor");
    const int tensor = buffer_of(c, operand(c, 0))->what;
    HP_TRY(want_tensor(c, operand(c, 0), tensor, "the destination", &dst));
    HP_TRY(want_tensor(c, operand(c, 1), tensor, "the source", &src));
    if (c->t->op == HP_TASK_ACCUM && !hp_box_equal(dst, src))
        return REFUSED("adds another part of the tensor");
    return HP_OK;
}

static hp_status check_zero(const checker *c) {
    const uint8_t kind = buffer_of(c, operand(c, 0))->kind;
    if (hp_buffer_has_box(buffer_of(c, operand(c, 0))) || kind == HP_BUF_GRADS || kind == HP_BUF_SUMS ||
        kind == HP_BUF_BLOCK)
        return HP_OK;
    return REFUSED("buffer %d is not one to be cleared", operand(c, 0));
}

/* A message is a whole box; only arrays without boxes move in parts. */
static hp_status check_transfer(const checker *c) {
    const hp_buffer *b = buffer_of(c, operand(c, 0));
    const hp_elements range = hp_task_range(c->t);
    if (b->kind == HP_BUF_SUMS || hp_buffer_has_box(b))
        if (range.first || range.count * hp_dtype_bytes((hp_dtype)b->dtype) != b->bytes)
            return REFUSED("moves %lld elements, its box has others", (long long)range.count);
    if (c->t->flags & HP_FLAG_METRIC &&
        (b->kind != HP_BUF_METRIC || range.count != HP_METRICS || c->r->queue[c->t->queue].peer != 0))
        return REFUSED("the metrics are reduced otherwise");
    return HP_OK;
}

typedef hp_status task_rule(const checker *c);
static task_rule *const task_rules[HP_TASK_OPS] = {
    [HP_TASK_LOAD] = check_load,     [HP_TASK_PACK] = check_pack,   [HP_TASK_STATS] = check_stats,
    [HP_TASK_FWD] = check_fwd,       [HP_TASK_LOSS] = check_loss,   [HP_TASK_BSTATS] = check_bstats,
    [HP_TASK_BWD] = check_bwd,       [HP_TASK_BWDW] = check_bwdw,   [HP_TASK_ACCUM] = check_pair,
    [HP_TASK_COPY] = check_pair,     [HP_TASK_ZERO] = check_zero,   [HP_TASK_SEND] = check_transfer,
    [HP_TASK_RECV] = check_transfer, [HP_TASK_STORE] = check_store, [HP_TASK_MAXSUM] = check_maxsum,
#define COLLECTIVE(ID, ...) [HP_TASK_##ID] = check_transfer,
#include "plan/collectives/collectives.def"
};

/* All operands required by the task's row in plan/program/program_ops.def must be present. */
static hp_status check_presence(const checker *c) {
    for (int i = 0, k; i < c->t->n_operand; i++) {
        const hp_operand_info *o = hp_operand_at(c->g, c->t, i, &k);
        if (o->count == HP_OPERAND_ONE && operand(c, i) < 0)
            return REFUSED("%s is missing", hp_operand_names[o->kind]);
    }
    return HP_OK;
}

/* Buffers of a micro-batch may be used only by tasks of that micro-batch. */
static hp_status check_micro(const checker *c) {
    for (int i = 0; i < c->t->n_operand && c->t->micro >= 0; i++) {
        const int32_t id = operand(c, i);
        if (id >= 0 && buffer_of(c, id)->micro >= 0 && buffer_of(c, id)->micro != c->t->micro)
            return REFUSED("buffer %d is of micro-batch %d", id, buffer_of(c, id)->micro);
    }
    return HP_OK;
}

static hp_status check_role(checker *c) {
    c->at.task = -1;
    HP_TRY(hp_check_packs(&c->at));
    for (c->at.task = 0; c->at.task < c->r->n_task; c->at.task++) {
        c->t = &c->r->task[c->at.task];
        c->l = hp_task_is_layer(c->t) ? &c->g->layer[c->t->layer] : NULL;
        if (c->l) c->o = hp_operands_of(c->g, c->r, c->t);
        HP_TRY(check_presence(c));
        if (task_rules[c->t->op]) HP_TRY(task_rules[c->t->op](c));
        HP_TRY(check_aliases(c));
        HP_TRY(check_micro(c));
    }
    return HP_OK;
}

hp_status hp_check_boxes(const hp_program *p, const hp_graph *g, hp_error *err) {
    for (int role = 0; role < p->n_role; role++) {
        checker c = {.at = {p, g, role, -1, err}, .p = p, .g = g, .r = &p->role[role]};
        HP_TRY(check_role(&c));
    }
    return HP_OK;
}
