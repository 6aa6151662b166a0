/* builder.c - appends layers, tensors and parameters to a growing graph. */
#include "networks/nets/builder_inside.h"

#include "networks/graph/shape.h"
#include "networks/nets/net_act.h"

#include <stdarg.h>

/* torch.nn.BatchNorm2d's defaults */
static const double torch_eps = 1e-5, torch_momentum = 0.1;

static int or_one(int value) {
    return value ? value : 1;
}

int hp_build_append(hp_builder *b, hp_layer l, const char *name, int out_c) {
    hp_graph *g = b->g;
    if (b->status != HP_OK) return 0;
    l.name = hp_arena_printf(b->arena, "%s%s", b->scope, name);
    l.unit = b->unit;
    hp_tensor t = {0};
    b->status = hp_layer_shape(g, &l, out_c, &t, b->err);
    if (b->status != HP_OK) return 0;
    HP_ROOM(b->arena, g->tensor, g->n_tensor, b->cap_tensor);
    HP_ROOM(b->arena, g->layer, g->n_layer, b->cap_layer);
    t.producer = g->n_layer;
    l.out = g->n_tensor;
    g->tensor[g->n_tensor++] = t;
    g->layer[g->n_layer++] = l;
    return l.out;
}

void hp_build_append_param(hp_builder *b, const char *suffix, hp_param_kind kind, hp_init init,
                           int64_t fan_in, const int dim[4]) {
    hp_graph *g = b->g;
    if (b->status != HP_OK) return;
    hp_layer *l = &g->layer[g->n_layer - 1];
    HP_ASSERT(l->n_param < HP_MAX_LAYER_PARAMS);
    HP_ROOM(b->arena, g->param, g->n_param, b->cap_param);
    l->param[l->n_param++] = g->n_param;
    hp_param *p = &g->param[g->n_param++];
    *p = (hp_param){.name = suffix ? hp_arena_printf(b->arena, "%s.%s", l->name, suffix) : l->name,
                    .kind = kind,
                    .init = init,
                    .layer = g->n_layer - 1,
                    .count = 1,
                    .fan_in = fan_in};
    while (p->n_dim < 4 && dim[p->n_dim]) {
        p->count *= p->dim[p->n_dim] = dim[p->n_dim];
        p->n_dim++;
    }
}

/* Adds a parameter of shape (c). */
static void append_vector(hp_builder *b, const char *suffix, hp_param_kind kind, hp_init init, int64_t fan_in,
                          int c) {
    hp_build_append_param(b, suffix, kind, init, fan_in, (const int[4]){c});
}

hp_builder hp_builder_start(hp_arena *arena, const char *net, int image_h, int image_w, int classes,
                            hp_error *err) {
    hp_builder b = {.arena = arena,
                    .g = HP_NEW(arena, hp_graph, 1),
                    .err = err,
                    .scope = "",
                    .conv_init = HP_INIT_TORCH_DEFAULT,
                    .conv_bias_init = HP_INIT_TORCH_DEFAULT,
                    .linear_init = HP_INIT_TORCH_DEFAULT,
                    .linear_bias_init = HP_INIT_TORCH_DEFAULT,
                    .norm_eps = torch_eps,
                    .bn_eps = torch_eps,
                    .bn_momentum = torch_momentum};
    b.g->net = hp_arena_strdup(arena, net);
    b.g->image_h = image_h;
    b.g->image_w = image_w;
    b.g->image_c = 3;
    b.g->classes = classes;
    hp_build_append(&b, (hp_layer){.op = HP_INPUT}, "image", 0);
    return b;
}

hp_status hp_builder_finish(hp_builder *b, hp_graph **graph) {
    if (b->status != HP_OK) return b->status;
    hp_graph_index_units(b->arena, b->g);
    *graph = b->g;
    return HP_OK;
}

void hp_build_unit(hp_builder *b) {
    if (b->status == HP_OK) b->unit = b->g->layer[b->g->n_layer - 1].unit + 1;
}

void hp_build_scope(hp_builder *b, const char *fmt, ...) {
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    HP_ASSERT(n >= 0 && n < (int)sizeof text);
    b->scope = hp_arena_strdup(b->arena, text);
}

static hp_layer window_layer(hp_layer_op op, int x, hp_window w) {
    const int stride = or_one(w.stride);
    return (hp_layer){.op = op,
                      .n_in = 1,
                      .in = {x},
                      .window.kh = w.k,
                      .window.kw = w.k,
                      .window.stride_h = stride,
                      .window.stride_w = stride,
                      .window.pad_h = w.pad,
                      .window.pad_w = w.pad,
                      .window.dil_h = 1,
                      .window.dil_w = 1,
                      .groups = or_one(w.groups)};
}

static int append_conv(hp_builder *b, hp_layer l, const char *name, int out_c, bool bias) {
    const int y = hp_build_append(b, l, name, out_c), in_c = b->g->tensor[l.in[0]].c / l.groups;
    const int64_t fan_in = (int64_t)in_c * l.window.kh * l.window.kw;
    hp_build_append_param(b, "weight", HP_PARAM_CONV_W, b->conv_init, fan_in,
                          (const int[4]){out_c, in_c, l.window.kh, l.window.kw});
    if (bias) append_vector(b, "bias", HP_PARAM_BIAS, b->conv_bias_init, fan_in, out_c);
    return y;
}

int hp_build_conv(hp_builder *b, int x, const char *name, int out_c, hp_window w) {
    return append_conv(b, window_layer(HP_CONV, x, w), name, out_c, w.bias);
}

int hp_build_conv_rect(hp_builder *b, int x, const char *name, int out_c, int kh, int kw) {
    hp_layer l = window_layer(HP_CONV, x, (hp_window){.k = kh, .pad = (kh - 1) / 2});
    l.window.kw = kw;
    l.window.pad_w = (kw - 1) / 2;
    return append_conv(b, l, name, out_c, false);
}

/* torch takes a weight's fan-in from its second dimension, here the outputs of a group. */
static int append_convt(hp_builder *b, hp_layer l, const char *name, int out_c, bool bias) {
    const int y = hp_build_append(b, l, name, out_c), in_c = b->g->tensor[l.in[0]].c, outs = out_c / l.groups;
    const int64_t fan_in = (int64_t)outs * l.window.kh * l.window.kw;
    hp_build_append_param(b, "weight", HP_PARAM_CONV_W, b->conv_init, fan_in,
                          (const int[4]){in_c, outs, l.window.kh, l.window.kw});
    if (bias) append_vector(b, "bias", HP_PARAM_BIAS, b->conv_bias_init, fan_in, out_c);
    return y;
}

int hp_build_convt(hp_builder *b, int x, const char *name, int out_c, hp_window w) {
    return append_convt(b, window_layer(HP_CONVT, x, w), name, out_c, w.bias);
}

int hp_build_linear(hp_builder *b, int x, const char *name, int out_c) {
    const int y = hp_build_append(b, (hp_layer){.op = HP_LINEAR, .n_in = 1, .in = {x}}, name, out_c);
    const int64_t fan_in = hp_tensor_elems(b->g, x);
    hp_build_append_param(b, "weight", HP_PARAM_LINEAR_W, b->linear_init, fan_in,
                          (const int[4]){out_c, (int)fan_in});
    append_vector(b, "bias", HP_PARAM_BIAS, b->linear_bias_init, fan_in, out_c);
    return y;
}

int hp_build_bn(hp_builder *b, int x, const char *name) {
    const hp_layer l = {.op = HP_BN, .n_in = 1, .in = {x}, .eps = b->bn_eps, .momentum = b->bn_momentum};
    const int y = hp_build_append(b, l, name, 0), c = b->g->tensor[x].c;
    append_vector(b, "weight", HP_PARAM_BN_GAMMA, HP_INIT_ONE, c, c);
    append_vector(b, "bias", HP_PARAM_BN_BETA, HP_INIT_ZERO, c, c);
    append_vector(b, "running_mean", HP_PARAM_BN_MEAN, HP_INIT_ZERO, c, c);
    append_vector(b, "running_var", HP_PARAM_BN_VAR, HP_INIT_ONE, c, c);
    return y;
}

int hp_build_act(hp_builder *b, int x, const char *name, hp_act act) {
    return hp_build_append(b, (hp_layer){.op = HP_ACT, .act = act, .n_in = 1, .in = {x}}, name, 0);
}

int hp_build_act_with(hp_builder *b, int x, const char *name, hp_act act, double act_a, double act_b) {
    const hp_layer l = {
        .op = HP_ACT, .act = act, .act_arg.a = act_a, .act_arg.b = act_b, .n_in = 1, .in = {x}};
    return hp_build_append(b, l, name, 0);
}

int hp_build_add(hp_builder *b, int x, int y, const char *name) {
    return hp_build_append(b, (hp_layer){.op = HP_ADD, .n_in = 2, .in = {x, y}}, name, 0);
}

int hp_build_mul(hp_builder *b, int x, int y, const char *name) {
    return hp_build_append(b, (hp_layer){.op = HP_MUL, .n_in = 2, .in = {x, y}}, name, 0);
}

int hp_build_resize(hp_builder *b, int x, const char *name, int h, int w, hp_interpolation interpolation,
                    hp_corners corners) {
    const hp_layer l = {.op = HP_RESIZE,
                        .n_in = 1,
                        .in = {x},
                        .out_h = h,
                        .out_w = w,
                        .resize.interpolation = interpolation,
                        .resize.corners = corners};
    return hp_build_append(b, l, name, 0);
}

int hp_build_concat(hp_builder *b, int x, int y, const char *name) {
    return hp_build_concat_all(b, (const int[2]){x, y}, 2, name);
}

int hp_build_concat_all(hp_builder *b, const int *x, int n, const char *name) {
    hp_layer l = {.op = HP_CONCAT, .n_in = n};
    HP_ASSERT(n <= HP_MAX_IN);
    for (int i = 0; i < n; i++) l.in[i] = x[i];
    return hp_build_append(b, l, name, 0);
}

int hp_build_pad(hp_builder *b, int x, const char *name, int h, int w) {
    const hp_tensor *t = &b->g->tensor[x];
    if (t->h == h && t->w == w) return x;
    const hp_layer l = {.op = HP_PAD,
                        .n_in = 1,
                        .in = {x},
                        .window.pad_h = (h - t->h) / 2,
                        .window.pad_w = (w - t->w) / 2,
                        .out_h = h,
                        .out_w = w};
    return hp_build_append(b, l, name, 0);
}

int hp_build_maxpool(hp_builder *b, int x, const char *name, hp_window w) {
    return hp_build_append(b, window_layer(HP_MAXPOOL, x, w), name, 0);
}

int hp_build_maxpool_ceil(hp_builder *b, int x, const char *name, hp_window w) {
    hp_layer l = window_layer(HP_MAXPOOL, x, w);
    l.window.ceil_mode = true;
    return hp_build_append(b, l, name, 0);
}

int hp_build_avgpool(hp_builder *b, int x, const char *name, hp_window w) {
    hp_layer l = window_layer(HP_AVGPOOL, x, w);
    l.window.count_include_pad = true; /* nn.AvgPool2d's default */
    return hp_build_append(b, l, name, 0);
}

int hp_build_avgpool_inside(hp_builder *b, int x, const char *name, hp_window w) {
    return hp_build_append(b, window_layer(HP_AVGPOOL, x, w), name, 0);
}

int hp_build_adaptpool(hp_builder *b, int x, const char *name, int out_h, int out_w) {
    return hp_build_append(
        b, (hp_layer){.op = HP_ADAPTPOOL, .n_in = 1, .in = {x}, .out_h = out_h, .out_w = out_w}, name, 0);
}

int hp_build_dropout(hp_builder *b, int x, const char *name, double p) {
    return hp_build_append(b, (hp_layer){.op = HP_DROPOUT, .n_in = 1, .in = {x}, .p = p}, name, 0);
}
