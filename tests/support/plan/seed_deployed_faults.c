/* seed_deployed_faults.c - faults that only programs of deployed networks can have. */
#include "tests/support/plan/seed_deployed_faults.h"

/* --- choosing --- */

static int32_t first_operand(const victim *v, const hp_task *t) {
    return v->r->operand[t->operand];
}

static hp_buffer *first_buffer(const victim *v, const hp_task *t) {
    return first_operand(v, t) < 0 ? NULL : &v->r->buffer[first_operand(v, t)];
}

static bool takes_rows(const victim *v, const hp_task *t) {
    const bool may =
        t->op == HP_TASK_FWD || t->op == HP_TASK_LOAD || t->op == HP_TASK_STORE || t->op == HP_TASK_COPY;
    return may && first_operand(v, t) >= 0;
}

/* The rows of a task that has some. */
static hp_rows *rows_at(hp_task *t) {
    return t->op == HP_TASK_FWD ? &t->forward.rows : &t->rows;
}

static bool of_two_samples(const victim *v, const hp_task *t) {
    if (!takes_rows(v, t) || t->op == HP_TASK_COPY) return false;
    const hp_box *b = &first_buffer(v, t)->box;
    return hp_box_len(b, HP_AXIS_N) > 1 && hp_box_len(b, HP_AXIS_H) > 1;
}

static bool of_some_rows(const victim *v, const hp_task *t) {
    if (!takes_rows(v, t)) return false;
    const hp_box rows = hp_task_box(t, &first_buffer(v, t)->box);
    return hp_box_len(&rows, HP_AXIS_H) > 1 && hp_box_len(&rows, HP_AXIS_N) == 1;
}

static bool is_any(const victim *v, const hp_task *t) {
    (void)v;
    return t->op != HP_TASK_UPDATE;
}

static bool is_store(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_STORE;
}

static bool is_load(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_LOAD && first_operand(v, t) >= 0;
}

static bool adds(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_FWD && hp_layer_adds(&v->g->layer[t->layer]);
}

static bool converts(const victim *v, const hp_task *t) {
    const int op = t->op == HP_TASK_FWD ? v->g->layer[t->layer].op : HP_CONV;
    return op == HP_QUANT || op == HP_DEQUANT;
}

static bool has_pack(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_FWD && v->r->pack_forward[t->layer] >= 0;
}

/* Is every row of every tensor read? Strides and resizing may skip some. */
static bool reads_all(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_RESIZE || (g->layer[l].op != HP_CONVT && g->layer[l].window.stride_h > 1))
            return false;
    return true;
}

static bool missing_needed_forward(victim *v) {
    return reads_all(v->g) && drop(v->r, pick_task(v, is_forward));
}

/* --- rows --- */

static bool rows_beyond(victim *v) {
    hp_task *t = pick_task(v, takes_rows);
    if (!t) return false;
    const hp_box *b = &first_buffer(v, t)->box;
    const int past = roll(&v->d, 1, 9), kind = roll(&v->d, 0, 2);
    const int hi = b->hi[HP_AXIS_H] + past;
    *rows_at(t) = (hp_rows){kind == 0 ? b->hi[HP_AXIS_H] : kind == 1 ? b->lo[HP_AXIS_H] : hi + past, hi};
    return true;
}

static bool rows_of_samples(victim *v) {
    hp_task *t = pick_task(v, of_two_samples);
    if (!t) return false;
    const int lo = first_buffer(v, t)->box.lo[HP_AXIS_H];
    *rows_at(t) = (hp_rows){lo, lo + 1};
    return true;
}

/* Leaves out the first row, which every window over it reads. */
static bool rows_missing(victim *v) {
    hp_task *t = pick_task(v, of_some_rows);
    if (!t || !reads_all(v->g)) return false;
    const hp_box rows = hp_task_box(t, &first_buffer(v, t)->box);
    *rows_at(t) = (hp_rows){rows.lo[HP_AXIS_H] + 1, rows.hi[HP_AXIS_H]};
    return t->op != HP_TASK_COPY ||
           v->r->buffer[v->r->operand[t->operand + 1]].box.lo[HP_AXIS_H] < rows_at(t)->lo;
}

/* --- stores, channels --- */

static bool other_store(victim *v) {
    const hp_task *t = pick_task(v, is_forward);
    hp_buffer *b = t ? first_buffer(v, t) : NULL;
    if (!b || !b->bytes) return false;
    const int64_t elems = b->bytes / hp_dtype_bytes((hp_dtype)b->dtype);
    b->dtype = b->dtype == HP_U8 ? HP_BF16 : HP_U8;
    if (elems * hp_dtype_bytes((hp_dtype)b->dtype) <= b->bytes)
        b->bytes = elems * hp_dtype_bytes((hp_dtype)b->dtype);
    return true;
}

/* A buffer claims to be another tensor's, of the same shape. */
static bool other_tensor(victim *v) {
    const hp_task *t = pick_task(v, is_forward);
    hp_buffer *b = t ? first_buffer(v, t) : NULL;
    for (int k = 0; b && k < v->g->n_tensor; k++) {
        const hp_tensor *x = &v->g->tensor[b->what], *y = &v->g->tensor[k];
        if (x == y || x->h != y->h || x->w != y->w || x->c != y->c || b->what != v->g->layer[t->layer].out)
            continue;
        for (int i = 0; i < t->n_operand - 2; i++) /* in place: the name does not matter */
            if (v->r->operand[t->operand + 2 + i] == first_operand(v, t)) return false;
        b->what = k;
        return true;
    }
    return false;
}

static bool unconverted(victim *v) {
    hp_task *t = pick_task(v, converts);
    int32_t *o = t ? &v->r->operand[t->operand] : NULL;
    if (o) o[coin(&v->d) ? 0 : 2] = coin(&v->d) ? o[2] : o[0];
    return o && o[0] == o[2];
}

static bool some_channels(victim *v) {
    const hp_task *t = pick_task(v, is_forward);
    hp_buffer *b = t ? first_buffer(v, t) : NULL;
    if (!b || hp_box_len(&b->box, HP_AXIS_C) < 2) return false;
    b->box.hi[HP_AXIS_C]--;
    b->bytes = hp_box_elems(&b->box) * hp_dtype_bytes((hp_dtype)b->dtype);
    return true;
}

/* --- what only training has --- */

static bool trained(victim *v) {
    static const uint8_t ops[] = {HP_TASK_PACK, HP_TASK_STATS, HP_TASK_BSTATS, HP_TASK_BWD,
                                  HP_TASK_BWDW, HP_TASK_ACCUM, HP_TASK_ZERO,   HP_TASK_UPDATE};
    hp_task *t = pick_task(v, is_any);
    if (t) t->op = ops[roll(&v->d, 0, (int)sizeof ops - 1)];
    return t != NULL;
}

static bool trained_flags(victim *v) {
    static const uint8_t flags[] = {HP_FLAG_ADD, HP_FLAG_RECOMPUTE, HP_FLAG_EVAL, HP_FLAG_FIRST,
                                    HP_FLAG_LAST};
    hp_task *t = pick_task(v, is_any);
    if (t) t->flags ^= flags[roll(&v->d, 0, 4)];
    return t != NULL;
}

static bool trained_mode(victim *v) {
    v->p->mode = HP_MODE_TRAIN;
    return true;
}

static bool placed_parameter(victim *v) {
    hp_param_place *at = &v->r->place[roll(&v->d, 0, v->g->n_param - 1)];
    *at = (hp_param_place){HP_HERE | HP_HOME, -1, 0, 0, 1};
    return true;
}

static bool saved(victim *v) {
    const hp_task *t = pick_task(v, is_forward);
    if (t) v->r->operand[t->operand + 1] = roll(&v->d, HP_BUF_FIXED, v->r->n_buffer - 1);
    return t != NULL;
}

/* --- constants --- */

static bool missing_pack(victim *v) {
    const hp_task *t = pick_task(v, has_pack);
    if (t) v->r->pack_forward[t->layer] = -1;
    return t != NULL;
}

static bool other_pack(victim *v) {
    const hp_task *t = pick_task(v, has_pack), *u = pick_task(v, has_pack);
    if (!t || t->layer == u->layer) return false;
    v->r->pack_forward[t->layer] = v->r->pack_forward[u->layer];
    return true;
}

static bool little_pack(victim *v) {
    const hp_task *t = pick_task(v, has_pack);
    if (t) v->r->buffer[v->r->pack_forward[t->layer]].bytes -= 1 + roll(&v->d, 0, 7);
    return t != NULL;
}

/* Constants lie where another task works, before or after their layer's. */
static bool overwritten_pack(victim *v) {
    const hp_task *t = pick_task(v, has_pack), *u = pick_task(v, is_forward);
    hp_buffer *b = u ? first_buffer(v, u) : NULL;
    if (!t || !b || !b->bytes) return false;
    const hp_buffer *pack = &v->r->buffer[v->r->pack_forward[t->layer]];
    b->offset = pack->offset;
    return pack->bytes > 0 && b->offset + b->bytes <= v->r->arena_bytes;
}

/* A message is received into constants. */
static bool received_pack(victim *v) {
    const hp_task *t = pick_task(v, is_recv), *u = pick_task(v, has_pack);
    if (!t || !u) return false;
    v->r->operand[t->operand] = v->r->pack_forward[u->layer];
    return true;
}

/* --- input and output --- */

static bool missing_store(victim *v) {
    return drop(v->r, pick_task(v, is_store));
}

static bool missing_load(victim *v) {
    return drop(v->r, pick_task(v, is_load));
}

static bool stored_other(victim *v) {
    const hp_task *t = pick_task(v, is_store), *u = pick_task(v, is_forward);
    if (!t || !u || u->layer == v->g->n_layer - 1 || first_operand(v, t) == first_operand(v, u)) return false;
    v->r->operand[t->operand] = first_operand(v, u);
    return true;
}

static bool no_micro(victim *v) {
    hp_task *t = pick_task(v, coin(&v->d) ? is_store : is_load);
    if (t) t->micro = -1;
    return t != NULL;
}

/* --- sums --- */

/* Adds to memory that was never written. */
static bool unset_sum(victim *v) {
    const hp_task *t = pick_task(v, adds);
    const int32_t y = t ? first_operand(v, t) : -1;
    for (hp_task *c = v->r->task; c < t; c++)
        if (c->op == HP_TASK_COPY && first_operand(v, c) == y) return drop(v->r, c);
    return false;
}

/* Adds to another buffer than it writes. */
static bool split_sum(victim *v) {
    const hp_task *t = pick_task(v, adds);
    if (!t) return false;
    int32_t *last = &v->r->operand[t->operand + 1 + v->g->layer[t->layer].n_in];
    for (int b = HP_BUF_FIXED; b < v->r->n_buffer; b++)
        if (b != *last && v->r->buffer[b].kind == HP_BUF_TENSOR &&
            v->r->buffer[b].what == v->r->buffer[*last].what) {
            *last = b;
            return true;
        }
    return false;
}

/* Does a task after `t` use the buffer? */
static bool is_used_after(const victim *v, const hp_task *t, int32_t id) {
    for (const hp_task *u = t + 1; u < v->r->task + v->r->n_task; u++)
        for (int i = 0; i < u->n_operand; i++)
            if (v->r->operand[u->operand + i] == id) return true;
    return false;
}

/* Adds over the original instead of its copy. That is no fault if nothing uses either, as after a layer
 * without a reader. */
static bool overwritten_sum(victim *v) {
    const hp_task *t = pick_task(v, adds);
    if (!t) return false;
    int32_t *o = &v->r->operand[t->operand];
    for (const hp_task *c = v->r->task; c < t; c++) {
        const int32_t original = v->r->operand[c->operand + 1];
        if (c->op != HP_TASK_COPY || first_operand(v, c) != o[0]) continue;
        if (!is_used_after(v, t, o[0]) && !is_used_after(v, t, original)) return false;
        o[0] = o[1 + v->g->layer[t->layer].n_in] = original;
        return true;
    }
    return false;
}

const struct fault deployed_faults[DEPLOYED_FAULTS] = {
    {"exchanged tags", exchanged_tags},
    {"missing transfer", missing_transfer},
    {"wrong count", wrong_count},
    {"wrong type", wrong_type},
    {"wrong peer", wrong_peer},
    {"wrong channel", wrong_channel},
    {"swapped messages", swapped_messages},
    {"bent box", bent_box},
    {"missing copy", missing_copy},
    {"missing forward", missing_needed_forward},
    {"missing wait", missing_wait},
    {"wrong operand", wrong_operand},
    {"wrong micro-batch", wrong_micro},
    {"shared memory", shared_memory},
    {"little scratch", little_scratch},
    {"later dependency", later_dependency},
    {"rows beyond the box", rows_beyond},
    {"rows of samples", rows_of_samples},
    {"rows missing", rows_missing},
    {"other store", other_store},
    {"other tensor", other_tensor},
    {"not converted", unconverted},
    {"some channels", some_channels},
    {"training's task", trained},
    {"training's flags", trained_flags},
    {"training's mode", trained_mode},
    {"placed parameter", placed_parameter},
    {"saved values", saved},
    {"missing pack", missing_pack},
    {"other layer's pack", other_pack},
    {"little pack", little_pack},
    {"overwritten pack", overwritten_pack},
    {"received pack", received_pack},
    {"missing store", missing_store},
    {"missing load", missing_load},
    {"other output", stored_other},
    {"no micro-batch", no_micro},
    {"unset sum", unset_sum},
    {"split sum", split_sum},
    {"overwritten sum", overwritten_sum},
};
