/* builder_tokens.c - layers of transformers; see builder.h. */
#include "networks/nets/builder_inside.h"

#include "networks/graph/layer.h"

static hp_layer *last_layer(hp_builder *b) {
    return &b->g->layer[b->g->n_layer - 1];
}

int hp_build_project(hp_builder *b, int x, const char *name, int out_c, bool bias) {
    const int in_c = b->g->tensor[x].c;
    const int y = hp_build_append(b, hp_pixel_layer(x), name, out_c);
    hp_build_append_param(b, "weight", HP_PARAM_LINEAR_W, b->linear_init, in_c, (const int[4]){out_c, in_c});
    if (bias)
        hp_build_append_param(b, "bias", HP_PARAM_BIAS, b->linear_bias_init, in_c, (const int[4]){out_c});
    return y;
}

int hp_build_column(hp_builder *b, int x, const char *name, int out_c, bool bias) {
    const int y = hp_build_project(b, x, name, out_c, bias);
    if (b->status == HP_OK) last_layer(b)->tp = HP_TP_COLUMN;
    return y;
}

/* Adds up the summands of a row layer. */
static int append_sum(hp_builder *b, int y, const char *name, int out_c) {
    return hp_build_append(b, (hp_layer){.op = HP_SUM, .n_in = 1, .in = {y}},
                           hp_arena_printf(b->arena, "%s.sum", name), out_c);
}

/* Stores weights as (I, O), so that the weights of some inputs are contiguous; files have (O, I). */
int hp_build_row(hp_builder *b, int x, const char *name, int out_c, bool bias) {
    int y = hp_build_project(b, x, name, out_c, false);
    if (b->status != HP_OK) return 0;
    last_layer(b)->tp = HP_TP_ROW;
    hp_param *w = hp_build_param(b, 0);
    w->stored = (hp_stored){.name = w->name, .n_dim = 2, .dim = {w->dim[0], w->dim[1]}, .turned = true};
    w->dim[0] = w->stored.dim[1];
    w->dim[1] = w->stored.dim[0];
    y = append_sum(b, y, name, out_c);
    if (!bias) return y;
    hp_build_append_param(b, NULL, HP_PARAM_BIAS, b->linear_bias_init, w->fan_in, (const int[4]){out_c});
    if (b->status == HP_OK)
        hp_build_param(b, 1)->name = hp_arena_printf(b->arena, "%s%s.bias", b->scope, name);
    return y;
}

int hp_build_project_tied(hp_builder *b, int x, const char *name, int embedded) {
    if (b->status != HP_OK) return 0;
    const hp_layer *sum = &b->g->layer[b->g->tensor[embedded].producer];
    const int32_t table = b->g->layer[b->g->tensor[sum->in[0]].producer].param[0];
    hp_layer l = hp_pixel_layer(x);
    l.tp = HP_TP_COLUMN;
    l.n_param = 1;
    l.param[0] = table;
    return hp_build_append(b, l, name, b->g->param[table].dim[0]);
}

int hp_build_layernorm(hp_builder *b, int x, const char *name) {
    const int c = b->g->tensor[x].c;
    const int y =
        hp_build_append(b, (hp_layer){.op = HP_LAYERNORM, .n_in = 1, .in = {x}, .eps = b->norm_eps}, name, 0);
    hp_build_append_param(b, "weight", HP_PARAM_BN_GAMMA, HP_INIT_ONE, c, (const int[4]){c});
    hp_build_append_param(b, "bias", HP_PARAM_BN_BETA, HP_INIT_ZERO, c, (const int[4]){c});
    return y;
}

int hp_build_attention(hp_builder *b, int q, int k, int v, const char *name, hp_heads h) {
    const hp_layer l = {.op = HP_ATTENTION,
                        .n_in = 3,
                        .in = {q, k, v},
                        .groups = h.heads,
                        .attention.kv_heads = h.kv_heads ? h.kv_heads : h.heads,
                        .attention.causal = h.causal,
                        .window.kh = h.window_h,
                        .window.kw = h.window_w,
                        .window.pad_h = h.shift_h,
                        .window.pad_w = h.shift_w,
                        .attention.rotary = h.rotary};
    const int y = hp_build_append(b, l, name, 0), places = (2 * h.window_h - 1) * (2 * h.window_w - 1);
    if (h.bias)
        hp_build_append_param(b, "relative_position_bias_table", HP_PARAM_TABLE, HP_INIT_ZERO, places,
                              (const int[4]){h.heads, places});
    return y;
}

int hp_build_embedding(hp_builder *b, int ids, const char *name, int rows, int out_c) {
    const hp_layer l = {.op = HP_EMBEDDING, .n_in = 1, .in = {ids}, .tp = HP_TP_ROW};
    const int y = hp_build_append(b, l, name, out_c);
    hp_build_append_param(b, "weight", HP_PARAM_TABLE, HP_INIT_ZERO, out_c, (const int[4]){rows, out_c});
    return append_sum(b, y, name, out_c);
}

int hp_build_position(hp_builder *b, int x, const char *name, const char *suffix) {
    const hp_tensor t = b->g->tensor[x];
    const int y = hp_build_append(b, (hp_layer){.op = HP_POSITION, .n_in = 1, .in = {x}}, name, 0);
    hp_build_append_param(b, suffix, HP_PARAM_TABLE, HP_INIT_ZERO, t.c, (const int[4]){t.h * t.w, t.c});
    return y;
}

int hp_build_classtoken(hp_builder *b, int x, const char *name) {
    const int c = b->g->tensor[x].c;
    const int y = hp_build_append(b, (hp_layer){.op = HP_CLASSTOKEN, .n_in = 1, .in = {x}}, name, 0);
    hp_build_append_param(b, NULL, HP_PARAM_TOKEN, HP_INIT_ZERO, c, (const int[4]){c});
    return y;
}

int hp_build_crop(hp_builder *b, int x, const char *name, int at_h, int at_w, int h, int w) {
    const hp_layer l = {.op = HP_CROP,
                        .n_in = 1,
                        .in = {x},
                        .window.pad_h = at_h,
                        .window.pad_w = at_w,
                        .out_h = h,
                        .out_w = w};
    return hp_build_append(b, l, name, 0);
}

int hp_build_merge(hp_builder *b, int x, const char *name) {
    return hp_build_append(b, (hp_layer){.op = HP_MERGE, .n_in = 1, .in = {x}}, name, 0);
}

hp_param *hp_build_param(hp_builder *b, int i) {
    if (b->status != HP_OK) return NULL;
    const hp_layer *l = last_layer(b);
    if (l->op == HP_SUM && i == 0) l--; /* the row layer before it */
    return &b->g->param[l->param[l->op == HP_SUM ? 0 : i]];
}

void hp_build_init(hp_builder *b, int i, hp_init init, double scale) {
    hp_param *p = hp_build_param(b, i);
    if (!p) return;
    p->init = init;
    p->init_scale = scale;
}
