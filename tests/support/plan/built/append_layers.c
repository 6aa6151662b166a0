/* append_layers.c - see append_layers.h. */
#include "tests/support/plan/built/append_layers.h"

#include "networks/nets/builder_inside.h"

static int or_one(int value) {
    return value ? value : 1;
}

static void append_vector(hp_builder *b, const char *suffix, hp_param_kind kind, hp_init init, int64_t fan_in,
                          int c) {
    hp_build_append_param(b, suffix, kind, init, fan_in, (const int[4]){c});
}

static hp_layer windows_as(const hp_layer *like, int x) {
    hp_layer l = {.op = like->op, .n_in = 1, .in = {x}};
    l.window.kh = like->window.kh;
    l.window.kw = like->window.kw;
    l.window.stride_h = or_one(like->window.stride_h);
    l.window.stride_w = or_one(like->window.stride_w);
    l.window.pad_h = like->window.pad_h;
    l.window.pad_w = like->window.pad_w;
    l.window.dil_h = or_one(like->window.dil_h);
    l.window.dil_w = or_one(like->window.dil_w);
    l.groups = or_one(like->groups);
    l.out_h = like->out_h;
    l.out_w = like->out_w;
    l.window.ceil_mode = like->window.ceil_mode;
    l.window.count_include_pad = like->window.count_include_pad;
    return l;
}

/* Weights (O, I/groups, kh, kw), of a transposed layer (I, O/groups, kh, kw); torch's fan-in is of the second
 * dimension. */
static int append_windows(hp_builder *b, hp_layer l, const char *name, int out_c, bool bias) {
    const int y = hp_build_append(b, l, name, out_c), in_c = b->g->tensor[l.in[0]].c;
    const bool up = l.op == HP_CONVT;
    const int second = (up ? out_c : in_c) / l.groups;
    const int64_t fan_in = (int64_t)second * l.window.kh * l.window.kw;
    hp_build_append_param(b, "weight", HP_PARAM_CONV_W, b->conv_init, fan_in,
                          (const int[4]){up ? in_c : out_c, second, l.window.kh, l.window.kw});
    if (bias) append_vector(b, "bias", HP_PARAM_BIAS, b->conv_bias_init, fan_in, out_c);
    return y;
}

int append_conv_as(hp_builder *b, int x, const char *name, int out_c, const hp_layer *like) {
    const hp_layer l = windows_as(like, x);
    const bool bias = like->n_param == 2;
    HP_ASSERT(l.op == HP_CONV || l.op == HP_CONVT);
    return append_windows(b, l, name, out_c, bias);
}

int append_pool_as(hp_builder *b, int x, const char *name, const hp_layer *like) {
    HP_ASSERT(like->op == HP_MAXPOOL || like->op == HP_AVGPOOL);
    return hp_build_append(b, windows_as(like, x), name, 0);
}

int append_prelu(hp_builder *b, int x, const char *name, bool one) {
    const int y =
        hp_build_append(b, (hp_layer){.op = HP_PRELU, .n_in = 1, .in = {x}, .groups = one}, name, 0);
    append_vector(b, "weight", HP_PARAM_FACTOR, HP_INIT_CONSTANT, 1, one ? 1 : b->g->tensor[x].c);
    b->g->param[b->g->n_param - 1].init_scale = 0.25;
    return y;
}

int append_scale(hp_builder *b, int x, const char *name, bool bias) {
    const int y = hp_build_append(b, (hp_layer){.op = HP_SCALE, .n_in = 1, .in = {x}}, name, 0),
              c = b->g->tensor[x].c;
    append_vector(b, "weight", HP_PARAM_FACTOR, HP_INIT_ONE, c, c);
    if (bias) append_vector(b, "bias", HP_PARAM_BIAS, HP_INIT_ZERO, c, c);
    return y;
}

int append_softmax(hp_builder *b, int x, const char *name) {
    return hp_build_append(b, (hp_layer){.op = HP_SOFTMAX, .n_in = 1, .in = {x}}, name, 0);
}

int append_groupnorm(hp_builder *b, int x, const char *name, int groups) {
    const int c = b->g->tensor[x].c;
    const hp_layer l = {.op = HP_GROUPNORM, .n_in = 1, .in = {x}, .groups = groups, .eps = b->norm_eps};
    const int y = hp_build_append(b, l, name, 0);
    hp_build_append_param(b, "weight", HP_PARAM_BN_GAMMA, HP_INIT_ONE, c, (const int[4]){c});
    hp_build_append_param(b, "bias", HP_PARAM_BN_BETA, HP_INIT_ZERO, c, (const int[4]){c});
    return y;
}

int append_reduce(hp_builder *b, int x, const char *name, hp_channel_reduction reduction) {
    return hp_build_append(
        b, (hp_layer){.op = HP_REDUCE, .n_in = 1, .in = {x}, .reduction = (int32_t)reduction}, name, 0);
}

int append_rmsnorm(hp_builder *b, int x, const char *name) {
    const int c = b->g->tensor[x].c;
    const int y =
        hp_build_append(b, (hp_layer){.op = HP_RMSNORM, .n_in = 1, .in = {x}, .eps = b->norm_eps}, name, 0);
    hp_build_append_param(b, "weight", HP_PARAM_BN_GAMMA, HP_INIT_ONE, c, (const int[4]){c});
    return y;
}
