/* work.c - what a task's duration may depend on: its shape class, its size, its arithmetic and its memory
 * traffic, from the boxes of its operands: redundant rows of a halo are work like any other. */
#include "plan/program/work_inside.h"

#include "networks/graph/attention.h"
#include "networks/graph/precision.h"
#include "plan/program/factors.h"
#include "plan/program/operands.h"
#include "plan/program/runs.h"
#include "plan/program/update.h"

#include <string.h>

/* --- sizes of a layer's task --- */

static const hp_buffer *operand(const hp_role *r, const hp_task *t, int k) {
    const int32_t b = k >= 0 && k < t->n_operand ? r->operand[t->operand + k] : -1;
    return b < 0 ? NULL : &r->buffer[b];
}

static const hp_buffer *buffer_of(const hp_graph *g, const hp_role *r, const hp_task *t,
                                  hp_operand_kind kind) {
    const int32_t b = hp_operand_buffer(g, r, t, kind, 0);
    return b < 0 ? NULL : &r->buffer[b];
}

/* The buffer whose box says what is computed: the output's or its gradient's; of stats the save's. */
static const hp_buffer *output_of(const hp_graph *g, const hp_role *r, const hp_task *t) {
    const hp_buffer *dy = buffer_of(g, r, t, HP_OPERAND_DY), *y = dy ? dy : buffer_of(g, r, t, HP_OPERAND_Y);
    return y ? y : buffer_of(g, r, t, HP_OPERAND_SAVE);
}

/* The first input's gradient, or the input itself: a window may leave some of its last rows and columns
 * unread. */
static const hp_buffer *input_of(const hp_graph *g, const hp_role *r, const hp_task *t) {
    const hp_buffer *dx = buffer_of(g, r, t, HP_OPERAND_DX);
    return dx ? dx : buffer_of(g, r, t, HP_OPERAND_X);
}

static void set_lengths(int32_t length[HP_AXES], const hp_box *b) {
    for (int a = 0; a < HP_AXES; a++) length[a] = hp_box_empty(b) ? 0 : hp_box_len(b, a);
}

/* Rows and columns, fewer than the stride, that no window reaches are there all the same. */
static void add_unread(const hp_layer *l, const hp_box *have, hp_box *need) {
    const int slack[HP_AXES] = {0, l->window.stride_h - 1, l->window.stride_w - 1, 0};
    for (int a = HP_AXIS_H; a <= HP_AXIS_W; a++) {
        const int32_t most = need->hi[a] + (slack[a] > 0 ? slack[a] : 0);
        if (have->hi[a] > need->hi[a]) need->hi[a] = have->hi[a] < most ? have->hi[a] : most;
    }
}

/* Bytes of a tensor's element where it is stored otherwise than the program computes; else 0. */
static int stored_bytes(const hp_tensor *t) {
    return t->store == HP_STORE_REAL ? 0 : hp_dtype_bytes(hp_tensor_dtype(t, HP_F32));
}

static void set_inputs(const hp_graph *g, const hp_layer *l, const hp_box *have, const hp_box *out,
                       hp_work_case *c) {
    for (int k = 0; k < l->n_in; k++) {
        hp_box need = hp_layer_need(g, c->layer, k, out);
        if (k == 0 && have && !hp_box_empty(&need)) {
            const hp_box view = hp_layer_view(g, &need, have);
            add_unread(l, &view, &need);
        }
        if (k == 0) set_lengths(c->in, &need);
        const int64_t elems = hp_box_elems(&need);
        const int bytes = stored_bytes(&g->tensor[l->in[k]]);
        c->in_elems += elems;
        c->stored_elems += bytes ? elems : 0;
        c->stored_bytes += bytes * elems;
    }
}

static void set_pairs(const hp_graph *g, const hp_layer *l, const hp_box *out, hp_work_case *c) {
    if (l->op != HP_ATTENTION || hp_box_empty(out)) return;
    const hp_extent rows = {out->lo[HP_AXIS_H], out->hi[HP_AXIS_H]},
                    cols = {out->lo[HP_AXIS_W], out->hi[HP_AXIS_W]};
    c->pairs = hp_box_len(out, HP_AXIS_N) * hp_attention_pairs(g, l, rows, cols);
}

static void layer_case(const hp_graph *g, const hp_role *r, const hp_task *t, hp_work_case *c) {
    const hp_layer *l = &g->layer[t->layer];
    const hp_buffer *out = output_of(g, r, t), *in = input_of(g, r, t);
    HP_ASSERT(out);
    const bool matrix = l->op == HP_CONV || l->op == HP_LINEAR;
    c->layer = t->layer;
    c->eval = t->op == HP_TASK_FWD && (t->flags & HP_FLAG_EVAL) && !matrix && !g->deployed;
    c->sums =
        (t->op == HP_TASK_FWD || t->op == HP_TASK_BWD) && hp_operand_buffer(g, r, t, HP_OPERAND_SUMS, 0) >= 0;
    const hp_box made = hp_task_box(t, &out->box);
    set_lengths(c->out, &made);
    set_inputs(g, l, in ? &in->box : NULL, &made, c);
    set_pairs(g, l, &made, c);
}

hp_work_case hp_work_case_at(const hp_graph *g, int layer, hp_task_op op, const hp_box *out) {
    hp_work_case c;
    memset(&c, 0, sizeof c);
    c.layer = layer;
    c.op = (uint8_t)op;
    set_lengths(c.out, out);
    set_inputs(g, &g->layer[layer], NULL, out, &c);
    set_pairs(g, &g->layer[layer], out, &c);
    return c;
}

/* --- from sizes to work --- */

/* Inputs that an output is a sum over; of a row layer as many as are here. */
static double reads_per_output(const hp_graph *g, const hp_work_case *c) {
    const hp_layer *l = &g->layer[c->layer];
    return l->tp == (int32_t)HP_TP_ROW ? c->in[HP_AXIS_C] : (double)g->param[l->param[0]].fan_in;
}

/* Multiply-adds per element: of the output, of a transposed convolution's input. */
static double macs(const hp_graph *g, const hp_work_case *c, double y) {
    const hp_layer *l = &g->layer[c->layer];
    if (l->op == HP_CONVT)
        return hp_length_product(c->in, HP_AXIS_N, HP_AXIS_C) * l->window.kh * l->window.kw *
               c->out[HP_AXIS_C] / hp_local_groups(g, l, c->out[HP_AXIS_C]);
    return y * reads_per_output(g, c);
}

/* Parameters of the output channels that are computed here. */
static double param_elems(const hp_graph *g, const hp_work_case *c) {
    const hp_layer *l = &g->layer[c->layer];
    double n = 0;
    for (int i = 0; i < l->n_param; i++) n += (double)g->param[l->param[i]].count;
    return n * c->out[HP_AXIS_C] / g->tensor[l->out].c;
}

/* Elements that batch norm moves: without sums the forward pass reads x twice, the backward pass x, y, dy
 * twice, and writes dx. */
static double norm_traffic(const hp_work_case *c, double x, double y) {
    switch (c->op) {
    case HP_TASK_STATS:
        return y;
    case HP_TASK_BSTATS:
        return x + 2 * y;
    case HP_TASK_FWD:
        return (c->sums ? x : 2 * x) + y;
    default:
        return (c->sums ? x + 2 * y : 2 * (x + 2 * y)) + x;
    }
}

/* A range of what it reads, then its bytes: of layers that quantise their input. */
static double passes(hp_dtype dtype, const hp_layer *l, const hp_work_case *c) {
    return l->deployed.dynamic
               ? (2 * hp_dtype_bytes(dtype) + 1) * hp_length_product(c->in, HP_AXIS_N, HP_AXIS_C)
               : 0;
}

/* The gradient of a table is written whole: rows that are not read get zeros. */
static double table_traffic(const hp_graph *g, const hp_work_case *c) {
    const hp_layer *l = &g->layer[c->layer];
    const bool whole = hp_layer_is_whole(l) && l->op != HP_CONVT;
    return whole && (c->op == HP_TASK_BWDW || (c->op == HP_TASK_BWD && l->op == HP_POSITION))
               ? param_elems(g, c)
               : 0;
}

/* Bytes moved by layers other than a trained batch norm: each operand once; attention's backward pass reads
 * inputs and output again. 8-bit maps are multiplied with 8-bit weights. */
static double layer_traffic(const hp_graph *g, hp_dtype dtype, const hp_work_case *c, double y) {
    const hp_layer *l = &g->layer[c->layer];
    const double element = hp_dtype_bytes(dtype),
                 made = hp_dtype_bytes(hp_tensor_dtype(&g->tensor[l->out], dtype)),
                 weight = l->deployed.dynamic || g->tensor[l->in[0]].store == HP_STORE_U8 ? 1 : element,
                 narrowed =
                     l->deployed.dynamic ? (element - 1) * hp_length_product(c->in, HP_AXIS_N, HP_AXIS_C) : 0;
    return element * (double)(c->in_elems - c->stored_elems) - narrowed + (double)c->stored_bytes + made * y +
           (hp_layer_is_matrix(l) ? weight * param_elems(g, c) : 0) + element * table_traffic(g, c) +
           (l->op == HP_ATTENTION && c->op == HP_TASK_BWD ? element * (double)c->in_elems + 2 * made * y : 0);
}

const char *const hp_rates_stem = "stem";

/* Kernels that move 16 bytes at a time fit neither rows of another length nor the few channels of an
 * image. */
static const char *rates_of(const hp_graph *g, hp_dtype dtype, const hp_work_case *c) {
    enum { VECTOR = 16, CHANNELS = 4 };
    const hp_layer *l = &g->layer[c->layer];
    if (l->op == HP_ATTENTION) return l->n_param ? "biased" : NULL;
    if (g->deployed && l->op == HP_CONV && l->groups < 2 && c->in[HP_AXIS_C] < CHANNELS) return hp_rates_stem;
    if (!hp_layer_is_dense(g, l)) return NULL;
    const int x = c->in[HP_AXIS_C] * hp_dtype_bytes(hp_tensor_dtype(&g->tensor[l->in[0]], dtype)),
              y = c->out[HP_AXIS_C] * hp_dtype_bytes(hp_tensor_dtype(&g->tensor[l->out], dtype));
    return x % VECTOR || y % VECTOR ? "odd" : "dense";
}

/* Sets the implicit matrix product: pixels by channels; for the weights' gradient, channels by window. */
static void set_product(const hp_graph *g, const hp_work_case *c, hp_work *w) {
    const hp_layer *l = &g->layer[c->layer];
    if (!hp_layer_is_matrix(l) || l->groups > 1) return;
    const bool inputs = c->op == HP_TASK_BWD;
    const double window = l->op == HP_LINEAR ? 1 : l->window.kh * l->window.kw;
    const int32_t *map = inputs ? c->in : c->out;
    w->rows = hp_length_product(map, HP_AXIS_N, HP_AXIS_W);
    w->cols = map[HP_AXIS_C];
    w->depth = inputs ? c->out[HP_AXIS_C] * window : reads_per_output(g, c);
    if (c->op != HP_TASK_BWDW) return;
    w->depth = w->rows;
    w->rows = c->out[HP_AXIS_C];
    w->cols = reads_per_output(g, c);
}

/* Matrix products of attention, queries by keys or by channels. Forward: scores, sums of values. Backward:
 * scores again, their gradients, and those of queries, keys and values (Dao et al., NeurIPS 2022, algorithm
 * 4). */
static double attention_products(const hp_work_case *c) {
    return c->op == HP_TASK_BWD ? 5 : 2;
}

/* In inference with 16-bit parameters and maps, attention reads float32 and rounds it on the way. */
static const char *factors_of(const hp_graph *g) {
    if (!g->deployed) return NULL;
    return g->prec == HP_PREC_BF16 ? "bf16" : g->prec == HP_PREC_FP16 ? "f16" : NULL;
}

/* A window counts as a sample of its own. Heads with one query that share keys count as queries of one
 * head. */
static void set_attention(const hp_graph *g, hp_dtype dtype, const hp_work_case *c, hp_work *w) {
    const hp_layer *l = &g->layer[c->layer];
    const double pixels = hp_length_product(c->out, HP_AXIS_H, HP_AXIS_W), samples = c->out[HP_AXIS_N],
                 window = hp_layer_is_windowed(l) ? (double)l->window.kh * l->window.kw : pixels;
    if (l->op != HP_ATTENTION || c->pairs <= 0) return;
    w->attends = l->attention.causal ? "causal" : "attention";
    w->rows = window < pixels ? window : pixels;
    w->cols = hp_head_channels(g, l);
    w->depth = (double)c->pairs / (samples * pixels);
    w->groups = samples * hp_local_groups(g, l, c->out[HP_AXIS_C]) * pixels / w->rows;
    if (w->rows <= 1 && l->attention.kv_heads > 0) {
        w->rows = (double)l->groups / l->attention.kv_heads;
        w->groups /= w->rows;
    }
    w->products = attention_products(c);
    w->kept_bytes = hp_dtype_bytes(hp_tensor_dtype(&g->tensor[l->in[0]], dtype)) *
                    ((double)c->in_elems - hp_length_product(c->in, HP_AXIS_N, HP_AXIS_C));
    w->factors = factors_of(g);
}

/* Everything but the key. */
static hp_work layer_amounts(const hp_graph *g, hp_dtype dtype, const hp_work_case *c) {
    const hp_layer *l = &g->layer[c->layer];
    const bool trained_norm = l->op == HP_BN && !g->deployed;
    const double x = (double)c->in_elems, y = hp_length_product(c->out, HP_AXIS_N, HP_AXIS_C);
    hp_work w = {.flops = hp_layer_is_matrix(l) ? 2 * macs(g, c, y) : 4 * (x + y)};
    if (l->op == HP_ATTENTION) w.flops = 2 * attention_products(c) * (double)c->pairs * c->out[HP_AXIS_C];
    const hp_dtype map = hp_tensor_dtype(&g->tensor[l->out], dtype);
    w.size = hp_length_product(hp_size_map(g, c), HP_AXIS_N, HP_AXIS_W);
    w.bytes = trained_norm ? hp_dtype_bytes(map) * norm_traffic(c, x, y) : layer_traffic(g, dtype, c, y);
    w.passes = passes(dtype, l, c);
    w.bytes += w.passes;
    w.rates = rates_of(g, dtype, c);
    set_product(g, c, &w);
    set_attention(g, dtype, c, &w);
    return w;
}

/* --- other tasks --- */

/* A task of some rows moves these alone. */
static double operand_bytes(const hp_role *r, const hp_task *t) {
    double bytes = 0;
    for (int i = 0; i < t->n_operand; i++) {
        const hp_buffer *b = operand(r, t, i);
        if (!b) continue;
        const hp_box rows = hp_task_box(t, &b->box);
        bytes += hp_task_rows(t).hi > hp_task_rows(t).lo
                     ? (double)hp_box_elems(&rows) * hp_dtype_bytes((hp_dtype)b->dtype)
                     : (double)b->bytes;
    }
    return bytes;
}

/* How what a task moves is stored: in training, a tensor as its buffer, all else as the program's numbers. */
static hp_dtype moved_dtype(const hp_program *p, const hp_graph *g, const hp_role *r, const hp_task *t) {
    const hp_buffer *b = operand(r, t, 0);
    return b && (g->deployed || hp_buffer_has_box(b)) ? (hp_dtype)b->dtype : (hp_dtype)p->dtype;
}

static void pack_work(const hp_program *p, const hp_graph *g, const hp_role *r, const hp_task *t,
                      hp_work *w) {
    const hp_layer *l = &g->layer[t->layer];
    const hp_buffer *forward = buffer_of(g, r, t, HP_OPERAND_PACK_FORWARD),
                    *backward = buffer_of(g, r, t, HP_OPERAND_PACK_BACKWARD);
    w->size = (double)r->place[l->param[0]].count;
    w->bytes = w->size * hp_dtype_bytes((hp_dtype)p->dtype) + (forward ? (double)forward->bytes : 0) +
               (backward ? (double)backward->bytes : 0);
    snprintf(w->key, sizeof w->key, "pack.%s k%d n%d %s", hp_layer_infos[l->op].name, l->window.kh,
             (forward != NULL) + (backward != NULL), hp_dtype_names[p->dtype]);
}

/* Class of a run's length, a power of two. Short runs cost as much as longer ones; beyond a page length does
 * not matter. */
static int64_t run_class(int64_t bytes) {
    enum { MOST = 4096 };
    int64_t class = 1;
    while (class < MOST && 2 * class <= bytes) class *= 2;
    return class;
}

/* The elements in which the two boxes of a copy meet, and how many of them lie side by side. */
static void copy_case(const hp_role *r, const hp_task *t, hp_work_case *c) {
    const hp_box *to = &operand(r, t, 0)->box, *from = &operand(r, t, 1)->box, meet = hp_box_and(to, from),
                 rows = hp_task_box(t, &meet);
    c->in_elems = hp_box_elems(&rows);
    c->run_bytes = c->in_elems > 0
                       ? run_class(hp_runs_between(to, from, &rows).run * hp_dtype_bytes((hp_dtype)c->dtype))
                       : 1;
}

/* A copy reads elements, writes them, and reads what it adds to. */
static hp_work moved_amounts(const hp_work_case *c) {
    const double n = (double)c->in_elems;
    if (c->op != HP_TASK_COPY) return (hp_work){.size = n, .bytes = n};
    const double size = n * hp_dtype_bytes((hp_dtype)c->dtype);
    return (hp_work){.size = size, .bytes = (c->sums ? 3 : 2) * size, .flops = c->sums ? n : 0};
}

static void moved_key(const hp_work_case *c, hp_text key) {
    hp_text_add(key, "%s %s%s", hp_task_infos[c->op].name, c->sums ? "add " : "", hp_dtype_names[c->dtype]);
    if (c->op == HP_TASK_COPY) hp_text_add(key, " w%lld", (long long)c->run_bytes);
}

static void zero_work(const hp_program *p, const hp_role *r, const hp_task *t, hp_work *w) {
    w->size = w->bytes = (double)t->zero.elems * hp_dtype_bytes((hp_dtype)operand(r, t, 0)->dtype);
    snprintf(w->key, sizeof w->key, "zero %s", hp_dtype_names[p->dtype]);
}

/* Strips come without labels: of a deployed program's the image alone counts. */
static void load_work(const hp_graph *g, const hp_role *r, const hp_task *t, hp_dtype dtype, hp_work *w) {
    const hp_buffer *image = buffer_of(g, r, t, HP_OPERAND_X),
                    *labels = buffer_of(g, r, t, HP_OPERAND_LABELS);
    if (g->deployed && image && labels) w->size = w->bytes = w->size - (double)labels->bytes;
    snprintf(w->key, sizeof w->key, "load %s %s", image ? "image" : "labels", hp_dtype_names[dtype]);
}

/* "encode bf16 f32": values one way, their code the other. */
static void codec_work(const hp_program *p, const hp_role *r, const hp_task *t, hp_work *w) {
    const hp_buffer *code = operand(r, t, t->op == HP_TASK_DECODE);
    char codec[HP_CODEC_TEXT];
    w->size = (double)t->code.values;
    w->bytes = hp_dtype_bytes((hp_dtype)p->dtype) * w->size + (double)code->bytes;
    w->flops = w->size;
    const bool feedback = t->op == HP_TASK_ENCODE && t->n_operand > 2; /* a residual is read and written */
    if (feedback) w->bytes += 2 * hp_dtype_bytes((hp_dtype)p->dtype) * w->size;
    snprintf(w->key, sizeof w->key, "%s %s%s %s", hp_task_infos[t->op].name,
             hp_codec_text(code->codec, codec), feedback ? " feedback" : "", hp_dtype_names[p->dtype]);
}

/* "project powersgd:4 f32": memory traffic of gradients, residual and factors; products of each matrix with a
 * thin one. */
static void factor_work(const hp_program *p, const hp_graph *g, const hp_role *r, const hp_task *t,
                        hp_work *w) {
    const hp_buffer *code = operand(r, t, t->op == HP_TASK_EXPAND);
    const hp_factor_sizes n = hp_factor_sizes_of(g, r, hp_task_range(t), hp_codec_number(code->codec));
    const double passes = t->op == HP_TASK_PROJECT  ? 3
                          : t->op == HP_TASK_FACTOR ? 2
                                                    : 1,
                 products = t->op == HP_TASK_FACTOR ? 2 : 1;
    char codec[HP_CODEC_TEXT];
    w->size = (double)t->code.values;
    w->bytes = hp_dtype_bytes((hp_dtype)p->dtype) * (passes * w->size + (double)(n.p + n.q));
    w->flops = products * 2 * (double)n.macs;
    snprintf(w->key, sizeof w->key, "%s %s %s", hp_task_infos[t->op].name, hp_codec_text(code->codec, codec),
             hp_dtype_names[p->dtype]);
}

/* Reads both, writes one. */
hp_work hp_work_of_sum(hp_dtype dtype, double elems) {
    hp_work w = {.size = 2 * elems * hp_dtype_bytes(dtype)};
    w.bytes = w.size;
    snprintf(w.key, sizeof w.key, "%s %s", hp_task_infos[HP_TASK_ACCUM].name, hp_dtype_names[dtype]);
    return w;
}

/* A part of a bucket is copied, or added. */
static hp_work part_work(const hp_program *p, const hp_role *r, const hp_task *t) {
    const int64_t elems = hp_updated_elems(r, t);
    if (t->flags & HP_FLAG_ADD) return hp_work_of_sum((hp_dtype)p->dtype, (double)elems);
    const hp_work_case c = {.layer = -1,
                            .op = HP_TASK_COPY,
                            .dtype = (uint8_t)p->dtype,
                            .in_elems = elems,
                            .run_bytes = run_class(elems * hp_dtype_bytes((hp_dtype)p->dtype))};
    hp_work w = moved_amounts(&c);
    moved_key(&c, (hp_text){w.key, sizeof w.key});
    return w;
}

static hp_work other_work(const hp_program *p, const hp_graph *g, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    hp_work w = {.size = operand_bytes(r, t)};
    const hp_dtype moved = moved_dtype(p, g, r, t);
    w.bytes = w.size;
    switch (t->op) {
    case HP_TASK_PACK:
        pack_work(p, g, r, t, &w);
        return w;
    case HP_TASK_ZERO:
        zero_work(p, r, t, &w);
        return w;
    case HP_TASK_LOAD:
        load_work(g, r, t, moved, &w);
        return w;
    case HP_TASK_ENCODE:
    case HP_TASK_DECODE:
        codec_work(p, r, t, &w);
        return w;
    case HP_TASK_PROJECT:
    case HP_TASK_FACTOR:
    case HP_TASK_EXPAND:
        factor_work(p, g, r, t, &w);
        return w;
    case HP_TASK_UPDATE:
    case HP_TASK_NORM:
        return hp_update_work(p, g, r, t);
    case HP_TASK_FINITE:
        w.size = (double)hp_updated_elems(r, t);
        w.bytes = hp_dtype_bytes((hp_dtype)p->dtype) * w.size;
        break;
    case HP_TASK_PART:
        return part_work(p, r, t);
    case HP_TASK_SEND:
    case HP_TASK_RECV:
#define COLLECTIVE(ID, ...) case HP_TASK_##ID:
#include "plan/collectives/collectives.def"
        w.size = w.bytes = (double)hp_task_bytes(t);
        break;
    default:
        break;
    }
    snprintf(w.key, sizeof w.key, "%s %s%s", hp_task_infos[t->op].name,
             t->op == HP_TASK_LOSS && (t->flags & HP_FLAG_EVAL) ? "eval " : "", hp_dtype_names[moved]);
    return w;
}

double hp_work_elems(const int32_t length[HP_AXES]) {
    double n = 1;
    for (int a = 0; a < HP_AXES; a++) n *= length[a];
    return n;
}

bool hp_work_case_of(const hp_program *p, const hp_graph *g, const hp_role *r, int task, hp_work_case *c) {
    const hp_task *t = &r->task[task];
    memset(c, 0, sizeof *c);
    c->op = t->op;
    if (hp_task_is_layer(t)) {
        layer_case(g, r, t, c);
        return true;
    }
    if (t->op != HP_TASK_COPY && t->op != HP_TASK_ACCUM) return false;
    c->layer = -1;
    c->dtype = (uint8_t)moved_dtype(p, g, r, t);
    c->sums = t->op == HP_TASK_COPY && (t->flags & HP_FLAG_ADD);
    if (t->op == HP_TASK_COPY)
        copy_case(r, t, c);
    else
        c->in_elems = (int64_t)operand_bytes(r, t);
    return true;
}

static hp_work deployed_work(const hp_graph *g, hp_work w) {
    if (!g->deployed) return w;
    char key[sizeof w.key];
    memcpy(key, w.key, sizeof key);
    snprintf(w.key, sizeof w.key, HP_WORK_DEPLOYED ".%.60s", key);
    return w;
}

hp_work hp_work_amounts(const hp_graph *g, hp_dtype dtype, const hp_work_case *c) {
    return c->layer >= 0 ? layer_amounts(g, dtype, c) : moved_amounts(c);
}

hp_work hp_work_of_case(const hp_graph *g, hp_dtype dtype, const hp_work_case *c) {
    hp_work w = hp_work_amounts(g, dtype, c);
    const hp_text key = {w.key, sizeof w.key};
    if (c->layer >= 0) {
        hp_layer_key(g, dtype, c, key);
        return w;
    }
    moved_key(c, key);
    return deployed_work(g, w);
}

hp_work hp_task_work(const hp_program *p, const hp_graph *g, const hp_role *r, int task) {
    hp_work_case c;
    if (hp_work_case_of(p, g, r, task, &c)) return hp_work_of_case(g, (hp_dtype)p->dtype, &c);
    return deployed_work(g, other_work(p, g, r, task));
}
