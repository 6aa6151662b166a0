/* onnx_tokens.c - writes transformers as ONNX; see onnx_tokens.h. Tensor t of the graph is the value "tT",
 * (N, tokens, C), or (N, H, W, C) in networks with windows. */
#include "networks/graph/acts.h"
#include "tests/support/onnx/onnx_spell.h"

#include <math.h>
#include <stdio.h>

tokens_spelling tokens_spelling_of(unsigned bits) {
    return (tokens_spelling){.norm_op = bits & 1,
                             .tokens_first = bits & 2,
                             .scale_on_q = bits & 4,
                             .folded_head = bits & 8,
                             .slices_a_token = bits & 16,
                             .batch = bits & 32 ? 3 : 0,
                             .split = (tokens_split)(bits / 64 % SPLITS),
                             .mask = (tokens_mask)(bits / 64 / SPLITS % MASKS)};
}

/* --- names, constants, nodes --- */

const char *spell_value(const writing *o, int32_t tensor) {
    return hp_arena_printf(o->w.arena, "t%d", tensor);
}

const char *spell_fresh(writing *o) {
    return hp_arena_printf(o->w.arena, "v%d", o->n++);
}

int64_t spell_samples(const writing *o) {
    return o->s.batch > 0 ? o->s.batch : 1;
}

const char *spell_floats(writing *o, size_t n_dim, const int64_t *dim, const float *v) {
    const char *name = spell_fresh(o);
    onnx_write_floats(&o->w, name, n_dim, dim, v);
    return name;
}

const char *spell_number(writing *o, double v) {
    const float f = (float)v;
    return spell_floats(o, 0, NULL, &f);
}

const char *spell_integers(writing *o, size_t n, const int64_t *v) {
    const char *name = spell_fresh(o);
    const int64_t dim = (int64_t)n;
    onnx_write_integers(&o->w, name, 1, &dim, v);
    return name;
}

const char *spell_scalar(writing *o, int64_t v) {
    const char *name = spell_fresh(o);
    onnx_write_integers(&o->w, name, 0, NULL, &v);
    return name;
}

Onnx__NodeProto *spell_node(writing *o, const char *op, const char *a, const char *b, const char *y) {
    return onnx_write_node(&o->w, op, b ? hp_arena_printf(o->w.arena, "%s %s", a, b) : a, y);
}

const char *spell_apply(writing *o, const char *op, const char *a, const char *b) {
    const char *y = spell_fresh(o);
    spell_node(o, op, a, b, y);
    return y;
}

const char *spell_reshape(writing *o, const char *x, size_t n, const int64_t *dim) {
    return spell_apply(o, "Reshape", x, spell_integers(o, n, dim));
}

const char *spell_transpose(writing *o, const char *x, size_t n, const int64_t *perm) {
    const char *y = spell_fresh(o);
    onnx_write_ints(&o->w, spell_node(o, "Transpose", x, NULL, y), "perm", n, perm);
    return y;
}

const float *spell_data_of(const writing *o, const hp_layer *l, int i) {
    return o->param[l->param[i]];
}

/* Transposes (O, I) to (I, O). */
static const float *turned(const writing *o, const float *v, int64_t outs, int64_t ins) {
    float *f = HP_NEW(o->w.arena, float, outs *ins);
    for (int64_t i = 0; i < outs * ins; i++) f[i % ins * outs + i / ins] = v[i];
    return f;
}

int64_t spell_channels(const writing *o, int32_t tensor) {
    return o->g->tensor[tensor].c;
}

static const char *vector(writing *o, const hp_layer *l, int i) {
    const int64_t c = spell_channels(o, l->out);
    return spell_floats(o, 1, &c, spell_data_of(o, l, i));
}

/* --- matrix products --- */

static const char *product(writing *o, const char *x, const float *weight, int64_t ins, int64_t outs) {
    return spell_apply(o, "MatMul", x, spell_floats(o, 2, (const int64_t[2]){ins, outs}, weight));
}

static void write_tied(writing *o, const hp_layer *l) {
    const int64_t outs = spell_channels(o, l->out), ins = spell_channels(o, l->in[0]);
    const char *weight = o->s.folded_head ? spell_floats(o, 2, (const int64_t[2]){ins, outs},
                                                         turned(o, spell_data_of(o, l, 0), outs, ins))
                                          : spell_transpose(o, "table", 2, (const int64_t[2]){1, 0});
    spell_node(o, "MatMul", spell_value(o, l->in[0]), weight, spell_value(o, l->out));
}

static void write_patches(writing *o, const hp_layer *l) {
    const hp_tensor t = o->g->tensor[l->out];
    const int64_t k[2] = {l->window.kh, l->window.kw}, dim[4] = {t.c, 3, l->window.kh, l->window.kw};
    const char *map = spell_fresh(o),
               *inputs = hp_arena_printf(o->w.arena, "image %s %s",
                                         spell_floats(o, 4, dim, spell_data_of(o, l, 0)), vector(o, l, 1));
    onnx_write_ints(&o->w, onnx_write_node(&o->w, "Conv", inputs, map), "strides", 2, k);
    if (spell_is_map(o)) {
        spell_node(o, "Identity", spell_transpose(o, map, 4, (const int64_t[4]){0, 2, 3, 1}), NULL,
                   spell_value(o, l->out));
        return;
    }
    const char *flat = spell_reshape(o, map, 3, (const int64_t[3]){spell_samples(o), t.c, -1});
    spell_node(o, "Identity", spell_transpose(o, flat, 3, (const int64_t[3]){0, 2, 1}), NULL,
               spell_value(o, l->out));
}

static void write_pixels(writing *o, const hp_layer *l) {
    const int64_t outs = spell_channels(o, l->out), ins = spell_channels(o, l->in[0]);
    const float *weight = spell_data_of(o, l, 0);
    if (l->tp != (int32_t)HP_TP_ROW) weight = turned(o, weight, outs, ins);
    const char *y = product(o, spell_value(o, l->in[0]), weight, ins, outs);
    spell_node(o, l->n_param > 1 ? "Add" : "Identity", y, l->n_param > 1 ? vector(o, l, 1) : NULL,
               spell_value(o, l->out));
}

static void write_conv(writing *o, const hp_layer *l) {
    if (l->in[0] == 0)
        write_patches(o, l);
    else if (o->g->param[l->param[0]].kind == HP_PARAM_TABLE)
        write_tied(o, l);
    else
        write_pixels(o, l);
}

/* --- attention --- */

/* Queries, keys and values in one product: (.., 3C). */
const char *spell_joined(writing *o, const hp_layer *l, const char *x) {
    const int64_t c = spell_channels(o, l->out),
                  ins = spell_channels(o, o->g->layer[o->g->tensor[l->in[0]].producer].in[0]);
    float *weight = HP_NEW(o->w.arena, float, 3 * c * ins), *bias = HP_NEW(o->w.arena, float, 3 * c);
    for (int k = 0; k < 3; k++) {
        const hp_layer *part = &o->g->layer[o->g->tensor[l->in[k]].producer];
        memcpy(weight + k * c * ins, spell_data_of(o, part, 0), sizeof *weight * (size_t)(c * ins));
        memcpy(bias + k * c, spell_data_of(o, part, 1), sizeof *bias * (size_t)c);
    }
    const char *y = product(o, x, turned(o, weight, 3 * c, ins), ins, 3 * c);
    return spell_apply(o, "Add", spell_floats(o, 1, (const int64_t[1]){3 * c}, bias), y);
}

static void split(writing *o, const char *x, int64_t c, const char *part[3]) {
    const char *const last = spell_integers(o, 1, (const int64_t[1]){2});
    const int64_t sizes[3] = {c, c, c};
    for (int k = 0; k < 3; k++) {
        part[k] = spell_fresh(o);
        if (o->s.split != SPLIT_SLICES) continue;
        const char *first = spell_integers(o, 1, (const int64_t[1]){k * c}),
                   *end = spell_integers(o, 1, (const int64_t[1]){(k + 1) * c});
        onnx_write_node(&o->w, "Slice", hp_arena_printf(o->w.arena, "%s %s %s %s", x, first, end, last),
                        part[k]);
    }
    if (o->s.split != SPLIT_SPLIT) return;
    const char *outs = hp_arena_printf(o->w.arena, "%s %s %s", part[0], part[1], part[2]);
    onnx_write_int(&o->w, spell_node(o, "Split", x, spell_integers(o, 3, sizes), outs), "axis", -1);
}

void spell_gather_heads(writing *o, const char *x, const hp_layer *l, int64_t n, int64_t tokens,
                        const char *part[3]) {
    const int64_t c = spell_channels(o, l->out), heads = l->groups;
    const char *five = spell_reshape(o, x, 5, (const int64_t[5]){n, tokens, 3, heads, c / heads});
    five = spell_transpose(o, five, 5, (const int64_t[5]){2, 0, 3, 1, 4});
    for (int k = 0; k < 3; k++) {
        part[k] = spell_fresh(o);
        onnx_write_int(&o->w, spell_node(o, "Gather", five, spell_scalar(o, k), part[k]), "axis", 0);
    }
}

/* (N, tokens, C), or (tokens, N, C), to (N, heads, tokens, d), or (N heads, tokens, d). */
static const char *cut_heads(writing *o, const char *x, const hp_layer *l) {
    const int64_t c = spell_channels(o, l->out), n = o->g->tensor[l->out].h, heads = l->groups;
    if (o->s.tokens_first) {
        x = spell_reshape(o, x, 3, (const int64_t[3]){n, spell_samples(o) * heads, c / heads});
        return spell_transpose(o, x, 3, (const int64_t[3]){1, 0, 2});
    }
    x = spell_reshape(o, x, 4, (const int64_t[4]){0, 0, heads, c / heads});
    return spell_transpose(o, x, 4, (const int64_t[4]){0, 2, 1, 3});
}

/* (N heads, tokens, d) or (N, heads, tokens, d) to (N, tokens, C). */
static void join_heads(writing *o, const char *x, const hp_layer *l, bool tokens_first) {
    const int64_t c = spell_channels(o, l->out), n = o->g->tensor[l->out].h;
    if (tokens_first) {
        x = spell_transpose(o, x, 3, (const int64_t[3]){1, 0, 2});
        x = spell_reshape(o, x, 3, (const int64_t[3]){n, spell_samples(o), c});
        spell_node(o, "Identity", spell_transpose(o, x, 3, (const int64_t[3]){1, 0, 2}), NULL,
                   spell_value(o, l->out));
        return;
    }
    x = spell_transpose(o, x, 4, (const int64_t[4]){0, 2, 1, 3});
    spell_node(o, "Reshape", x, spell_integers(o, 3, (const int64_t[3]){0, 0, -1}), spell_value(o, l->out));
}

static const char *masked(writing *o, const char *scores, int64_t n) {
    float *low = HP_NEW(o->w.arena, float, n *n);
    unsigned char *truth = HP_NEW(o->w.arena, unsigned char, n *n);
    const int64_t dim[4] = {1, 1, n, n};
    for (int64_t i = 0; i < n * n; i++) {
        low[i] = i % n > i / n ? -INFINITY : 0;
        truth[i] = (i % n > i / n) == (o->s.mask == MASK_WHERE_HIDDEN);
    }
    if (o->s.mask == MASK_ADD) return spell_apply(o, "Add", scores, spell_floats(o, 2, dim + 2, low));
    const char *choice = spell_fresh(o), *y = spell_fresh(o), *least = spell_number(o, -INFINITY);
    const bool hidden = o->s.mask == MASK_WHERE_HIDDEN;
    onnx_write_bytes(&o->w, choice, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, o->s.tokens_first ? 2 : 4,
                     o->s.tokens_first ? dim + 2 : dim, truth, (size_t)(n * n));
    onnx_write_node(
        &o->w, "Where",
        hp_arena_printf(o->w.arena, "%s %s %s", choice, hidden ? least : scores, hidden ? scores : least), y);
    return y;
}

/* The mask: by the attribute, as truth values, or as numbers to add. */
static const char *seen(writing *o, int64_t n) {
    const char *mask = spell_fresh(o);
    float *low = HP_NEW(o->w.arena, float, n *n);
    unsigned char *truth = HP_NEW(o->w.arena, unsigned char, n *n);
    for (int64_t i = 0; i < n * n; i++) {
        truth[i] = i % n <= i / n;
        low[i] = truth[i] ? 0 : -INFINITY;
    }
    if (o->s.mask == MASK_ADD) return spell_floats(o, 2, (const int64_t[2]){n, n}, low);
    onnx_write_bytes(&o->w, mask, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, 2, (const int64_t[2]){n, n}, truth,
                     (size_t)(n * n));
    return mask;
}

/* Attention of opset 23. */
static void write_fused(writing *o, const hp_layer *l) {
    const int64_t n = o->g->tensor[l->out].h;
    const bool flat = o->s.fused == FUSED_FLAT, attribute = o->s.mask == MASK_WHERE_HIDDEN;
    const char *x = spell_value(o, o->g->layer[o->g->tensor[l->in[0]].producer].in[0]), *part[3];
    split(o, spell_joined(o, l, x), spell_channels(o, l->out), part);
    for (int k = 0; k < 3 && !flat; k++) part[k] = cut_heads(o, part[k], l);
    const char *y = flat ? spell_value(o, l->out) : spell_fresh(o),
               *mask = l->attention.causal && !attribute ? seen(o, n) : "";
    Onnx__NodeProto *node = onnx_write_node(
        &o->w, "Attention", hp_arena_printf(o->w.arena, "%s %s %s %s", part[0], part[1], part[2], mask), y);
    if (flat) onnx_write_int(&o->w, node, "q_num_heads", l->groups);
    if (flat) onnx_write_int(&o->w, node, "kv_num_heads", l->groups);
    if (l->attention.causal && attribute) onnx_write_int(&o->w, node, "is_causal", 1);
    if (!flat) join_heads(o, y, l, false);
}

static void write_attention(writing *o, const hp_layer *l) {
    if (l->window.kh > 0) {
        spell_windows(o, l);
        return;
    }
    if (o->s.fused) {
        write_fused(o, l);
        return;
    }
    const int64_t c = spell_channels(o, l->out), n = o->g->tensor[l->out].h;
    const int64_t width = c / l->groups;
    const double root = sqrt((double)width);
    const bool gathers = o->s.split == SPLIT_GATHERS, tokens_first = o->s.tokens_first && !gathers;
    const char *x = spell_value(o, o->g->layer[o->g->tensor[l->in[0]].producer].in[0]), *part[3];
    if (tokens_first) x = spell_transpose(o, x, 3, (const int64_t[3]){1, 0, 2});
    x = spell_joined(o, l, x);
    if (gathers) {
        spell_gather_heads(o, x, l, spell_samples(o), n, part);
    } else {
        split(o, x, c, part);
        for (int k = 0; k < 3; k++) part[k] = cut_heads(o, part[k], l);
    }
    if (o->s.scale_on_q) part[0] = spell_apply(o, "Div", part[0], spell_number(o, root));
    const char *keys = tokens_first ? spell_transpose(o, part[1], 3, (const int64_t[3]){0, 2, 1})
                                    : spell_transpose(o, part[1], 4, (const int64_t[4]){0, 1, 3, 2});
    const char *y = spell_apply(o, "MatMul", part[0], keys);
    if (!o->s.scale_on_q) y = spell_apply(o, "Mul", spell_number(o, 1 / root), y);
    if (l->attention.causal) y = masked(o, y, n);
    const char *shares = spell_fresh(o);
    onnx_write_int(&o->w, spell_node(o, "Softmax", y, NULL, shares), "axis", -1);
    join_heads(o, spell_apply(o, "MatMul", shares, part[2]), l, tokens_first);
}

/* --- the other layers --- */

static const char *mean(writing *o, const char *x) {
    const char *y = spell_fresh(o);
    onnx_write_ints(&o->w, spell_node(o, "ReduceMean", x, NULL, y), "axes", 1, (const int64_t[1]){-1});
    return y;
}

static void write_layernorm(writing *o, const hp_layer *l) {
    const char *x = spell_value(o, l->in[0]), *gamma = vector(o, l, 0), *beta = vector(o, l, 1);
    if (o->s.norm_op) {
        Onnx__NodeProto *n =
            spell_node(o, "LayerNormalization", hp_arena_printf(o->w.arena, "%s %s %s", x, gamma, beta), NULL,
                       spell_value(o, l->out));
        Onnx__AttributeProto *eps =
            onnx_write_attribute(&o->w, n, "epsilon", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
        eps->has_f = 1;
        eps->f = (float)l->eps;
        return;
    }
    const char *centred = spell_apply(o, "Sub", x, mean(o, x)),
               *squared = o->s.scale_on_q ? spell_apply(o, "Mul", centred, centred)
                                          : spell_apply(o, "Pow", centred, spell_number(o, 2)),
               *variance = spell_apply(o, "Add", mean(o, squared), spell_number(o, l->eps));
    const char *normed = spell_apply(o, "Div", centred, spell_apply(o, "Sqrt", variance, NULL));
    spell_node(o, "Add", spell_apply(o, "Mul", normed, gamma), beta, spell_value(o, l->out));
}

static void write_act(writing *o, const hp_layer *l) {
    const char *x = spell_value(o, l->in[0]), *gate;
    if (l->act == HP_ACT_GELU) {
        gate = spell_apply(o, "Erf", spell_apply(o, "Div", x, spell_number(o, sqrt(2.0))), NULL);
    } else {
        const char *cube =
            spell_apply(o, "Mul", spell_number(o, 0.044715), spell_apply(o, "Pow", x, spell_number(o, 3)));
        gate = spell_apply(
            o, "Tanh", spell_apply(o, "Mul", spell_apply(o, "Add", x, cube), spell_number(o, sqrt(2 / M_PI))),
            NULL);
    }
    gate = spell_apply(o, "Add", gate, spell_number(o, 1));
    spell_node(o, "Mul", spell_apply(o, "Mul", x, gate), spell_number(o, 0.5), spell_value(o, l->out));
}

static void write_classtoken(writing *o, const hp_layer *l) {
    const int64_t c = spell_channels(o, l->out);
    const char *token = spell_floats(o, 3, (const int64_t[3]){1, 1, c}, spell_data_of(o, l, 0));
    token = spell_apply(o, "Expand", token, spell_integers(o, 3, (const int64_t[3]){spell_samples(o), 1, c}));
    onnx_write_int(&o->w, spell_node(o, "Concat", token, spell_value(o, l->in[0]), spell_value(o, l->out)),
                   "axis", 1);
}

static void write_crop(writing *o, const hp_layer *l) {
    const char *x = spell_value(o, l->in[0]);
    if (!o->s.slices_a_token) {
        onnx_write_int(&o->w, spell_node(o, "Gather", x, spell_scalar(o, 0), spell_value(o, l->out)), "axis",
                       1);
        return;
    }
    const char *zero = spell_integers(o, 1, (const int64_t[1]){0}),
               *one = spell_integers(o, 1, (const int64_t[1]){1}), *first = spell_fresh(o);
    onnx_write_node(&o->w, "Slice", hp_arena_printf(o->w.arena, "%s %s %s %s", x, zero, one, one), first);
    spell_node(o, "Squeeze", first, one, spell_value(o, l->out));
}

static void write_linear(writing *o, const hp_layer *l) {
    const int64_t dim[2] = {spell_channels(o, l->out), spell_channels(o, l->in[0])};
    const char *inputs = hp_arena_printf(o->w.arena, "%s %s %s", spell_value(o, l->in[0]),
                                         spell_floats(o, 2, dim, spell_data_of(o, l, 0)), vector(o, l, 1));
    onnx_write_int(&o->w, onnx_write_node(&o->w, "Gemm", inputs, spell_value(o, l->out)), "transB", 1);
}

static void write_sum(writing *o, const hp_layer *l) {
    if (l->n_param > 0)
        spell_node(o, "Add", vector(o, l, 0), spell_value(o, l->in[0]), spell_value(o, l->out));
    else
        spell_node(o, "Identity", spell_value(o, l->in[0]), NULL, spell_value(o, l->out));
}

static void write_add(writing *o, const hp_layer *l) {
    spell_node(o, "Add", spell_value(o, l->in[0]), spell_value(o, l->in[1]), spell_value(o, l->out));
}

static void write_position(writing *o, const hp_layer *l) {
    const hp_tensor t = o->g->tensor[l->out];
    spell_node(o, "Add", spell_value(o, l->in[0]),
               spell_floats(o, 3, (const int64_t[3]){1, t.h, t.c}, spell_data_of(o, l, 0)),
               spell_value(o, l->out));
}

static void write_embedding(writing *o, const hp_layer *l) {
    const hp_param *p = &o->g->param[l->param[0]];
    onnx_write_floats(&o->w, "table", 2, (const int64_t[2]){p->dim[0], p->dim[1]}, spell_data_of(o, l, 0));
    spell_node(o, "Gather", "table", "image", spell_value(o, l->out));
}

static void write_input(writing *o, const hp_layer *l) {
    const hp_tensor t = o->g->tensor[l->out];
    const bool ids = hp_graph_reads_ids(o->g);
    const int64_t image[4] = {o->s.batch, 3, t.h, t.w}, tokens[2] = {o->s.batch, t.h};
    onnx_write_input(&o->w, "image", ids ? 2 : 4, ids ? tokens : image);
    if (ids) o->w.graph.input[0]->type->tensor_type->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
}

static void write_pool(writing *o, const hp_layer *l) {
    const char *x = spell_transpose(o, spell_value(o, l->in[0]), 4, (const int64_t[4]){0, 3, 1, 2});
    spell_node(o, "Flatten", spell_apply(o, "GlobalAveragePool", x, NULL), NULL, spell_value(o, l->out));
}

/* --- the network --- */

bool spell_is_map(const writing *o) {
    bool map = false;
    for (int l = 0; l < o->g->n_layer; l++)
        map |= o->g->layer[l].op == HP_ATTENTION && o->g->layer[l].window.kh > 0;
    return map;
}

/* Is the layer one of the three into which attention's product is split? */
static bool is_part(const hp_graph *g, const hp_layer *l) {
    for (int k = 0; k < g->n_layer; k++)
        for (int i = 0; g->layer[k].op == HP_ATTENTION && i < 3; i++)
            if (g->layer[k].in[i] == l->out) return true;
    return false;
}

typedef void layer_writer(writing *o, const hp_layer *l);

onnx_writer tokens_model(hp_arena *a, const hp_graph *g, const float *const *param, tokens_spelling s) {
    static layer_writer *const writers[HP_LAYER_OPS] = {[HP_INPUT] = write_input,
                                                        [HP_CONV] = write_conv,
                                                        [HP_LINEAR] = write_linear,
                                                        [HP_ACT] = write_act,
                                                        [HP_ADD] = write_add,
                                                        [HP_LAYERNORM] = write_layernorm,
                                                        [HP_ATTENTION] = write_attention,
                                                        [HP_EMBEDDING] = write_embedding,
                                                        [HP_POSITION] = write_position,
                                                        [HP_CLASSTOKEN] = write_classtoken,
                                                        [HP_CROP] = write_crop,
                                                        [HP_SUM] = write_sum,
                                                        [HP_MERGE] = spell_merge,
                                                        [HP_ADAPTPOOL] = write_pool};
    writing o = {onnx_writer_start(a, s.fused ? 23 : s.norm_op ? 17 : 13), g, param, s, 0};
    for (int l = 0; l < g->n_layer; l++)
        if (!is_part(g, &g->layer[l])) writers[g->layer[l].op](&o, &g->layer[l]);
    onnx_write_output(&o.w, spell_value(&o, g->layer[g->n_layer - 1].out));
    return o.w;
}
