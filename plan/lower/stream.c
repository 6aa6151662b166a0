/* stream.c - images larger than memory: the first layers of a deployed network strip by strip, depth
 * first.
 *
 * A strip of the image comes in; every layer of the segment then computes all the rows of its output that it
 * can, from rows that are there and no others, so nothing is computed twice and nothing is approximated. What
 * later strips still want of a tensor (the rows above the next window, or a skip connection's whole lag) is
 * kept in a small tail; the rest is given back at once. What layers after the segment read is put together
 * in a whole buffer; the network's own output leaves strip by strip. (The line buffers of stencil pipelines;
 * Alwani et al., MICRO 2016, fuse convolutions so.) */
#include "plan/lower/lower_inside.h"
#include "networks/graph/reads.h"

#include <string.h>

typedef struct strip_tensor {
    int32_t from, to; /* rows that are new in this strip: [from, to) */
    int32_t lo;       /* first row that the strip's buffer holds */
    int32_t buffer;   /* this strip's buffer, -1 */
    int32_t tail;     /* rows kept for later strips, -1: none */
    int32_t last;     /* last layer of the segment that reads it; -1: none */
    bool leaves;      /* read after the segment */
} strip_tensor;

typedef struct stream {
    hp_role_builder *c;
    const hp_pass *a;
    int end; /* layers 0 .. end-1 */
    strip_tensor *t;
} stream;

/* A tile without columns has no rows either. */
static const hp_box *have(const stream *s, int tensor) {
    static const hp_box none = {{0}, {0}};
    const hp_box *b = lower_have(s->c->facts, s->a, tensor);
    return hp_box_empty(b) ? &none : b;
}

static hp_box rows_of(const stream *s, int tensor, int32_t lo, int32_t hi) {
    hp_box b = *have(s, tensor);
    b.lo[HP_AXIS_H] = lo;
    b.hi[HP_AXIS_H] = hi;
    return b;
}

static hp_box need_of(const stream *s, int layer, int k, int32_t lo, int32_t hi) {
    const hp_box out = rows_of(s, s->c->facts->g->layer[layer].out, lo, hi);
    return hp_layer_need(s->c->facts->g, layer, k, &out);
}

/* --- which rows --- */

/* Do all inputs reach the rows that output rows up to `to` need? All new rows count: where windows have gaps,
 * a row may read further down than the next one does. */
static bool inputs_reach(const stream *s, int layer, int32_t to) {
    const hp_layer *l = &s->c->facts->g->layer[layer];
    for (int k = 0; k < l->n_in; k++)
        if (need_of(s, layer, k, s->t[l->out].from, to).hi[HP_AXIS_H] > s->t[l->in[k]].to) return false;
    return true;
}

/* The layer's output can be computed up to row `to`: more rows never need less, so bisection finds it. */
static void advance(stream *s, int layer) {
    strip_tensor *y = &s->t[s->c->facts->g->layer[layer].out];
    int32_t low = y->to, high = have(s, s->c->facts->g->layer[layer].out)->hi[HP_AXIS_H];
    y->from = y->to;
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (inputs_reach(s, layer, middle))
            low = middle;
        else
            high = middle - 1;
    }
    y->to = low;
}

static int32_t least(int32_t a, int32_t b) {
    return a < b ? a : b;
}

/* First row of a tensor that the segment's layers want from row `next(reader)` of their outputs on; its end
 * when they want none. */
static int32_t wanted_from(const stream *s, int tensor, bool after) {
    const hp_graph *g = s->c->facts->g;
    int32_t lo = s->t[tensor].to;
    for (int l = g->tensor[tensor].producer + 1; l <= s->t[tensor].last; l++)
        for (int k = 0; k < g->layer[l].n_in; k++) {
            const strip_tensor *y = &s->t[g->layer[l].out];
            const int32_t next = after ? y->to : y->from, end = have(s, g->layer[l].out)->hi[HP_AXIS_H];
            if (g->layer[l].in[k] != tensor || next >= end) continue;
            const int32_t all = need_of(s, l, k, next, end).lo[HP_AXIS_H],
                          one = need_of(s, l, k, next, next + 1)
                                    .lo[HP_AXIS_H]; /* a row that reads none names one */
            lo = least(lo, least(all, one));
        }
    return lo;
}

static void plan_strip(stream *s, int k, int strips) {
    const hp_box *image = have(s, 0);
    s->t[0].from = s->t[0].to;
    s->t[0].to = image->lo[HP_AXIS_H] + hp_split_at(hp_box_len(image, HP_AXIS_H), strips, k + 1);
    for (int l = 1; l < s->end; l++) advance(s, l);
    for (int l = 0; l < s->end; l++) {
        const int t = s->c->facts->g->layer[l].out;
        const int32_t lo = wanted_from(s, t, false);
        s->t[t].lo = least(lo, s->t[t].from);
        s->t[t].buffer = -1;
    }
}

/* --- tasks --- */

static void copy_rows(stream *s, int tensor, int32_t dst, int32_t src, int32_t lo, int32_t hi) {
    const int32_t operand[2] = {dst, src};
    hp_task t = lower_layer_task(s->a, HP_TASK_COPY, s->c->facts->g->tensor[tensor].producer, 0);
    t.rows = (hp_rows){lo, hi};
    lower_task(s->c, t, operand);
}

static int32_t strip_buffer(stream *s, int tensor) {
    strip_tensor *x = &s->t[tensor];
    const hp_box box = rows_of(s, tensor, x->lo, x->to);
    x->buffer = lower_box(s->c, HP_BUF_TENSOR, tensor, s->a->micro, &box);
    return x->buffer;
}

/* Rows from strips before this one. */
static void fetch_tail(stream *s, int tensor) {
    const strip_tensor *x = &s->t[tensor];
    if (x->lo < x->from) copy_rows(s, tensor, x->buffer, x->tail, x->lo, x->from);
}

/* A tensor with no new rows in this strip that somebody reads all the same. */
static int32_t read_buffer(stream *s, int tensor) {
    strip_tensor *x = &s->t[tensor];
    if (x->buffer < 0) {
        strip_buffer(s, tensor);
        fetch_tail(s, tensor);
    }
    return x->buffer;
}

/* None where these are all that its buffer holds. */
static hp_rows new_rows(const strip_tensor *x) {
    return x->lo == x->from ? (hp_rows){0, 0} : (hp_rows){x->from, x->to};
}

static void load_strip(stream *s) {
    strip_tensor *x = &s->t[0];
    if (x->from == x->to) return;
    const int32_t operand[2] = {strip_buffer(s, 0), -1};
    hp_task t = lower_layer_task(s->a, HP_TASK_LOAD, -1, 0);
    t.rows = new_rows(x);
    lower_task(s->c, t, operand);
    fetch_tail(s, 0);
}

/* The buffer that the layer reads for input `k` of its new rows: the strip's, or a copy of some columns. */
static int32_t layer_input(stream *s, int layer, int k) {
    const hp_layer *l = &s->c->facts->g->layer[layer];
    const strip_tensor *y = &s->t[l->out];
    const int32_t from = read_buffer(s, l->in[k]);
    const hp_box need = need_of(s, layer, k, y->from, y->to);
    if (hp_layer_reads(s->c->facts->g, layer, &need, lower_box_of(s->c, from))) return from;
    const int32_t x = lower_box(s->c, HP_BUF_TENSOR, l->in[k], s->a->micro, &need);
    lower_copy(s->c, s->a, l->in[k], x, from);
    return x;
}

static void compute_rows(stream *s, int layer) {
    const hp_layer *l = &s->c->facts->g->layer[layer];
    strip_tensor *y = &s->t[l->out];
    int32_t x[HP_MAX_IN];
    for (int k = 0; k < l->n_in; k++)
        x[k] = hp_layer_adds(l) && k == l->n_in - 1 ? read_buffer(s, l->in[k]) : layer_input(s, layer, k);
    strip_buffer(s, l->out);
    if (hp_layer_adds(l)) {
        copy_rows(s, l->in[l->n_in - 1], y->buffer, x[l->n_in - 1], y->from, y->to);
        x[l->n_in - 1] = y->buffer;
    }
    hp_task t = lower_layer_task(s->a, HP_TASK_FWD, layer, HP_FLAG_EVAL);
    t.forward.rows = new_rows(y);
    lower_forward_task(s->c, s->a, t, y->buffer, -1, x, -1);
    fetch_tail(s, l->out);
}

/* New rows for the layers that read them after the segment. */
static void hand_on(stream *s, int tensor) {
    const strip_tensor *x = &s->t[tensor];
    int32_t *act = &s->a->f->act[tensor];
    if (x->from == x->to) return;
    if (tensor == s->c->facts->g->layer[s->c->facts->g->n_layer - 1].out && !x->leaves) {
        hp_task t = lower_layer_task(s->a, HP_TASK_STORE, -1, 0);
        t.rows = new_rows(x);
        s->c->metric_writer = lower_task(s->c, t, &x->buffer);
    }
    if (!x->leaves) return;
    if (*act < 0) *act = lower_box(s->c, HP_BUF_TENSOR, tensor, s->a->micro, have(s, tensor));
    copy_rows(s, tensor, *act, x->buffer, x->from, x->to);
}

/* Keeps what later strips want; called once no layer reads the tensor in this one any more. */
static void keep_tail(stream *s, int tensor) {
    strip_tensor *x = &s->t[tensor];
    const int32_t lo = wanted_from(s, tensor, true);
    const int32_t from = x->buffer >= 0 ? x->buffer : x->tail;
    const hp_box box = rows_of(s, tensor, lo, x->to);
    if (lo >= x->to) {
        x->tail = -1;
    } else if (from != x->tail || !hp_box_equal(&box, lower_box_of(s->c, from))) {
        x->tail = lower_box(s->c, HP_BUF_TENSOR, tensor, s->a->micro, &box);
        copy_rows(s, tensor, x->tail, from, lo, x->to);
    }
}

static void keep_tails_of(stream *s, int layer) {
    const hp_layer *l = &s->c->facts->g->layer[layer];
    for (int k = 0; k < l->n_in; k++) {
        bool before = false;
        for (int i = 0; i < k; i++) before |= l->in[i] == l->in[k];
        if (s->t[l->in[k]].last == layer && !before) keep_tail(s, l->in[k]);
    }
}

static void lower_strip(stream *s) {
    load_strip(s);
    for (int l = 0; l < s->end; l++) {
        const int t = s->c->facts->g->layer[l].out;
        if (l > 0 && s->t[t].from < s->t[t].to) compute_rows(s, l);
        hand_on(s, t);
        keep_tails_of(s, l);
    }
}

static void note_readers(stream *s) {
    const hp_graph *g = s->c->facts->g;
    for (int t = 0; t < g->n_tensor; t++) {
        s->t[t] = (strip_tensor){.buffer = -1, .tail = -1, .last = -1};
        if (g->tensor[t].producer >= s->end) continue;
        s->t[t].from = s->t[t].to = have(s, t)->lo[HP_AXIS_H];
        /* a map of logits leaves strip by strip; what is a single pixel is also held against a label */
        const bool single = (int64_t)g->tensor[t].h * g->tensor[t].w == 1;
        s->t[t].leaves =
            s->c->facts->last_use[t] >= s->end && (s->c->facts->last_use[t] < g->n_layer || single);
    }
    for (int l = 1; l < s->end; l++)
        for (int k = 0; k < g->layer[l].n_in; k++) s->t[g->layer[l].in[k]].last = l;
}

int lower_stream_end(const hp_graph *g, const hp_strategy *s, int units) {
    if (s->strips.n <= 1) return 0;
    const int deep = s->strips.deep && s->strips.deep < units ? s->strips.deep : units;
    const bool columns = s->sp.n > 0 && s->sp.cols[0] > 1;
    int end = 1;
    while (end < g->unit_first[deep] && !hp_layer_reads_all_rows(g, end) &&
           !(columns && g->layer[end].op == HP_ADAPTPOOL)) /* needs all columns, but tiles have some */
        end++;
    return end > 1 ? end : 0;
}

void lower_streamed(hp_role_builder *c, const hp_pass *a, int end) {
    stream s = {c, a, end, HP_NEW(c->facts->arena, strip_tensor, c->facts->g->n_tensor)};
    note_readers(&s);
    for (int k = 0; k < c->facts->s->strips.n; k++) {
        plan_strip(&s, k, c->facts->s->strips.n);
        lower_strip(&s);
    }
    for (int l = 0; l < end; l++) /* the image too: later layers may read more of it than the segment does */
        if (s.t[c->facts->g->layer[l].out].leaves) lower_exchange(c, a, c->facts->g->layer[l].out);
}
