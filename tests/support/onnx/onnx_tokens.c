/* onnx_tokens.c - writes transformers as ONNX; see onnx_tokens.h. Tensor t of the graph is the value "tT", (N, tokens, C). */
#include "tests/support/onnx/onnx_tokens.h"

#include <math.h>
#include <stdio.h>

typedef struct writing {
    onnx_writer w;
    const hp_graph *g;
    const float *const *param;
    tokens_spelling s;
    int n; /* names that are made up */
} writing;

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

static const char *value(const writing *o, int32_t tensor) {
    return hp_arena_printf(o->w.arena, "t%d", tensor);
}

static const char *fresh(writing *o) {
    return hp_arena_printf(o->w.arena, "v%d", o->n++);
}

static int64_t samples(const writing *o) {
    return o->s.batch > 0 ? o->s.batch : 1;
}

static const char *floats(writing *o, size_t n_dim, const int64_t *dim, const float *v) {
    const char *name = fresh(o);
    onnx_write_floats(&o->w, name, n_dim, dim, v);
    return name;
}

static const char *number(writing *o, double v) {
    const float f = (float)v;
    return floats(o, 0, NULL, &f);
}

static const char *integers(writing *o, size_t n, const int64_t *v) {
    const char *name = fresh(o);
    const int64_t dim = (int64_t)n;
    onnx_write_integers(&o->w, name, 1, &dim, v);
    return name;
}

static const char *scalar(writing *o, int64_t v) {
    const char *name = fresh(o);
    onnx_write_integers(&o->w, name, 0, NULL, &v);
    return name;
}

static Onnx__NodeProto *node(writing *o, const char *op, const char *a, const char *b, const char *y) {
    return onnx_write_node(&o->w, op, b ? hp_arena_printf(o->w.arena, "%s %s", a, b) : a, y);
}

static const char *apply(writing *o, const char *op, const char *a, const char *b) {
    const char *y = fresh(o);
    node(o, op, a, b, y);
    return y;
}

static const char *reshape(writing *o, const char *x, size_t n, const int64_t *dim) {
    return apply(o, "Reshape", x, integers(o, n, dim));
}

static const char *transpose(writing *o, const char *x, size_t n, const int64_t *perm) {
    const char *y = fresh(o);
    onnx_write_ints(&o->w, node(o, "Transpose", x, NULL, y), "perm", n, perm);
    return y;
}

static const float *data_of(const writing *o, const hp_layer *l, int i) {
    return o->param[l->param[i]];
}

/* (O, I) as (I, O). */
static const float *turned(const writing *o, const float *v, int64_t outs, int64_t ins) {
    float *f = HP_NEW(o->w.arena, float, outs *ins);
    for (int64_t i = 0; i < outs * ins; i++) f[i % ins * outs + i / ins] = v[i];
    return f;
}

static int64_t channels(const writing *o, int32_t tensor) {
    return o->g->tensor[tensor].c;
}

static const char *vector(writing *o, const hp_layer *l, int i) {
    const int64_t c = channels(o, l->out);
    return floats(o, 1, &c, data_of(o, l, i));
}

/* --- matrix products --- */

static const char *product(writing *o, const char *x, const float *weight, int64_t ins, int64_t outs) {
    return apply(o, "MatMul", x, floats(o, 2, (const int64_t[2]){ins, outs}, weight));
}

static void write_tied(writing *o, const hp_layer *l) {
    const int64_t outs = channels(o, l->out), ins = channels(o, l->in[0]);
    const char *weight =
        o->s.folded_head ? floats(o, 2, (const int64_t[2]){ins, outs}, turned(o, data_of(o, l, 0), outs, ins))
                         : transpose(o, "table", 2, (const int64_t[2]){1, 0});
    node(o, "MatMul", value(o, l->in[0]), weight, value(o, l->out));
}

static void write_patches(writing *o, const hp_layer *l) {
    const hp_tensor t = o->g->tensor[l->out];
    const int64_t k[2] = {l->kh, l->kw}, dim[4] = {t.c, 3, l->kh, l->kw};
    const char *map = fresh(o),
               *inputs = hp_arena_printf(o->w.arena, "image %s %s", floats(o, 4, dim, data_of(o, l, 0)),
                                         vector(o, l, 1));
    onnx_write_ints(&o->w, onnx_write_node(&o->w, "Conv", inputs, map), "strides", 2, k);
    const char *flat = reshape(o, map, 3, (const int64_t[3]){samples(o), t.c, -1});
    node(o, "Identity", transpose(o, flat, 3, (const int64_t[3]){0, 2, 1}), NULL, value(o, l->out));
}

static void write_pixels(writing *o, const hp_layer *l) {
    const int64_t outs = channels(o, l->out), ins = channels(o, l->in[0]);
    const float *weight = data_of(o, l, 0);
    if (l->tp != (int32_t)HP_TP_ROW) weight = turned(o, weight, outs, ins);
    const char *y = product(o, value(o, l->in[0]), weight, ins, outs);
    node(o, l->n_param > 1 ? "Add" : "Identity", y, l->n_param > 1 ? vector(o, l, 1) : NULL,
         value(o, l->out));
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
static const char *joined(writing *o, const hp_layer *l, const char *x) {
    const int64_t c = channels(o, l->out),
                  ins = channels(o, o->g->layer[o->g->tensor[l->in[0]].producer].in[0]);
    float *weight = HP_NEW(o->w.arena, float, 3 * c * ins), *bias = HP_NEW(o->w.arena, float, 3 * c);
    for (int k = 0; k < 3; k++) {
        const hp_layer *part = &o->g->layer[o->g->tensor[l->in[k]].producer];
        memcpy(weight + k * c * ins, data_of(o, part, 0), sizeof *weight * (size_t)(c * ins));
        memcpy(bias + k * c, data_of(o, part, 1), sizeof *bias * (size_t)c);
    }
    const char *y = product(o, x, turned(o, weight, 3 * c, ins), ins, 3 * c);
    return apply(o, "Add", floats(o, 1, (const int64_t[1]){3 * c}, bias), y);
}

static void split(writing *o, const char *x, int64_t c, const char *part[3]) {
    const char *const last = integers(o, 1, (const int64_t[1]){2});
    const int64_t sizes[3] = {c, c, c};
    for (int k = 0; k < 3; k++) {
        part[k] = fresh(o);
        if (o->s.split != SPLIT_SLICES) continue;
        const char *first = integers(o, 1, (const int64_t[1]){k * c}),
                   *end = integers(o, 1, (const int64_t[1]){(k + 1) * c});
        onnx_write_node(&o->w, "Slice", hp_arena_printf(o->w.arena, "%s %s %s %s", x, first, end, last),
                        part[k]);
    }
    if (o->s.split != SPLIT_SPLIT) return;
    const char *outs = hp_arena_printf(o->w.arena, "%s %s %s", part[0], part[1], part[2]);
    onnx_write_int(&o->w, node(o, "Split", x, integers(o, 3, sizes), outs), "axis", -1);
}

/* (N, tokens, 3C) as three of (N, heads, tokens, d), by (3, N, heads, tokens, d). */
static void gather_heads(writing *o, const char *x, const hp_layer *l, const char *part[3]) {
    const int64_t c = channels(o, l->out), n = o->g->tensor[l->out].h, heads = l->groups;
    const char *five = reshape(o, x, 5, (const int64_t[5]){samples(o), n, 3, heads, c / heads});
    five = transpose(o, five, 5, (const int64_t[5]){2, 0, 3, 1, 4});
    for (int k = 0; k < 3; k++) {
        part[k] = fresh(o);
        onnx_write_int(&o->w, node(o, "Gather", five, scalar(o, k), part[k]), "axis", 0);
    }
}

/* (N, tokens, C), or (tokens, N, C), as (N, heads, tokens, d), or (N heads, tokens, d). */
static const char *cut_heads(writing *o, const char *x, const hp_layer *l) {
    const int64_t c = channels(o, l->out), n = o->g->tensor[l->out].h, heads = l->groups;
    if (o->s.tokens_first) {
        x = reshape(o, x, 3, (const int64_t[3]){n, samples(o) * heads, c / heads});
        return transpose(o, x, 3, (const int64_t[3]){1, 0, 2});
    }
    x = reshape(o, x, 4, (const int64_t[4]){0, 0, heads, c / heads});
    return transpose(o, x, 4, (const int64_t[4]){0, 2, 1, 3});
}

/* (N heads, tokens, d) or (N, heads, tokens, d) as (N, tokens, C). */
static void join_heads(writing *o, const char *x, const hp_layer *l, bool tokens_first) {
    const int64_t c = channels(o, l->out), n = o->g->tensor[l->out].h;
    if (tokens_first) {
        x = transpose(o, x, 3, (const int64_t[3]){1, 0, 2});
        x = reshape(o, x, 3, (const int64_t[3]){n, samples(o), c});
        node(o, "Identity", transpose(o, x, 3, (const int64_t[3]){1, 0, 2}), NULL, value(o, l->out));
        return;
    }
    x = transpose(o, x, 4, (const int64_t[4]){0, 2, 1, 3});
    node(o, "Reshape", x, integers(o, 3, (const int64_t[3]){0, 0, -1}), value(o, l->out));
}

static const char *masked(writing *o, const char *scores, int64_t n) {
    float *low = HP_NEW(o->w.arena, float, n *n);
    unsigned char *truth = HP_NEW(o->w.arena, unsigned char, n *n);
    const int64_t dim[4] = {1, 1, n, n};
    for (int64_t i = 0; i < n * n; i++) {
        low[i] = i % n > i / n ? -INFINITY : 0;
        truth[i] = (i % n > i / n) == (o->s.mask == MASK_WHERE_HIDDEN);
    }
    if (o->s.mask == MASK_ADD) return apply(o, "Add", scores, floats(o, 2, dim + 2, low));
    const char *choice = fresh(o), *y = fresh(o), *least = number(o, -INFINITY);
    const bool hidden = o->s.mask == MASK_WHERE_HIDDEN;
    onnx_write_bytes(&o->w, choice, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, o->s.tokens_first ? 2 : 4,
                     o->s.tokens_first ? dim + 2 : dim, truth, (size_t)(n * n));
    onnx_write_node(
        &o->w, "Where",
        hp_arena_printf(o->w.arena, "%s %s %s", choice, hidden ? least : scores, hidden ? scores : least), y);
    return y;
}

static void write_attention(writing *o, const hp_layer *l) {
    const int64_t c = channels(o, l->out), n = o->g->tensor[l->out].h;
    const int64_t width = c / l->groups;
    const double root = sqrt((double)width);
    const bool gathers = o->s.split == SPLIT_GATHERS, tokens_first = o->s.tokens_first && !gathers;
    const char *x = value(o, o->g->layer[o->g->tensor[l->in[0]].producer].in[0]), *part[3];
    if (tokens_first) x = transpose(o, x, 3, (const int64_t[3]){1, 0, 2});
    x = joined(o, l, x);
    if (gathers) {
        gather_heads(o, x, l, part);
    } else {
        split(o, x, c, part);
        for (int k = 0; k < 3; k++) part[k] = cut_heads(o, part[k], l);
    }
    if (o->s.scale_on_q) part[0] = apply(o, "Div", part[0], number(o, root));
    const char *keys = tokens_first ? transpose(o, part[1], 3, (const int64_t[3]){0, 2, 1})
                                    : transpose(o, part[1], 4, (const int64_t[4]){0, 1, 3, 2});
    const char *y = apply(o, "MatMul", part[0], keys);
    if (!o->s.scale_on_q) y = apply(o, "Mul", number(o, 1 / root), y);
    if (l->causal) y = masked(o, y, n);
    const char *shares = fresh(o);
    onnx_write_int(&o->w, node(o, "Softmax", y, NULL, shares), "axis", -1);
    join_heads(o, apply(o, "MatMul", shares, part[2]), l, tokens_first);
}

/* --- the other layers --- */

static const char *mean(writing *o, const char *x) {
    const char *y = fresh(o);
    onnx_write_ints(&o->w, node(o, "ReduceMean", x, NULL, y), "axes", 1, (const int64_t[1]){-1});
    return y;
}

static void write_layernorm(writing *o, const hp_layer *l) {
    const char *x = value(o, l->in[0]), *gamma = vector(o, l, 0), *beta = vector(o, l, 1);
    if (o->s.norm_op) {
        Onnx__NodeProto *n =
            node(o, "LayerNormalization", hp_arena_printf(o->w.arena, "%s %s %s", x, gamma, beta), NULL,
                 value(o, l->out));
        Onnx__AttributeProto *eps =
            onnx_write_attribute(&o->w, n, "epsilon", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
        eps->has_f = 1;
        eps->f = (float)l->eps;
        return;
    }
    const char *centred = apply(o, "Sub", x, mean(o, x)),
               *squared = o->s.scale_on_q ? apply(o, "Mul", centred, centred)
                                          : apply(o, "Pow", centred, number(o, 2)),
               *variance = apply(o, "Add", mean(o, squared), number(o, l->eps));
    const char *normed = apply(o, "Div", centred, apply(o, "Sqrt", variance, NULL));
    node(o, "Add", apply(o, "Mul", normed, gamma), beta, value(o, l->out));
}

static void write_act(writing *o, const hp_layer *l) {
    const char *x = value(o, l->in[0]), *gate;
    if (l->act == HP_ACT_GELU) {
        gate = apply(o, "Erf", apply(o, "Div", x, number(o, sqrt(2.0))), NULL);
    } else {
        const char *cube = apply(o, "Mul", number(o, 0.044715), apply(o, "Pow", x, number(o, 3)));
        gate = apply(o, "Tanh", apply(o, "Mul", apply(o, "Add", x, cube), number(o, sqrt(2 / M_PI))), NULL);
    }
    gate = apply(o, "Add", gate, number(o, 1));
    node(o, "Mul", apply(o, "Mul", x, gate), number(o, 0.5), value(o, l->out));
}

static void write_classtoken(writing *o, const hp_layer *l) {
    const int64_t c = channels(o, l->out);
    const char *token = floats(o, 3, (const int64_t[3]){1, 1, c}, data_of(o, l, 0));
    token = apply(o, "Expand", token, integers(o, 3, (const int64_t[3]){samples(o), 1, c}));
    onnx_write_int(&o->w, node(o, "Concat", token, value(o, l->in[0]), value(o, l->out)), "axis", 1);
}

static void write_crop(writing *o, const hp_layer *l) {
    const char *x = value(o, l->in[0]);
    if (!o->s.slices_a_token) {
        onnx_write_int(&o->w, node(o, "Gather", x, scalar(o, 0), value(o, l->out)), "axis", 1);
        return;
    }
    const char *zero = integers(o, 1, (const int64_t[1]){0}), *one = integers(o, 1, (const int64_t[1]){1}),
               *first = fresh(o);
    onnx_write_node(&o->w, "Slice", hp_arena_printf(o->w.arena, "%s %s %s %s", x, zero, one, one), first);
    node(o, "Squeeze", first, one, value(o, l->out));
}

static void write_linear(writing *o, const hp_layer *l) {
    const int64_t dim[2] = {channels(o, l->out), channels(o, l->in[0])};
    const char *inputs = hp_arena_printf(o->w.arena, "%s %s %s", value(o, l->in[0]),
                                         floats(o, 2, dim, data_of(o, l, 0)), vector(o, l, 1));
    onnx_write_int(&o->w, onnx_write_node(&o->w, "Gemm", inputs, value(o, l->out)), "transB", 1);
}

static void write_sum(writing *o, const hp_layer *l) {
    node(o, "Add", vector(o, l, 0), value(o, l->in[0]), value(o, l->out));
}

static void write_add(writing *o, const hp_layer *l) {
    node(o, "Add", value(o, l->in[0]), value(o, l->in[1]), value(o, l->out));
}

static void write_position(writing *o, const hp_layer *l) {
    const hp_tensor t = o->g->tensor[l->out];
    node(o, "Add", value(o, l->in[0]), floats(o, 3, (const int64_t[3]){1, t.h, t.c}, data_of(o, l, 0)),
         value(o, l->out));
}

static void write_embedding(writing *o, const hp_layer *l) {
    const hp_param *p = &o->g->param[l->param[0]];
    onnx_write_floats(&o->w, "table", 2, (const int64_t[2]){p->dim[0], p->dim[1]}, data_of(o, l, 0));
    node(o, "Gather", "table", "image", value(o, l->out));
}

static void write_input(writing *o, const hp_layer *l) {
    const hp_tensor t = o->g->tensor[l->out];
    const bool ids = hp_graph_reads_ids(o->g);
    const int64_t image[4] = {o->s.batch, 3, t.h, t.w}, tokens[2] = {o->s.batch, t.h};
    onnx_write_input(&o->w, "image", ids ? 2 : 4, ids ? tokens : image);
    if (ids) o->w.graph.input[0]->type->tensor_type->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
}

/* --- the network --- */

/* Is the layer one of the three that attention's product is split into? */
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
                                                        [HP_SUM] = write_sum};
    writing o = {onnx_writer_start(a, s.norm_op ? 17 : 13), g, param, s, 0};
    for (int l = 0; l < g->n_layer; l++)
        if (!is_part(g, &g->layer[l])) writers[g->layer[l].op](&o, &g->layer[l]);
    onnx_write_output(&o.w, value(&o, g->layer[g->n_layer - 1].out));
    return o.w;
}
