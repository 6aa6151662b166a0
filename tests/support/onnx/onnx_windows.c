/* onnx_windows.c - writes attention in shifted windows and merged pixels, as
 * torchvision's Swin is exported. */
#include "networks/graph/fuse.h"
#include "networks/nets/net_tokens.h"
#include "tests/support/onnx/onnx_spell.h"

#include <math.h>

/* x[first:end:step] along an axis. */
static const char *slice(writing *o, const char *x, int axis, int64_t first, int64_t end, int64_t step) {
    const char *y = spell_fresh(o);
    const char *inputs = hp_arena_printf(
        o->w.arena, "%s %s %s %s %s", x, spell_integers(o, 1, &first), spell_integers(o, 1, &end),
        spell_integers(o, 1, (const int64_t[1]){axis}), spell_integers(o, 1, &step));
    onnx_write_node(&o->w, "Slice", inputs, y);
    return y;
}

/* torch.roll by -shift. */
static const char *rolled(writing *o, const char *x, int axis, int64_t shift) {
    if (shift == 0) return x;
    const char *y = spell_fresh(o), *end = slice(o, x, axis, shift, INT64_MAX, 1);
    onnx_write_int(&o->w, spell_node(o, "Concat", end, slice(o, x, axis, 0, shift, 1), y), "axis", axis);
    return y;
}

/* Swaps the axes of windows with those inside of them, either way. */
static const char *swapped(writing *o, const char *x) {
    return spell_transpose(o, x, 6, (const int64_t[6]){0, 1, 3, 2, 4, 5});
}

/* (heads, L, L) from the table by relative position. */
static const char *bias(writing *o, const hp_layer *l) {
    const int64_t tokens = (int64_t)l->window.kh * l->window.kw, wide = 2 * l->window.kw - 1,
                  places = (2 * l->window.kh - 1) * wide;
    const float *table = spell_data_of(o, l, 0);
    float *f = HP_NEW(o->w.arena, float, l->groups *tokens *tokens);
    for (int64_t e = 0; e < l->groups * tokens * tokens; e++) {
        const int64_t i = e / tokens % tokens, j = e % tokens, dy = i / l->window.kw - j / l->window.kw,
                      dx = i % l->window.kw - j % l->window.kw;
        f[e] = table[e / tokens / tokens * places + (dy + l->window.kh - 1) * wide + dx + l->window.kw - 1];
    }
    return spell_floats(o, 4, (const int64_t[4]){1, l->groups, tokens, tokens}, f);
}

/* Region of the map that a row or column of the rolled map belongs to; -1: it came from the other end. */
static int region(int64_t at, int64_t size, int64_t shift) {
    return at >= size - shift ? -1 : 0;
}

/* (1, windows, 1, L, L): -100 between pixels of regions that were apart before the roll. */
static const char *mask(writing *o, const hp_layer *l, int64_t rows, int64_t cols) {
    const hp_tensor t = o->g->tensor[l->out];
    const int64_t tokens = (int64_t)l->window.kh * l->window.kw;
    float *f = HP_NEW(o->w.arena, float, rows *cols *tokens *tokens);
    for (int64_t e = 0; e < rows * cols * tokens * tokens; e++) {
        const int64_t window = e / tokens / tokens, i = e / tokens % tokens, j = e % tokens,
                      y = window / cols * l->window.kh, x = window % cols * l->window.kw;
        const bool same = region(y + i / l->window.kw, t.h, l->window.pad_h) ==
                              region(y + j / l->window.kw, t.h, l->window.pad_h) &&
                          region(x + i % l->window.kw, t.w, l->window.pad_w) ==
                              region(x + j % l->window.kw, t.w, l->window.pad_w);
        f[e] = same ? 0 : -100;
    }
    return spell_floats(o, 5, (const int64_t[5]){1, rows * cols, 1, tokens, tokens}, f);
}

void spell_windows(writing *o, const hp_layer *l) {
    const hp_tensor t = o->g->tensor[l->out];
    const int64_t n = spell_samples(o), rows = t.h / l->window.kh, cols = t.w / l->window.kw,
                  tokens = (int64_t)l->window.kh * l->window.kw,
                  in_c = spell_channels(o, o->g->layer[o->g->tensor[l->in[0]].producer].in[0]),
                  width = t.c / l->groups;
    const char *x = spell_value(o, o->g->layer[o->g->tensor[l->in[0]].producer].in[0]), *part[3];
    x = rolled(o, rolled(o, x, 1, l->window.pad_h), 2, l->window.pad_w);
    x = swapped(o,
                spell_reshape(o, x, 6, (const int64_t[6]){n, rows, l->window.kh, cols, l->window.kw, in_c}));
    x = spell_joined(o, l, spell_reshape(o, x, 3, (const int64_t[3]){n * rows * cols, tokens, in_c}));
    spell_gather_heads(o, x, l, n * rows * cols, tokens, part);
    part[0] = spell_apply(o, "Mul", part[0], spell_number(o, 1 / sqrt((double)width)));
    const char *y = spell_transpose(o, part[1], 4, (const int64_t[4]){0, 1, 3, 2});
    y = spell_apply(o, "MatMul", part[0], y);
    if (l->n_param > 0) y = spell_apply(o, "Add", y, bias(o, l));
    if (l->window.pad_h || l->window.pad_w) {
        y = spell_reshape(o, y, 5, (const int64_t[5]){n, rows * cols, l->groups, tokens, tokens});
        y = spell_apply(o, "Add", y, mask(o, l, rows, cols));
        y = spell_reshape(o, y, 4, (const int64_t[4]){-1, l->groups, tokens, tokens});
    }
    const char *shares = spell_fresh(o);
    onnx_write_int(&o->w, spell_node(o, "Softmax", y, NULL, shares), "axis", -1);
    y = spell_transpose(o, spell_apply(o, "MatMul", shares, part[2]), 4, (const int64_t[4]){0, 2, 1, 3});
    y = spell_reshape(o, y, 3, (const int64_t[3]){n * rows * cols, tokens, t.c});
    y = swapped(o,
                spell_reshape(o, y, 6, (const int64_t[6]){n, rows, cols, l->window.kh, l->window.kw, t.c}));
    y = spell_reshape(o, y, 4, (const int64_t[4]){n, t.h, t.w, t.c});
    y = rolled(o, rolled(o, y, 1, l->window.pad_h ? t.h - l->window.pad_h : 0), 2,
               l->window.pad_w ? t.w - l->window.pad_w : 0);
    spell_node(o, "Identity", y, NULL, spell_value(o, l->out));
}

void spell_merge(writing *o, const hp_layer *l) {
    const char *part[4];
    for (int k = 0; k < 4; k++)
        part[k] =
            slice(o, slice(o, spell_value(o, l->in[0]), 1, k % 2, INT64_MAX, 2), 2, k / 2, INT64_MAX, 2);
    const char *inputs = hp_arena_printf(o->w.arena, "%s %s %s %s", part[0], part[1], part[2], part[3]);
    onnx_write_int(&o->w, onnx_write_node(&o->w, "Concat", inputs, spell_value(o, l->out)), "axis", -1);
}

hp_graph *tokens_windows(hp_arena *a, int h, int w, hp_error *err) {
    hp_builder b = hp_builder_start(a, "windows", h, w, 7, err);
    const hp_tokens names = {.qkv = "qkv", .out = "proj"};
    hp_heads heads = {.heads = 2, .window_h = 4, .window_w = 4, .bias = true};
    int x = hp_build_conv(&b, 0, "patch", 4, (hp_window){.k = 2, .stride = 2, .bias = true});
    for (int i = 0; i < 3; i++) {
        hp_build_scope(&b, "%d.", i);
        if (i == 2) x = hp_build_project(&b, hp_build_merge(&b, x, "merge"), "reduction", 8, false);
        if (i == 2) heads = (hp_heads){.heads = 4, .window_h = 4, .window_w = 6, .bias = true};
        const int y = hp_build_layernorm(&b, x, "norm");
        x = hp_build_add(&b, x, hp_tokens_attend(&b, y, names, heads, HP_INIT_NORMAL, 0.02), "add");
        heads.shift_h = 2;
        heads.shift_w = 1;
    }
    x = hp_build_adaptpool(&b, x, "pool", 1, 1);
    hp_build_linear(&b, x, "head", 7);
    hp_graph *g = NULL;
    return hp_builder_finish(&b, &g) == HP_OK ? hp_graph_fuse(a, g) : NULL;
}
